/**
 * When the number of shards of a bucket is halved. Pure.
 *
 * When at most a quarter of the shards was needed for ten minutes, and when half of them is enough
 * for what the last hour needed. What a bucket needed is on its first shard, so it does not matter
 * which client reads it, or since when it runs.
 */

import { RESERVED_LIMIT } from "../../../domain/names.ts";
import { WRITES_RATE } from "../../../records/bucket-item.ts";
import { isAnnounced, isPinned, type SeenBucket } from "../plan/seen-bucket.ts";
import { levelOfShards, needOf, peaksOf } from "./need.ts";

/** How long one client works on a bucket before another one may. */
export const CLAIM_MS = 60_000;

/** Whether the bucket whose first shard is given has more shards than it needs. */
export function mayHalve(first: SeenBucket, nowMs: number): boolean {
  const { shard, shardCount, mergingAtMs } = first;
  if (shard !== 0 || shardCount === 1 || !isMergeable(first)) return false;
  if (mergingAtMs !== undefined && nowMs - mergingAtMs < CLAIM_MS) return false;
  return isOversized(first, nowMs);
}

/** Whether the traffic on record leaves room for half of the shards. */
export function isOversized(first: SeenBucket, nowMs: number): boolean {
  const { shardCount } = first;
  const need = needOf(first);
  if (shardCount === 1 || need === undefined) return false;
  const { recent, hour } = peaksOf(need, nowMs);
  return recent <= levelOfShards(shardCount / 4) && hour <= levelOfShards(shardCount / 2);
}

/**
 * Whether a shard may be merged at all. A client of the Python library makes a shard that it
 * misses, full: where one has left a trace, shards stay.
 */
export function isMergeable(bucket: SeenBucket): boolean {
  const { python } = bucket;
  if (isAnnounced(bucket) || isPinned(bucket) || python?.windows) return false;
  if (python?.resets && !hasQuota(bucket)) return false;
  return (bucket.writes?.tokensMilli ?? Number.NaN) === WRITES_RATE.capacityMilli;
}

/** Whether the resets of an item are those of a limit that it has. */
function hasQuota({ limits }: SeenBucket): boolean {
  for (const { period } of limits.values()) if (period !== undefined) return true;
  return false;
}

/** The attribute in which a Python client leaves its trace. */
export const PYTHON_TRACE = `b_${RESERVED_LIMIT}_tk`;
