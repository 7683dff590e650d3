/**
 * A request on its way through a middleware: the lease it holds, until its response has ended.
 * Several middlewares may limit one request; a refusal by a later one refunds the earlier ones.
 */

import type { Lease } from "../acquire/lease/lease.ts";
import { ENDED } from "../acquire/lease/lease-holdings.ts";
import type { Timer } from "../base/time.ts";
import { LeaseExpiredError } from "../domain/errors/errors.ts";
import type { Outcome } from "./options.ts";

/** How a passage decides about its lease. */
export interface PassageRules {
  readonly timer: Timer;
  readonly refundWhen: (outcome: Outcome) => boolean;
  readonly refundsErrors: boolean;
  /** Called when the end of the lease could not be written: the response is gone by then. */
  readonly endFailed: (target: Target, error: unknown) => void;
}

/** The bucket that a request consumes from. */
export interface Target {
  readonly entityId: string;
  readonly resource: string;
}

/** How long a handler may go on settling after its client has hung up. */
const LATE_SETTLE_MS = 60_000;

export class Passage {
  readonly lease: Lease;
  /** The passage of the same request through an earlier middleware. */
  earlier: Passage | undefined;
  readonly #target: Target;
  readonly #rules: PassageRules;
  #isEnded = false;
  /** Ends the time that a handler has after its client has hung up. */
  #late: AbortController | undefined;

  constructor(lease: Lease, target: Target, rules: PassageRules) {
    this.lease = lease;
    this.#target = target;
    this.#rules = rules;
  }

  /**
   * Ends the lease after the response. `threw` says that the handler threw before it answered.
   * Does nothing when the passage has ended, or when the handler has ended the lease itself.
   */
  end(outcome: Outcome, threw: boolean): Promise<void> {
    if (!this.#begin()) return ENDED;
    try {
      const refund = (threw && this.#rules.refundsErrors) || this.#wantsRefund(outcome);
      const ending = refund ? this.#rollback() : this.lease[Symbol.asyncDispose]();
      // Most leases have ended by now, and need no further promise.
      return ending === ENDED ? ENDED : this.#reporting(ending);
    } catch (error) {
      this.#rules.endFailed(this.#target, error);
      return ENDED;
    }
  }

  /** Waits for the end of the lease, and reports a failure of it. */
  async #reporting(ending: Promise<void>): Promise<void> {
    try {
      await ending;
    } catch (error) {
      this.#rules.endFailed(this.#target, error);
    }
  }

  /** Returns whether tokens are refunded; a function that fails does not decide for a refund. */
  #wantsRefund(outcome: Outcome): boolean {
    try {
      return this.#rules.refundWhen(outcome);
    } catch (error) {
      this.#rules.endFailed(this.#target, error);
      return false;
    }
  }

  /**
   * Writes the corrections so far when the client has gone while the handler is still at work. The
   * handler may not notice, and corrections that it makes afterwards count; the adapter calls `end`
   * when the handler is done. A handler that never says so loses the lease after a minute.
   */
  async hangUp(status: number): Promise<void> {
    if (this.#isEnded) return;
    this.#late = new AbortController();
    try {
      await this.lease.flush();
    } catch (error) {
      if (!(error instanceof LeaseExpiredError)) this.#rules.endFailed(this.#target, error);
    }
    await this.#rules.timer.sleep(LATE_SETTLE_MS, this.#late.signal, true);
    await this.end({ status, aborted: true }, false);
  }

  /** Refunds everything: the request went no further than the middlewares. */
  async turnBack(): Promise<void> {
    if (this.#begin()) await this.#reporting(this.#rollback());
  }

  /** Whether this call is the first to end the passage. */
  #begin(): boolean {
    if (this.#isEnded) return false;
    this.#isEnded = true;
    this.#late?.abort();
    return true;
  }

  /** Refunds the lease, unless the handler has ended it itself. */
  async #rollback(): Promise<void> {
    try {
      await this.lease.rollback();
    } catch (error) {
      if (!(error instanceof LeaseExpiredError)) throw error;
    }
  }
}

/**
 * The last passage of a request, on the request itself. A `WeakMap` would do the same, but its
 * values outlive the next collection of young objects, and with them all that a lease holds.
 */
const PASSAGE = Symbol("zae-limiter.passage");

interface Passing {
  [PASSAGE]?: Passage | undefined;
}

/** Remembers a passage on the request object that handlers see. */
export function addPassage(request: object, passage: Passage): void {
  const passing = request as Passing;
  passage.earlier = passing[PASSAGE];
  passing[PASSAGE] = passage;
}

/** Makes the lease of a request known on another object too. */
export function addAlias(request: object, alias: object): void {
  (alias as Passing)[PASSAGE] = (request as Passing)[PASSAGE];
}

/** Returns the lease of the innermost middleware that limits the request. */
export function leaseOfRequest(request: object): Lease | undefined {
  return (request as Passing)[PASSAGE]?.lease;
}

/** Refunds what earlier middlewares consumed for a request that a later one refused. */
export async function turnBackAll(request: object): Promise<void> {
  const passing = request as Passing;
  const all: Passage[] = [];
  for (let passage = passing[PASSAGE]; passage !== undefined; passage = passage.earlier) {
    all.unshift(passage);
  }
  if (all.length > 0) passing[PASSAGE] = undefined;
  await Promise.all(all.map((passage) => passage.turnBack()));
}
