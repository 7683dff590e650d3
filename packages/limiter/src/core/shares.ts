/**
 * The exact shares of a limit that is spread over `count` shards.
 *
 * Capacities are divided with the odd milli-tokens going to the first shards; rates keep the
 * refill amount and stretch the period, so nothing is rounded. Doubling the count splits every
 * shard in two without changing the sum: shard i of n equals shards i and i + n of 2n together.
 */

import type { Rate } from "./bucket.ts";
import { floorDiv } from "./integers.ts";

/** More shards would spread even a large limit too thin to be useful. */
export const SHARDS_MAX = 64;

/** The part of `amount` that belongs to shard `shard` of `count`. The parts add up to `amount`. */
export function shareOf(amount: number, shard: number, count: number): number {
  const part = floorDiv(amount, count);
  return shard < amount - part * count ? part + 1 : part;
}

/** The rate of one shard: its share of the capacity, and the refill amount per `count` periods. */
export function shardRate(rate: Rate, shard: number, count: number): Rate {
  if (count === 1) return rate;
  return {
    capacityMilli: shareOf(rate.capacityMilli, shard, count),
    refillMilli: rate.refillMilli,
    periodMs: rate.periodMs * count,
  };
}
