/**
 * How shards descend from each other, and which of them count.
 *
 * Counts are powers of two. Shard `i` of `n` splits into `i` and `i + n` of `2n`; the other way
 * round, every shard but the first came from the one without its highest bit. A split by more than
 * two ends as the same number of single splits would.
 */

import { invariant } from "../../../domain/check.ts";
import type { StoredBucket } from "../../../records/bucket-item.ts";

export { SHARDS_MAX } from "../../../core/bucket.ts";

/** Returns how many shards there were when `shard` did not exist yet. */
export function countBefore(shard: number): number {
  invariant(shard > 0, "the first shard has always existed");
  return 2 ** Math.floor(Math.log2(shard));
}

/** Returns the shard that `shard` was split from; not for the first. */
export function originOf(shard: number): number {
  const origin = shard - countBefore(shard);
  invariant(origin >= 0 && origin < shard, "a shard descends from a lower one");
  return origin;
}

/**
 * The shards of a bucket as they were read, not at one moment: a split may have come in between.
 * Then a half is there twice or not at all.
 */
export type ShardSet<T extends StoredBucket> = ReadonlyMap<number, T>;

/** Returns the shards that count: a half is left out when its origin was read before the split. */
export function bornShards<T extends StoredBucket>(shards: ShardSet<T>): ShardSet<T> {
  const born = new Map<number, T>();
  for (const [shard, bucket] of shards) {
    const origin = shard === 0 ? undefined : shards.get(originOf(shard));
    if (origin === undefined || origin.shardCount > countBefore(shard)) born.set(shard, bucket);
  }
  return born;
}

/**
 * Returns a shard that is missing, although its origin has been split; `undefined` when none is.
 */
export function missingShard(shards: ShardSet<StoredBucket>): number | undefined {
  const count = shards.get(0)?.shardCount ?? 1;
  for (let shard = 1; shard < count; shard += 1) {
    if (shards.has(shard)) continue;
    const origin = shards.get(originOf(shard));
    if (origin !== undefined && origin.shardCount > countBefore(shard)) return shard;
  }
  return undefined;
}
