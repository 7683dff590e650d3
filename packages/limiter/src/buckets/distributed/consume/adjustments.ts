/**
 * Adjusts leases and refunds what was consumed, in the shard that it came from. Adjustments of one
 * shard that are under way together share a write.
 */

import type { Random } from "../../../base/random.ts";
import type { Timer } from "../../../base/time.ts";
import { Deadline } from "../../../base/time.ts";
import { invariant } from "../../../domain/check.ts";
import { tooLate } from "../../../domain/errors/unavailability.ts";
import { bucketId } from "../../../records/keys.ts";
import type { RefundWarning } from "../../bucket-warning.ts";
import { sumOf } from "../../gating.ts";
import { LaterRefunds } from "../../later-refunds.ts";
import type { Adjustment } from "../../leg.ts";
import {
  type Adjuster,
  type DueAdjustment,
  isRefund,
  type SharedAdjustment,
  type Tokens,
} from "./adjuster.ts";
import { Gathering } from "./gathering.ts";
import { WIDTH_MAX } from "./pacing.ts";

export interface AdjustmentOptions {
  readonly timeoutMs: number;
  readonly timer: Timer;
  readonly random: Random;
  readonly onWarning: (warning: RefundWarning) => void;
}

export class Adjustments {
  readonly #adjuster: Adjuster;
  readonly #options: AdjustmentOptions;
  readonly #later: LaterRefunds;
  readonly #adjusting: Gathering<DueAdjustment>;
  readonly #refunding: Gathering<DueAdjustment>;

  constructor(adjuster: Adjuster, options: AdjustmentOptions) {
    this.#adjuster = adjuster;
    this.#options = options;
    const { timer, random, onWarning } = options;
    // The token tells the store what was written already.
    this.#later = new LaterRefunds({ timer, random, mayRepeat: () => true, onWarning });
    const common = { width: WIDTH_MAX, timer };
    this.#adjusting = new Gathering({
      ...common,
      run: (due) => adjuster.write(together(due), adjuster.newTokens()),
      overdue: () => tooLate(),
    });
    this.#refunding = new Gathering({ ...common, run: (due) => this.#refund(together(due)) });
  }

  /** Writes the deltas; throws when the store cannot. */
  adjust(adjustment: Adjustment, deadline: Deadline): Promise<void> {
    return this.#adjusting.add(placeOf(adjustment), { adjustment, deadline });
  }

  /**
   * Never throws: when the store does not answer in time, the refund goes on in the background with
   * the same token, and at last it warns.
   */
  refund(adjustment: Adjustment, deadline: Deadline): Promise<void> {
    return this.#refunding.add(placeOf(adjustment), { adjustment, deadline });
  }

  /** Resolves when no refund is under way in the background. */
  async idle(): Promise<void> {
    await this.#refunding.idle();
    await this.#later.idle();
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

/** Adjustments that may share a write: one shard, limits of the same names, one direction. */
function placeOf(adjustment: Adjustment): string {
  const { shard, config, deltasMilli } = adjustment;
  const names = config.limits.map(({ name }) => name).join(" ");
  // What consumes and what refunds are kept apart: a refund may be repeated.
  const kind = isRefund(adjustment) ? (deltasMilli.some((delta) => delta > 0) ? "±" : "-") : "+";
  const effect = config.bypass === true ? `${kind} bypass` : kind;
  return `${bucketId(adjustment)}#${shard} ${effect} ${config.source} ${names}`;
}

/** All of them as one: the deltas add up, and the newest limits say how long the bucket is kept. */
function together(due: readonly DueAdjustment[]): SharedAdjustment {
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
