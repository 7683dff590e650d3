/**
 * A store that did not answer when its limiter was opened. Each call that needs it asks again, so a
 * process that starts in an outage limits its calls as soon as the store answers.
 */

import { type Random, systemRandom } from "../base/random.ts";
import { Deadline, systemTimer, type Timer } from "../base/time.ts";
import { InfrastructureError, RateLimiterUnavailable } from "../domain/errors/errors.ts";
import { inTime } from "../domain/errors/in-time.ts";
import type { OnUnavailable } from "../domain/errors/unavailability.ts";
import { INTERNALS } from "../repository/internals.ts";
import type { DynamoOptions, PostgresOptions } from "../repository/options.ts";
import type { Repository } from "../repository/repository.ts";
import { TIMEOUT_MS } from "../repository/shared-store.ts";
import type { CheckedRequest } from "./acquire-request.ts";
import type { Decided } from "./acquirer.ts";
import type { StoreWarning } from "./events.ts";
import { LATE } from "./internal-names.ts";
import { DegradedLease } from "./lease/degraded-lease.ts";
import type { ObservedCall } from "./observed-call.ts";
import type { RateLimiter } from "./rate-limiter.ts";

/** How often a store that is still out of reach is reported. */
const WARN_EVERY_MS = 60_000;

export class LateStore {
  readonly timer: Timer;
  readonly random: Random;
  readonly #timeoutMs: number;
  readonly #open: () => Promise<Repository>;
  #opening: Promise<Repository> | undefined;
  #failure: RateLimiterUnavailable;
  #warnedMs = Number.NEGATIVE_INFINITY;
  #closed = false;
  readonly #waiting = new Set<() => void>();

  constructor(
    open: () => Promise<Repository>,
    options: DynamoOptions & PostgresOptions,
    failure: RateLimiterUnavailable,
  ) {
    this.#open = open;
    this.timer = options.timer ?? systemTimer;
    this.random = options.random ?? systemRandom;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#failure = failure;
  }

  /**
   * Opens the store, or throws within the time that a call is given. Calls share an attempt, and
   * one failure a minute is reported.
   */
  async reach(warn: (warning: StoreWarning) => void): Promise<Repository> {
    try {
      this.#opening ??= this.#attempt();
      return await inTime(this.timer, new Deadline(this.timer, this.#timeoutMs), this.#opening);
    } catch (cause) {
      if (!(cause instanceof RateLimiterUnavailable)) throw cause;
      this.#failure = cause;
      const nowMs = this.timer.nowMs();
      if (nowMs - this.#warnedMs >= WARN_EVERY_MS) {
        this.#warnedMs = nowMs;
        warn({ kind: "store_unreached", cause });
      }
      throw cause;
    }
  }

  /** Makes the error of everything that needs the store before it was reached. */
  unreached(target: { entityId?: string; resource?: string } = {}): RateLimiterUnavailable {
    const cause = this.#failure;
    const { reason } = cause;
    return new RateLimiterUnavailable(`The store was not reached yet: ${cause.message}`, {
      cause,
      nothingWritten: true,
      ...(reason && { reason }),
      ...target,
    });
  }

  /** Lets a call pass uncounted or throws, by `mode`; `undefined` once the store was reached. */
  async passOrReach(
    reach: () => Promise<void>,
    mode: OnUnavailable | undefined,
    { entityId, resource, signal }: CheckedRequest,
    call?: ObservedCall,
  ): Promise<Decided | undefined> {
    try {
      await reach();
      return undefined;
    } catch (error) {
      call?.attempt();
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      if (mode !== "allow") throw this.unreached({ entityId, resource });
      call?.unanswered(error);
      signal?.throwIfAborted();
      return { granted: true, lease: new DegradedLease() };
    }
  }

  /** Begins something when the store is reached; the result ends it, or keeps it from beginning. */
  whenReached(begin: () => () => void): () => void {
    let end: (() => void) | undefined;
    const onReached = () => {
      end = begin();
    };
    this.#waiting.add(onReached);
    return () => {
      this.#waiting.delete(onReached);
      end?.();
    };
  }

  /** Begins what waits for the store: the limiter uses it from now on. */
  reached(): void {
    for (const begin of this.#waiting) begin();
    this.#waiting.clear();
  }

  /** Gives up; a store that answers afterwards is closed again. */
  close(): void {
    this.#closed = true;
  }

  async #attempt(): Promise<Repository> {
    try {
      const repository = await this.#open();
      if (!this.#closed) return repository;
      await repository.close();
      throw new InfrastructureError("This limiter is closed");
    } finally {
      this.#opening = undefined;
    }
  }
}

/** A limiter, whatever the names of its limits. */
type AnyLimiter = Pick<RateLimiter, "repository" | typeof LATE>;

/** Returns the timer of a limiter, which it has before its store was reached. */
export function timerOf(limiter: AnyLimiter): Timer {
  return limiter[LATE]?.timer ?? limiter.repository[INTERNALS].timer;
}

/** Begins what needs the store, at once or when it is reached; the result ends it. */
export function whenReached(limiter: AnyLimiter, begin: () => () => void): () => void {
  const late = limiter[LATE];
  return late === undefined ? begin() : late.whenReached(begin);
}

const openings = new WeakMap<object, RateLimiter>();

/** Remembers the limiter that goes on trying to open what failed with an error. */
export function keepTrying(failure: RateLimiterUnavailable, limiter: RateLimiter): void {
  openings.set(failure, limiter);
}

/** Returns the limiter that goes on trying, where `RateLimiter.open` failed with this error. */
export function triesOn(failure: unknown): RateLimiter | undefined {
  return failure instanceof RateLimiterUnavailable ? openings.get(failure) : undefined;
}
