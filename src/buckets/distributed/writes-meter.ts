/**
 * `wcu`, the meter of writes: a bucket of one second, carried along in writes that happen anyway.
 *
 * It tells when an item takes more writes than a partition can. It is a heuristic, so nothing is
 * ever refused for it, and most writes count without a condition. Only when a view shows three
 * seconds or more beyond full, the write forgets that time but for two seconds, on condition that
 * the meter is that full indeed. The two seconds are for clocks that differ: to a slower one, a
 * meter that was full a moment ago must not look exhausted.
 * Each item has a meter of its own: it is not shared out among shards.
 */

import { RESERVED_LIMIT } from "../../domain/names.ts";
import { limitImage, type SeenBucket } from "./image.ts";
import type { WritePlan } from "./write-plan.ts";

/** What one write, and one write of a transaction, costs. */
export const WRITE_MILLI = 1000;
export const TRANSACTED_MILLI = 2000;

/** Beyond this it says nothing that it has not said already, and would take long to recover. */
const DEBT_MILLI_MAX = 1_000_000;
const SURPLUS_MILLI_MAX = 3_000_000;
const HEADROOM_MILLI = 2_000_000;

const TOKENS = `b_${RESERVED_LIMIT}_tk`;

/** Counts the write that is planned. An item that has no meter is left without one. */
export function meterWrite(
  plan: WritePlan,
  bucket: SeenBucket,
  nowMs: number,
  costMilli = WRITE_MILLI,
): void {
  const level = levelOf(bucket, nowMs);
  if (level === undefined || level.balanceMilli <= -DEBT_MILLI_MAX) return;
  const { capacityMilli, accruedMilli, balanceMilli } = level;
  if (balanceMilli - capacityMilli < SURPLUS_MILLI_MAX) {
    plan.add(TOKENS, -costMilli);
    return;
  }
  const fullMilli = capacityMilli + HEADROOM_MILLI - accruedMilli;
  plan.set(TOKENS, fullMilli - costMilli);
  plan.atLeast(TOKENS, fullMilli);
}

/** The same in a write that moves the epoch. */
export function moveMeter(
  plan: WritePlan,
  bucket: SeenBucket,
  epochMs: number,
  costMilli = WRITE_MILLI,
): void {
  const level = levelOf(bucket, epochMs);
  if (level === undefined) return;
  const fullMilli = level.capacityMilli + HEADROOM_MILLI;
  // An epoch that is pulled back had promised writes of a time that has not come.
  const balanceMilli = epochMs < bucket.refilledAtMs ? fullMilli : level.balanceMilli;
  plan.set(TOKENS, Math.min(fullMilli, balanceMilli) - costMilli);
}

/** Whether the item has taken more writes than it can. A clock that is behind cannot tell. */
export function isExhausted(bucket: SeenBucket, nowMs: number): boolean {
  if (nowMs < bucket.refilledAtMs) return false;
  const level = levelOf(bucket, nowMs);
  return level !== undefined && level.balanceMilli < WRITE_MILLI;
}

/** Not cut at the capacity. */
function levelOf(bucket: SeenBucket, nowMs: number) {
  if (bucket.writes === undefined) return undefined;
  const whole = { shard: 0, shardCount: 1, refilledAtMs: bucket.refilledAtMs };
  // An epoch that lies ahead says something about clocks, and nothing about writes.
  const atMs = Math.max(nowMs, bucket.refilledAtMs);
  const { stored, share, accruedMilli } = limitImage(whole, bucket.writes, atMs);
  const { capacityMilli } = share;
  return { capacityMilli, accruedMilli, balanceMilli: stored.tokensMilli + accruedMilli };
}
