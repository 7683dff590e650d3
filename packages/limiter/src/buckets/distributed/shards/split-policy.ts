/**
 * When a bucket splits, and into how many shards. Pure.
 *
 * Being throttled is no reason by itself: the store throttles key ranges, and the traffic may be
 * that of other items. The meter of the shard must show traffic of its own. The first split waits
 * for nothing else. Afterwards calls that were throttled before come back for a
 * while and prove little: soon after a split, nearly all calls must be throttled, or the meter of
 * the shard must be saturated. Clocks differ, so what counts is since when this process knows of
 * the shards; a new process may use the base time, when that is old on every clock.
 */

import { isPinned, type SeenBucket } from "../plan/seen-bucket.ts";
import { SHARDS_MAX } from "./shards.ts";

/** Reason for a split: the shard's own meter, or the store that throttles it. */
export type Sign = "saturated" | "throttled";

/** Traffic of a bucket in this process since it knows how many shards there are. */
export interface Load {
  readonly count: number;
  readonly sinceMs: number;
  readonly consumed: number;
  readonly throttled: number;
  /** How often all clients together write to the shard, by its meter; `undefined`: not measured. */
  readonly writesPerSecond: number | undefined;
}

/** With fewer writes a shard is throttled because of other items of its partition. */
const WRITES_PER_SECOND_MIN = 250;
/** An item with this many writes can hardly take more. */
const WRITES_PER_SECOND_FULL = 700;
/** Calls that are counted as served in addition: a few throttled calls prove little. */
const SERVED_MIN = 4;
/** Writes per second that one partition takes. */
const WRITES_PER_SECOND_MAX = 1000;
/** With this many writes a shard is well used. */
const WRITES_PER_SECOND_USED = 500;
/** A transaction with this many limits stays far below its maximum of 4 MB. */
const LIMITS_WRITTEN_MAX = 4000;
const SETTLED_SHARE = 0.02;
/** A bucket splits at most once in this time: a split that was too small shows only afterwards. */
export const SPLIT_PAUSE_MS = 1000;
/** The share of calls that must be throttled, by the time since the last split. */
const OVERLOADS = [
  { withinMs: 2000, throttledShare: 0.6 },
  { withinMs: 4000, throttledShare: 0.4 },
  { withinMs: Number.POSITIVE_INFINITY, throttledShare: SETTLED_SHARE },
] as const;
/** A base time that old is older than the last split, on every clock. */
const SETTLED_MS = 10_000;
/** The most that clocks of clients differ: each is corrected when more than two seconds off. */
const CLOCKS_MS = 4000;
const TOKEN_MILLI = 1000;

/** Whether the traffic that saturates or throttles a shard is its own. */
export function hasOwnTraffic(sign: Sign, { writesPerSecond }: Load): boolean {
  return sign === "saturated" || (writesPerSecond ?? 0) >= WRITES_PER_SECOND_MIN;
}

/** Bounds of the number of shards besides traffic. */
export interface Room {
  /** The largest amounts that were asked for, by limit. */
  readonly largestMilli: ReadonlyMap<string, number> | undefined;
  readonly maxShards: number;
}

/**
 * Returns into how many shards the first shard splits now; 1: not now. One doubling, unless its
 * meter and the throttled calls show enough traffic for even more shards.
 */
export function splitFactor(
  first: SeenBucket,
  sign: Sign,
  load: Load,
  room: Room,
  nowMs: number,
): number {
  if (isPinned(first) || hasSession(first) || !isTimeToSplit(first, sign, load, nowMs)) return 1;
  let factor = 1;
  const wanted = wantedFactor(load);
  while (factor < wanted && sharesSuffice(first, factor * 2, room)) factor *= 2;
  return factor;
}

/** Whether a limit is a session: one window for all shards would have to be asked of the first. */
function hasSession({ limits }: SeenBucket): boolean {
  for (const { rate } of limits.values()) if (rate.rule?.kind === "session") return true;
  return false;
}

/**
 * Returns two, where a doubling serves the traffic of the shard; otherwise the power of two that is
 * nearest to what the traffic uses well. The meter counts the writes that were served, and
 * throttled calls come on top; while none are throttled, the store still serves what is asked.
 */
function wantedFactor({ consumed, throttled, writesPerSecond = 0 }: Load): number {
  const askedPerSecond = writesPerSecond * (1 + throttled / (consumed + SERVED_MIN));
  if (throttled === 0 || askedPerSecond <= 2 * WRITES_PER_SECOND_MAX) return 2;
  return 2 ** Math.round(Math.log2(askedPerSecond / WRITES_PER_SECOND_USED));
}

/** Returns whether a shard would hold one token, and the largest request that was seen. */
function sharesSuffice(
  { shardCount, limits }: SeenBucket,
  factor: number,
  { largestMilli, maxShards }: Room,
): boolean {
  const count = shardCount * factor;
  if (count > Math.min(maxShards, SHARDS_MAX)) return false;
  if (factor > 2 && factor * limits.size > LIMITS_WRITTEN_MAX) return false;
  for (const [name, { rate }] of limits) {
    const needed = Math.max(TOKEN_MILLI, largestMilli?.get(name) ?? 0);
    if (Math.floor(rate.capacityMilli / count) < needed) return false;
  }
  return true;
}

function isTimeToSplit(
  { shardCount, refilledAtMs }: SeenBucket,
  sign: Sign,
  { sinceMs, consumed, throttled, writesPerSecond = 0 }: Load,
  nowMs: number,
): boolean {
  if (shardCount === 1) return true;
  if (nowMs - refilledAtMs >= SETTLED_MS + CLOCKS_MS && consumed === 0) return true;
  const knownMs = nowMs - sinceMs;
  // The bucket may have been deleted and created since: then the base time decides.
  if (Math.min(knownMs, nowMs - refilledAtMs) < SPLIT_PAUSE_MS) return false;
  if (sign === "saturated") return true;
  const overload = OVERLOADS.find(({ withinMs }) => knownMs < withinMs) ?? OVERLOADS[2];
  // A meter close to what an item can take proves that the calls are not those of before.
  const share = writesPerSecond >= WRITES_PER_SECOND_FULL ? SETTLED_SHARE : overload.throttledShare;
  return throttled >= share * (consumed + throttled);
}
