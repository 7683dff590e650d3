/**
 * Adjusts leases and refunds what was consumed, in the shard that it came from. Adjustments of one
 * shard that are under way together share a write.
 */

import type { Random } from "../base/random.ts";
import { Deadline, type Timer } from "../base/time.ts";
import { invariant } from "../domain/check.ts";
import { RateLimiterUnavailable } from "../domain/errors/errors.ts";
import { tooLate } from "../domain/errors/unavailability.ts";
import { bucketId } from "../records/keys.ts";
import type { RefundWarning } from "./bucket-warning.ts";
import { Gathering, type GatheringRules, Waiting } from "./gathering.ts";
import { LaterRefunds } from "./later-refunds.ts";
import { type Adjustment, isRefund, sumOf } from "./leg.ts";

/** Several adjustments as one write. */
export interface SharedAdjustment {
  /** Sum of all shares. */
  readonly adjustment: Adjustment;
  /** Time by which it is written. */
  readonly deadline: Deadline;
  readonly shares: readonly Adjustment[];
}

/** Writes adjustments to a store, each once for its tokens, however often it is repeated. */
export interface AdjustmentWriter<Tokens> {
  newTokens(): Tokens;
  write(shared: SharedAdjustment, tokens: Tokens): Promise<void>;
  /** Whether a write whose outcome was unknown has been made. */
  hasArrived(shared: SharedAdjustment, tokens: Tokens): Promise<boolean>;
}

/** Keeps an adjustment that waits to be written. */
class WaitingAdjustment extends Waiting<void> {
  readonly adjustment: Adjustment;

  constructor(
    adjustment: Adjustment,
    deadline: Deadline,
    resolve: () => void,
    reject: (error: unknown) => void,
  ) {
    super(deadline, resolve, reject);
    this.adjustment = adjustment;
  }

  /** Fails when nothing was sent; else the answer says more than that it is late. */
  expire(): void {
    if (!this.isSent) this.fail(tooLate());
  }
}

/** Keeps a refund that waits to be written: the call ends at its deadline, and the work goes on. */
class WaitingRefund extends WaitingAdjustment {
  override get isDue(): boolean {
    return true;
  }

  override expire(): void {
    this.answer();
  }
}

export interface AdjustmentOptions {
  readonly timeoutMs: number;
  readonly timer: Timer;
  readonly random: Random;
  readonly onWarning: (warning: RefundWarning) => void;
  /** Aborts when the store is closed; present where what is written with slots is repeated. */
  readonly closed?: AbortSignal | undefined;
}

export class Adjustments<Tokens> {
  readonly #adjuster: AdjustmentWriter<Tokens>;
  readonly #options: AdjustmentOptions;
  readonly #later: LaterRefunds;
  readonly #adjusting: Gathering<WaitingAdjustment>;
  readonly #refunding: Gathering<WaitingRefund>;

  constructor(adjuster: AdjustmentWriter<Tokens>, options: AdjustmentOptions) {
    this.#adjuster = adjuster;
    this.#options = options;
    const { timer, random, onWarning, closed } = options;
    // The token lets the store recognise what was written already.
    this.#later = new LaterRefunds({ timer, random, mayRepeat: () => true, onWarning, closed });
    this.#adjusting = new Gathering(
      timer,
      doing((shared) => this.#adjust(shared)),
    );
    this.#refunding = new Gathering(
      timer,
      doing((shared) => this.#refund(shared)),
    );
  }

  /** Writes the deltas; rejects when the store cannot. */
  adjust(adjustment: Adjustment, deadline: Deadline): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = new WaitingAdjustment(adjustment, deadline, resolve, reject);
      this.#adjusting.add(placeOf(adjustment), waiting);
    });
  }

  /**
   * Refunds, and never rejects: when the store does not answer in time, the refund goes on in the
   * background with the same token, and at last it warns.
   */
  refund(adjustment: Adjustment, deadline: Deadline): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = new WaitingRefund(adjustment, deadline, resolve, reject);
      this.#refunding.add(placeOf(adjustment), waiting);
    });
  }

  /** Resolves when no refund is under way in the background. */
  async idle(): Promise<void> {
    await this.#refunding.idle();
    await this.#later.idle();
  }

  /**
   * Adjusts, and throws. Where slots are given back and the outcome is unknown, that goes on in the
   * background: no correction is worth a slot that stays held.
   */
  async #adjust(shared: SharedAdjustment): Promise<void> {
    const tokens = this.#adjuster.newTokens();
    try {
      await this.#adjuster.write(shared, tokens);
    } catch (error) {
      if (this.#goesOn(shared.adjustment, error)) {
        this.#later.add(shared.adjustment, () => this.#again(shared, tokens), error);
      }
      throw error;
    }
  }

  #goesOn({ entry }: Adjustment, error: unknown): boolean {
    if (entry === undefined || this.#options.closed === undefined) return false;
    return error instanceof RateLimiterUnavailable && !error.nothingWritten;
  }

  async #refund(shared: SharedAdjustment): Promise<void> {
    const tokens = this.#adjuster.newTokens();
    try {
      await this.#adjuster.write(shared, tokens);
    } catch (error) {
      this.#later.add(shared.adjustment, () => this.#again(shared, tokens), error);
    }
  }

  async #again(before: SharedAdjustment, tokens: Tokens): Promise<void> {
    const deadline = new Deadline(this.#options.timer, this.#options.timeoutMs);
    const shared = { ...before, deadline };
    if (await this.#adjuster.hasArrived(shared, tokens)) return;
    await this.#adjuster.write(shared, tokens);
  }
}

/** Returns rules by which all adjustments of a place share one write and its outcome. */
function doing(
  write: (shared: SharedAdjustment) => Promise<void>,
): GatheringRules<WaitingAdjustment> {
  const run = async (waiting: readonly WaitingAdjustment[]) => {
    for (const one of waiting) one.isSent = true;
    const open = () => waiting.filter(({ isOpen }) => isOpen);
    try {
      await write(together(waiting));
      for (const one of open()) one.answer();
    } catch (error) {
      for (const one of open()) one.fail(error);
    }
  };
  return { max: Number.POSITIVE_INFINITY, joins: () => true, run };
}

/**
 * Names adjustments that may share a write: one shard, limits of the same names, one direction, and
 * what was consumed in the same periods.
 */
function placeOf(adjustment: Adjustment): string {
  const { shard, config, deltasMilli, endsMs, entry } = adjustment;
  const names = config.limits.map(({ name }) => name).join(" ");
  // What consumes and what refunds are kept apart: a refund may be repeated.
  const kind = isRefund(adjustment) ? (deltasMilli.some((delta) => delta > 0) ? "±" : "-") : "+";
  const effect = config.bypass === true ? `${kind} bypass` : kind;
  const from = entry === undefined ? config.source : `${config.source} ${entry}`;
  const place = `${bucketId(adjustment)}#${shard} ${effect} ${from} ${names}`;
  return endsMs === undefined ? place : `${place} ${endsMs.join(" ")}`;
}

/** Adds up the deltas of all; the newest limits say how long the bucket is kept. */
function together(due: readonly WaitingAdjustment[]): SharedAdjustment {
  const [first] = due;
  invariant(first !== undefined, "there is a change to write");
  const shares = due.map(({ adjustment }) => adjustment);
  if (due.length === 1) return { adjustment: first.adjustment, deadline: first.deadline, shares };
  const deltasMilli = sumOf(shares.map((share) => ({ amountsMilli: share.deltasMilli })));
  let { deadline } = first;
  let { config } = first.adjustment;
  let acquires = 0;
  for (const { adjustment, deadline: other } of due) {
    deadline = deadline.latest(other);
    acquires += adjustment.acquires ?? 0;
    if (adjustment.config.version > config.version) config = adjustment.config;
  }
  return { adjustment: { ...first.adjustment, config, deltasMilli, acquires }, deadline, shares };
}
