/** The shards of a bucket: each as this process has seen it last, and the sums of all. */

import { SCHEDULES } from "../../../domain/schedules.ts";
import type { StoredBucket } from "../../../records/bucket-item.ts";
import type { BucketName } from "../../../records/keys.ts";
import type { SeenBalances, SeenShard } from "../../bucket-consumer.ts";
import type { BucketConfig, Leg } from "../../leg.ts";
import { hasPeriods } from "../../periods.ts";
import { periodsIn } from "../plan/period-plan.ts";
import { balanceAt, balanceOf, type SeenBucket } from "../plan/seen-bucket.ts";
import { type ReaderContext, withConfig } from "../plan/with-config.ts";
import type { BucketStates } from "./bucket-states.ts";
import { balancesOf } from "./shard-balances.ts";

/** Returns the shards that this process has seen, without a request. */
export function seenShards(
  states: BucketStates,
  name: BucketName,
  config: BucketConfig,
): readonly SeenShard[] {
  const nowMs = states.clock();
  const shardCount = states.countOf(name) ?? 1;
  return Array.from({ length: shardCount }, (_, shard) => states.of(name, shard)?.bucket).flatMap(
    (bucket) => {
      if (bucket === undefined) return [];
      const balancesMilli = balancesOf(bucket, config, nowMs);
      return [{ balancesMilli, periods: periodsIn([bucket], config, nowMs), shardCount }];
    },
  );
}

/** Returns what calls would find in shards that were just read, with the limits of the calls. */
export function seenBy(
  legs: readonly Pick<Leg, "config">[],
  shards: readonly (readonly SeenBucket[])[],
  context: ReaderContext,
): SeenBalances {
  const found = legs.map(({ config }, at) => withConfig(shards[at] ?? [], config, context));
  const { nowMs } = context;
  return {
    balancesMilli: legs.map(({ config }, at) => totals(found[at] ?? [], config, nowMs)),
    periods: legs.map(({ config }, at) => periodsIn(found[at] ?? [], config, nowMs)),
  };
}

/** Returns the balances of a bucket, at most full where limits refill evenly. */
function totals(
  shards: readonly StoredBucket[],
  { limits }: BucketConfig,
  nowMs: number,
): readonly number[] {
  return limits.map(({ name, rate }) => {
    const { capacityMilli } = SCHEDULES.rateAt(rate, nowMs);
    const sum = total(shards, name, nowMs) ?? capacityMilli;
    return hasPeriods(rate) ? sum : Math.min(capacityMilli, sum);
  });
}

/** Returns the sum over shards; `undefined` when none has the limit. */
function total(shards: Iterable<StoredBucket>, name: string, nowMs: number): number | undefined {
  let sum: number | undefined;
  for (const shard of shards) {
    const stored = shard.limits.get(name);
    if (stored === undefined) continue;
    sum = (sum ?? 0) + balanceOf(balanceAt(shard, stored, nowMs));
  }
  return sum;
}
