/** Adjusts leases. Concurrent adjustments of one shard share a write. */

import { invariant } from "../../domain/check.ts";
import type { Deadline } from "../../domain/deadline.ts";
import { RateLimiterUnavailable } from "../../domain/errors.ts";
import type { Timer } from "../../domain/timer.ts";
import type { Adjustment } from "../leg.ts";
import { type Changes, type DueAdjustment, isRefund, type SharedAdjustment } from "./changes.ts";
import { sumOf } from "./combining.ts";
import { Gathering } from "./gathering.ts";
import { WIDTH_MAX } from "./pacing.ts";
import { bucketId } from "./shards.ts";

export class Adjustments {
  readonly #changes: Changes;
  readonly #gathering: Gathering<DueAdjustment>;

  constructor(changes: Changes, timer: Timer) {
    this.#changes = changes;
    const run = (due: readonly DueAdjustment[]) =>
      this.#changes.write(together(due), this.#changes.newTokens());
    this.#gathering = new Gathering({ width: WIDTH_MAX, timer, run, overdue });
  }

  /** Writes the deltas; throws when the store cannot. */
  adjust(adjustment: Adjustment, deadline: Deadline): Promise<void> {
    return this.#gathering.add(placeOf(adjustment), { adjustment, deadline });
  }
}

function overdue(): RateLimiterUnavailable {
  return new RateLimiterUnavailable("The store did not answer in time", {
    reason: "timeout",
    nothingWritten: true,
  });
}

/** Changes that may share a write: of one shard, by limits of the same names, in one direction. */
export function placeOf(adjustment: Adjustment): string {
  const { shard, config, deltasMilli } = adjustment;
  const names = config.limits.map(({ name }) => name).join(" ");
  // What consumes and what refunds are kept apart: a refund may be repeated.
  const kind = isRefund(adjustment) ? (deltasMilli.some((delta) => delta > 0) ? "±" : "-") : "+";
  const effect = config.bypass === true ? `${kind} bypass` : kind;
  return `${bucketId(adjustment)}#${shard} ${effect} ${config.source} ${names}`;
}

/** All of them as one: the deltas add up, and the newest limits say how long the bucket is kept. */
export function together(due: readonly DueAdjustment[]): SharedAdjustment {
  const [first] = due;
  invariant(first !== undefined, "there is a change to write");
  const shares = due.map(({ adjustment }) => adjustment);
  if (due.length === 1) return { ...first, shares };
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
