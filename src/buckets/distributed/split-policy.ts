/**
 * When a bucket doubles. Pure.
 *
 * The first split waits for nothing. Afterwards calls that were throttled before come back for a
 * while and prove little: soon after a split, nearly all calls must be throttled, or the meter of
 * the shard must be saturated. Clocks differ, so what counts is since when this process knows of the
 * shards; one that has just started may go by the base time, when that is old on every clock.
 */

import { isPinned, type SeenBucket } from "./image.ts";
import { SHARDS_MAX } from "./shards.ts";

/** What asks for a split: the shard's own meter, or the store that throttles it. */
export type Sign = "saturated" | "throttled";

/** What this process has seen of a bucket since it knows how many shards there are. */
export interface Load {
  readonly count: number;
  readonly sinceMs: number;
  readonly consumed: number;
  readonly throttled: number;
}

/** A bucket doubles at most once in this time. */
export const SPLIT_PAUSE_MS = 1000;
/** Which part of the calls must be throttled, so long after the last split at most. */
const OVERLOADS = [
  { withinMs: 2000, throttledShare: 0.6 },
  { withinMs: 4000, throttledShare: 0.4 },
  { withinMs: Number.POSITIVE_INFINITY, throttledShare: 0.02 },
] as const;
/** A base time that old is older than the last split, on every clock. */
const SETTLED_MS = 10_000;
/** By so much clocks may differ: each is corrected beyond two seconds. */
const CLOCKS_MS = 4000;
const TOKEN_MILLI = 1000;

/** Whether the bucket whose first shard is given may double now. */
export function mayDouble(
  first: SeenBucket,
  sign: Sign,
  load: Load,
  largestMilli: ReadonlyMap<string, number> | undefined,
  nowMs: number,
): boolean {
  if (isPinned(first)) return false;
  return isTimeToDouble(first, sign, load, nowMs) && sharesSuffice(first, largestMilli);
}

/** A shard must hold one token, and the largest request that was seen. */
function sharesSuffice(
  { shardCount, limits }: SeenBucket,
  largestMilli: ReadonlyMap<string, number> | undefined,
): boolean {
  const count = shardCount * 2;
  if (count > SHARDS_MAX) return false;
  for (const [name, { rate }] of limits) {
    const needed = Math.max(TOKEN_MILLI, largestMilli?.get(name) ?? 0);
    if (Math.floor(rate.capacityMilli / count) < needed) return false;
  }
  return true;
}

function isTimeToDouble(
  { shardCount, refilledAtMs }: SeenBucket,
  sign: Sign,
  { sinceMs, consumed, throttled }: Load,
  nowMs: number,
): boolean {
  if (shardCount === 1) return true;
  if (nowMs - refilledAtMs >= SETTLED_MS + CLOCKS_MS && consumed === 0) return true;
  const knownMs = nowMs - sinceMs;
  // The bucket may have been deleted and created since: then the base time tells.
  if (Math.min(knownMs, nowMs - refilledAtMs) < SPLIT_PAUSE_MS) return false;
  if (sign === "saturated") return true;
  const overload = OVERLOADS.find(({ withinMs }) => knownMs < withinMs) ?? OVERLOADS[2];
  return throttled >= overload.throttledShare * (consumed + throttled);
}
