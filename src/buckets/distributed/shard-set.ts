/**
 * The shards of a bucket as they were read, one by one and not as of one moment: a split may have
 * come in between. Then a half is there twice or not at all.
 */

import type { StoredBucket } from "../../records/bucket-item.ts";
import { countBefore, originOf } from "./shard-numbers.ts";

export type ShardSet<T extends StoredBucket> = ReadonlyMap<number, T>;

/** Those that count: a half is left out when what it came from was read before the split. */
export function bornShards<T extends StoredBucket>(shards: ShardSet<T>): ShardSet<T> {
  const born = new Map<number, T>();
  for (const [shard, bucket] of shards) {
    const origin = shard === 0 ? undefined : shards.get(originOf(shard));
    if (origin === undefined || origin.shardCount > countBefore(shard)) born.set(shard, bucket);
  }
  return born;
}

/** A shard that is not there, although what it came from has been split; `undefined` when none. */
export function missingShard(shards: ShardSet<StoredBucket>): number | undefined {
  const count = shards.get(0)?.shardCount ?? 1;
  for (let shard = 1; shard < count; shard += 1) {
    if (shards.has(shard)) continue;
    const origin = shards.get(originOf(shard));
    if (origin !== undefined && origin.shardCount > countBefore(shard)) return shard;
  }
  return undefined;
}
