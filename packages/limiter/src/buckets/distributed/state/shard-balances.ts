/** Balances of shards and of whole buckets, in the order of the limits of a config. */

import { hasSlots } from "../../../core/bucket.ts";
import { SCHEDULES } from "../../../domain/schedules.ts";
import type { BucketConfig } from "../../leg.ts";
import { hasPeriods } from "../../periods.ts";
import { balanceMilliAt, type SeenBucket, shareAt } from "../plan/seen-bucket.ts";
import { startOfSlots } from "../plan/slot-plan.ts";

export function fullBalances({ limits }: BucketConfig, nowMs: number): readonly number[] {
  return limits.map(({ rate }) => SCHEDULES.rateAt(rate, nowMs).capacityMilli);
}

/** Returns sums over shards, at most full where limits refill evenly. */
export function atMostFull(
  sums: readonly number[],
  { limits }: BucketConfig,
  nowMs: number,
): readonly number[] {
  return sums.map((sum, at) => {
    const { rate } = limits[at] as BucketConfig["limits"][number];
    return hasPeriods(rate) ? sum : Math.min(sum, SCHEDULES.rateAt(rate, nowMs).capacityMilli);
  });
}

/** Returns the balances of a shard for the limits of a config. */
export function balancesOf(
  bucket: SeenBucket,
  { limits }: BucketConfig,
  nowMs: number,
): readonly number[] {
  return limits.map(({ name, rate }) => balanceIn(bucket, name, rate, nowMs));
}

function balanceIn(
  bucket: SeenBucket,
  limitName: string,
  rate: BucketConfig["limits"][number]["rate"],
  nowMs: number,
): number {
  const stored = bucket.limits.get(limitName);
  if (stored !== undefined) return balanceMilliAt(bucket, stored, nowMs);
  if (hasSlots(rate)) return startOfSlots(bucket, rate);
  return shareAt(bucket, rate, nowMs).capacityMilli;
}
