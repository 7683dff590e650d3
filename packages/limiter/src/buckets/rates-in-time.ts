/** Buckets of limits with windows: brought to the last boundary, and the numbers in force then. */

import { balanceAt, type Level, type Rate } from "../core/bucket.ts";
import { walk, withRate } from "../core/rate-schedule.ts";
import { SCHEDULES } from "../domain/schedules.ts";
import type { SeenPeriod } from "./leg.ts";

/** A level, and the numbers that are in force from its time on until the next boundary. */
export interface LevelInForce {
  readonly level: Level;
  readonly rate: Rate;
}

/**
 * Returns a level as it is at the last boundary before a time, of a limit or of a shard of it. A
 * level that lies ahead is taken as it is.
 */
export function inForce(
  level: Level,
  rate: Rate,
  nowMs: number,
  shard = 0,
  count = 1,
): LevelInForce {
  const rates = SCHEDULES.inTime(rate, shard, count);
  const walked = walk(level, rates, nowMs);
  return { level: walked, rate: rates.rateAt(Math.max(nowMs, walked.refilledAtMs)) };
}

/** Returns the balance of a limit, or of a shard of it, through the boundaries until a time. */
export function balanceInForce(stored: Level, rate: Rate, nowMs: number): number {
  const { level, rate: now } = inForce(stored, rate, nowMs);
  return balanceAt(level, now, nowMs);
}

/** Gives a level other numbers from now on, each of them with windows or without. */
export function withOtherRate(level: Level, before: Rate, after: Rate, nowMs: number): Level {
  const held = inForce(level, before, nowMs);
  return withRate(held.level, held.rate, SCHEDULES.rateAt(after, nowMs), nowMs);
}

/** Returns when a limit with windows was seen, and its next boundary. */
export function seenWindow(rate: Rate, atMs: number): SeenPeriod {
  return { endMs: SCHEDULES.endAt(rate, atMs), grantedMilli: 0, atMs, isWindow: true };
}
