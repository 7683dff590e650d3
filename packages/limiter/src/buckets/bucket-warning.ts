/** Warnings of the buckets: nothing failed for a caller, but an operator should know. */

import type { Adjustment } from "./leg.ts";
import type { SlotsLostWarning } from "./slots/slot-holder.ts";

/** Tokens could not be refunded; they stay consumed. */
export interface RefundWarning {
  readonly kind: "restore_failed";
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
  /** Milli-tokens per limit that stay consumed. */
  readonly amountsMilli: Readonly<Record<string, number>>;
  readonly cause: unknown;
}

/** A bucket has as many shards as there can be: more traffic will be throttled. */
export interface ShardsWarning {
  readonly kind: "shards_exhausted";
  readonly entityId: string;
  readonly resource: string;
  readonly shardCount: number;
}

/** An alert could not be written; the next call that sees the use tries again. */
export interface AlertWarning {
  readonly kind: "alert_failed";
  readonly entityId: string;
  readonly resource: string;
  readonly cause: unknown;
}

export type BucketWarning = RefundWarning | ShardsWarning | AlertWarning | SlotsLostWarning;

export function refundWarning(adjustment: Adjustment, cause: unknown): RefundWarning {
  const { entityId, resource, shard, config, deltasMilli } = adjustment;
  const amountsMilli = Object.fromEntries(
    config.limits
      .map(({ name }, at) => [name, -(deltasMilli[at] ?? 0)] as const)
      .filter(([, amount]) => amount !== 0),
  );
  return { kind: "restore_failed", entityId, resource, shard, amountsMilli, cause };
}
