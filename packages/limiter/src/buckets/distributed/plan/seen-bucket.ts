/** A bucket item as this library reads it, with the attributes that only this library keeps. */

import { shardRate } from "../../../core/bucket.ts";
import {
  boundedAt,
  decodeBucket,
  encodeBucket,
  type StoredBucket,
  type StoredLimit,
} from "../../../records/bucket-item.ts";
import type { Item } from "../../../storage/item.ts";
import { textAt } from "../../../storage/item.ts";
import type { BuiltFrom } from "../../config-match.ts";

/** A bucket, and what only clients of this library keep in it. */
export interface SeenBucket extends StoredBucket {
  /** Which of the rebases to its base time it has been through; nearly always 0, the first. */
  readonly rebases: number;
  /** Rises with every merge; only clients that know it split the shard (ADR 030). */
  readonly generation: number;
  /** When a client last began to merge shards; on the first shard. */
  readonly mergingAtMs: number | undefined;
  /** How many writes the first of several shards has counted. */
  readonly writesCounted: number;
  /** What the bucket has needed, see `need.ts`; on the first shard. */
  readonly need: string | undefined;
}

/** Absent, unless a bucket was rebased more than once within a millisecond. */
export const REBASES = "rn";
/** Absent, unless shards of the bucket were merged. */
export const GENERATION = "mg";
export const MERGING = "ma";
/** The record of what the bucket has needed, and the count of writes that it is measured by. */
export const NEED = "nd";
export const WRITES = "wn";

/** What a bucket of one shard has of its own. */
export const UNSHARDED = {
  generation: 0,
  mergingAtMs: undefined,
  writesCounted: 0,
  need: undefined,
} as const;

/** The bucket in an item, if there is one. */
export function decoded(item: Item | undefined): SeenBucket | undefined {
  const bucket = item === undefined ? undefined : decodeBucket(item);
  if (item === undefined || bucket === undefined) return undefined;
  const { shard, shardCount } = bucket;
  const isFirst = shard === 0 && shardCount > 1;
  // The object is not shared yet: a copy would only cost time.
  const seen = bucket as { -readonly [Name in keyof SeenBucket]: SeenBucket[Name] };
  seen.rebases = boundedAt(item, REBASES, 1, Number.MAX_SAFE_INTEGER) ?? 0;
  seen.generation = boundedAt(item, GENERATION, 1, Number.MAX_SAFE_INTEGER) ?? 0;
  seen.mergingAtMs = isFirst ? boundedAt(item, MERGING, 0, Number.MAX_SAFE_INTEGER) : undefined;
  seen.writesCounted = isFirst ? (boundedAt(item, WRITES, 0, Number.MAX_SAFE_INTEGER) ?? 0) : 0;
  seen.need = isFirst ? textAt(item, NEED) : undefined;
  return seen;
}

/** The item of a shard other than the first. */
export function encodeShard(namespaceId: string, bucket: SeenBucket): Item {
  const { rebases, generation } = bucket;
  return {
    ...encodeBucket(namespaceId, bucket),
    ...(rebases === 0 ? {} : { [REBASES]: rebases }),
    ...(generation === 0 ? {} : { [GENERATION]: generation }),
  };
}

/**
 * Whether the base time of the bucket must not be moved by this library: balances that only the
 * Python library can bring to another time refer to it.
 */
export function isPinned({ python }: StoredBucket): boolean {
  return python !== undefined && python.unsupported.size > 0;
}

/**
 * Returns whether the shards of a bucket are announced and not created, as the Python library does
 * it: more than there can be, or with the tokens of several shards still in this one.
 */
export function isAnnounced(bucket: SeenBucket): boolean {
  if (bucket.announced !== undefined) return true;
  if (bucket.shardCount === 1) return false;
  for (const stored of bucket.limits.values()) if (excessMilli(bucket, stored) > 0) return true;
  return false;
}

/** What a shard holds beyond its share, although nothing has accrued since. */
export function excessMilli(bucket: SeenBucket, stored: StoredLimit): number {
  const { capacityMilli } = shardRate(stored.rate, bucket.shard, bucket.shardCount);
  return Math.max(0, stored.tokensMilli - capacityMilli);
}

/** How `matchConfig` sees an item. */
export function builtFrom(bucket: StoredBucket): BuiltFrom {
  return {
    version: bucket.configVersion,
    source: bucket.configSource,
    rateOf: (name) => bucket.limits.get(name)?.rate,
    limitNames: () => bucket.limits.keys(),
    unsupported: (name) => bucket.python?.unsupported.get(name),
  };
}
