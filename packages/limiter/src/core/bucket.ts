/**
 * The token bucket, in integer milli-tokens and milliseconds.
 *
 * A bucket holds at most `capacityMilli` and gains `refillMilli` every `periodMs`, evenly. What a
 * refill cannot express as a whole milli-token stays in `remainder` (in milli-tokens times
 * milliseconds), so any split of an interval yields the same total as the interval in one piece.
 * A full bucket gains nothing: the time beyond full, remainder included, is gone. Divisions round
 * toward minus infinity, so that rounding never admits anything.
 *
 * A limit may be spread over shards. Capacities are divided with the odd milli-tokens going to the
 * first shards; rates keep the refill amount and stretch the period, so nothing is rounded.
 * Doubling the count splits every shard in two without changing the sum: shard i of n equals shards
 * i and i + n of 2n together.
 */

import { type Division, floorDiv, mulAddDiv, mulAddDivRem } from "./integers.ts";
import type { PeriodRule } from "./period-rule.ts";
import type { RateSchedule } from "./rate-schedule.ts";

/**
 * The deepest debt, eight times the largest capacity. Debts stop there, so that the distance to a
 * full bucket is always a safe integer and is paid back exactly.
 */
export const DEBT_MILLI_MAX = Number.MAX_SAFE_INTEGER - 1_000_000_000_000_000;

/**
 * The most that a bucket holds and how fast it fills. All three numbers are positive integers, but
 * for the refill of a limit with a rule, which resets at the end of a period, and of slots, which
 * come back when a lease ends: it is 0.
 */
export interface Rate {
  readonly capacityMilli: number;
  readonly refillMilli: number;
  readonly periodMs: number;
  /** When a quota or a session resets; absent: the bucket fills evenly. */
  readonly rule?: PeriodRule;
  /** Windows in which the limit has other numbers; absent: it always has these. */
  readonly schedule?: RateSchedule;
}

/** The balance of a bucket at a moment. Negative after an adjustment that went into debt. */
export interface Level {
  readonly tokensMilli: number;
  readonly refilledAtMs: number;
  /** `0 <= remainder < periodMs`: the part of the next milli-token that has already accrued. */
  readonly remainder: number;
}

/** How the tokens of a limit come back. */
interface Refill {
  readonly refillMilli: number;
  readonly rule?: PeriodRule | undefined;
}

/** Whether a limit is of slots: nothing accrues, and nothing resets. */
export function hasSlots({ refillMilli, rule }: Refill): boolean {
  return refillMilli === 0 && rule === undefined;
}

/** Returns the level of a full bucket. */
export function fullLevel(rate: Rate, nowMs: number): Level {
  return { tokensMilli: rate.capacityMilli, refilledAtMs: nowMs, remainder: 0 };
}

/** How fast a bucket fills. */
type Speed = Pick<Rate, "refillMilli" | "periodMs">;

/** Returns the milli-tokens accrued over `elapsedMs`, uncapped; negative if time ran backwards. */
export function accruedMilli(rate: Speed, elapsedMs: number, remainder: number): number {
  return mulAddDiv(elapsedMs, rate.refillMilli, remainder, rate.periodMs);
}

/** Returns what `accruedMilli` does, with the remainder of the rounding. */
export function accrued(rate: Speed, elapsedMs: number, remainder: number): Division {
  return mulAddDivRem(elapsedMs, rate.refillMilli, remainder, rate.periodMs);
}

/**
 * Returns what a bucket of `tokensMilli` holds after `elapsedMs`, which is not negative. Every
 * refill of every embedded store is computed by this and `remainderAfter`, on plain numbers: a
 * bucket that is kept as numbers needs no object for it.
 */
export function tokensAfter(
  rate: Rate,
  tokensMilli: number,
  elapsedMs: number,
  remainder: number,
): number {
  const parts = elapsedMs * rate.refillMilli + remainder;
  const gained =
    parts <= Number.MAX_SAFE_INTEGER
      ? Math.floor(parts / rate.periodMs)
      : accruedMilli(rate, elapsedMs, remainder);
  // Compared by subtraction: the sum could pass 2^53 when what was gained is saturated.
  return gained >= rate.capacityMilli - tokensMilli ? rate.capacityMilli : tokensMilli + gained;
}

/** Returns the remainder that goes with `tokensAfter`. A full bucket has none. */
export function remainderAfter(
  rate: Rate,
  tokensMilli: number,
  afterMilli: number,
  elapsedMs: number,
  remainder: number,
): number {
  if (afterMilli === rate.capacityMilli) return 0;
  const parts = elapsedMs * rate.refillMilli + remainder;
  return parts <= Number.MAX_SAFE_INTEGER
    ? parts - (afterMilli - tokensMilli) * rate.periodMs
    : accrued(rate, elapsedMs, remainder).remainder;
}

/** Returns the level at `nowMs`. A clock that has stopped or ran backwards changes nothing. */
export function refill(level: Level, rate: Rate, nowMs: number): Level {
  const elapsedMs = nowMs - level.refilledAtMs;
  if (elapsedMs <= 0) {
    const over = level.tokensMilli - rate.capacityMilli;
    if (over < 0 || (over === 0 && level.remainder === 0)) return level;
    return fullLevel(rate, level.refilledAtMs);
  }
  const tokensMilli = tokensAfter(rate, level.tokensMilli, elapsedMs, level.remainder);
  const remainder = remainderAfter(
    rate,
    level.tokensMilli,
    tokensMilli,
    elapsedMs,
    level.remainder,
  );
  return { tokensMilli, refilledAtMs: nowMs, remainder };
}

/**
 * Returns the balance at `nowMs`. Before the time of the level it is as much less as accrues until
 * then, without a bound: a clock that was set back, or one that is behind, earns no time twice.
 */
export function balanceAt(level: Level, rate: Rate, nowMs: number): number {
  const elapsedMs = nowMs - level.refilledAtMs;
  if (elapsedMs >= 0) return refill(level, rate, nowMs).tokensMilli;
  const balance = level.tokensMilli + accruedMilli(rate, elapsedMs, level.remainder);
  return Math.max(-DEBT_MILLI_MAX, Math.min(rate.capacityMilli, balance));
}

/**
 * Consumes an amount without a check: the bucket may go into debt, down to `DEBT_MILLI_MAX`. A
 * negative amount is a refund.
 */
export function forceTake(level: Level, rate: Rate, amountMilli: number, nowMs: number): Level {
  const refilled =
    nowMs < level.refilledAtMs ? cappedAt(level, rate, nowMs) : refill(level, rate, nowMs);
  const tokensMilli = Math.max(-DEBT_MILLI_MAX, refilled.tokensMilli - amountMilli);
  return { ...refilled, tokensMilli };
}

/** Returns the level without the part beyond full at `nowMs`, which lies before its time. */
function cappedAt(level: Level, rate: Rate, nowMs: number): Level {
  const { capacityMilli } = rate;
  const { quotient, remainder } = accrued(rate, nowMs - level.refilledAtMs, level.remainder);
  // What accrues from now until the time of the level comes on top of a full bucket.
  if (level.tokensMilli <= capacityMilli - quotient) return level;
  return { ...level, tokensMilli: capacityMilli - quotient - (remainder > 0 ? 1 : 0) };
}

/** Returns the time until the bucket has `neededMilli`; `Infinity` when they never fit. */
export function waitMs(neededMilli: number, availableMilli: number, rate: Rate): number {
  if (neededMilli <= availableMilli) return 0;
  if (neededMilli > rate.capacityMilli) return Number.POSITIVE_INFINITY;
  return retryAfterMs(neededMilli - availableMilli, rate);
}

/**
 * Returns the time in which `deficitMilli` accrue, rounded up past the next millisecond; `Infinity`
 * when nothing accrues.
 */
export function retryAfterMs(deficitMilli: number, rate: Speed): number {
  if (deficitMilli <= 0) return 0;
  if (rate.refillMilli === 0) return Number.POSITIVE_INFINITY;
  return mulAddDiv(deficitMilli, rate.periodMs, 0, rate.refillMilli) + 1;
}

/** The most shards: more would spread even a large limit too thin to be useful. */
export const SHARDS_MAX = 64;

/** Returns the part of `amount` that shard `shard` of `count` has. The parts add up to `amount`. */
export function shareOf(amount: number, shard: number, count: number): number {
  const part = floorDiv(amount, count);
  return shard < amount - part * count ? part + 1 : part;
}

/** Returns the rate of one shard: its share of the capacity, and the refill per `count` periods. */
export function shardRate(rate: Rate, shard: number, count: number): Rate {
  if (count === 1) return rate;
  const share = {
    capacityMilli: shareOf(rate.capacityMilli, shard, count),
    refillMilli: rate.refillMilli,
    periodMs: rate.periodMs * count,
  };
  return rate.rule === undefined ? share : { ...share, rule: rate.rule };
}
