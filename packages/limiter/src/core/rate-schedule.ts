/**
 * Windows of the week and of the day in which a limit has other numbers than else.
 *
 * The first window that the local minute is in applies, and the numbers of the limit where none
 * does. Between two boundaries a bucket fills as any other. At a boundary what has accrued by the
 * old numbers is cut to the new capacity, and nothing is added: `walk` does that for every boundary
 * that has passed, so that it does not matter when, and how often, a balance is read.
 */

import {
  accrued,
  accruedMilli,
  DEBT_MILLI_MAX,
  fullLevel,
  type Level,
  type Rate,
  refill,
  remainderAfter,
  tokensAfter,
  waitMs,
} from "./bucket.ts";
import { DAY_MS } from "./cron.ts";
import { mulAddDiv } from "./integers.ts";

/** A window: it scales the numbers of its limit, or replaces some of them. */
export interface RateWindow {
  /** Five fields in canonical form: the local minutes in which the window is open. */
  readonly cron: string;
  /** Thousandths by which capacity and refill are multiplied. */
  readonly scaleMilli?: number;
  /** The most the bucket can hold, in whole tokens. */
  readonly capacity?: number;
  /** Tokens that come back in one period. */
  readonly refillAmount?: number;
  /** The length of a period in seconds. */
  readonly refillPeriodSeconds?: number;
}

/** The windows of a limit, in one zone. */
export interface RateSchedule {
  readonly timeZone: string;
  readonly windows: readonly RateWindow[];
}

/** The longest wait; a request that fits only later never fits. */
const HORIZON_MS = 7 * DAY_MS;
/** Boundaries that are walked one by one; a bucket that was idle for longer skips some. */
const WALKED_MAX = 64;

/** Returns whether two limits follow equal windows; those without any are equal too. */
export function sameSchedule(
  one: RateSchedule | undefined,
  other: RateSchedule | undefined,
): boolean {
  if (one === other) return true;
  if (one === undefined || other === undefined) return false;
  if (one.timeZone !== other.timeZone || one.windows.length !== other.windows.length) return false;
  return one.windows.every((window, at) => sameWindow(window, other.windows[at] as RateWindow));
}

function sameWindow(one: RateWindow, other: RateWindow): boolean {
  return (
    one.cron === other.cron &&
    one.scaleMilli === other.scaleMilli &&
    one.capacity === other.capacity &&
    one.refillAmount === other.refillAmount &&
    one.refillPeriodSeconds === other.refillPeriodSeconds
  );
}

/** Returns the rate of a limit in a window. */
export function rateInWindow(base: Rate, window: RateWindow): Rate {
  const { capacityMilli, refillMilli, periodMs } = base;
  const { scaleMilli, capacity, refillAmount, refillPeriodSeconds } = window;
  if (scaleMilli !== undefined) {
    return {
      capacityMilli: Math.max(1, mulAddDiv(capacityMilli, scaleMilli, 0, 1000)),
      refillMilli: Math.max(1, mulAddDiv(refillMilli, scaleMilli, 0, 1000)),
      periodMs,
    };
  }
  return {
    capacityMilli: capacity === undefined ? capacityMilli : capacity * 1000,
    refillMilli: refillAmount === undefined ? refillMilli : refillAmount * 1000,
    periodMs: refillPeriodSeconds === undefined ? periodMs : refillPeriodSeconds * 1000,
  };
}

/** The numbers of a limit by time; `endAt` is the first boundary after an instant. */
export interface RateInTime {
  rateAt(ms: number): Rate;
  endAt(ms: number): number;
  /** Lists all numbers that the limit may have. */
  all(): readonly Rate[];
}

/**
 * Returns a level as it is at the last boundary until `nowMs`. Where more boundaries have passed
 * than are walked, those in the middle are skipped, and the level is never above the exact one.
 */
export function walk(level: Level, rates: RateInTime, nowMs: number): Level {
  const { level: near, isThere } = walked(level, rates, nowMs);
  if (isThere) return near;
  // Walks as far again from the other end. Boundaries may lie closer together there, and each of
  // them must be walked: any of them may cut the balance.
  let spanMs = near.refilledAtMs - level.refilledAtMs;
  for (;;) {
    const skipped = skippedTo(near, rates, Math.max(near.refilledAtMs, nowMs - spanMs));
    const far = walked(skipped, rates, nowMs);
    // A window that ends before it begins would be walked without end.
    if (far.isThere || spanMs === 0) return far.level;
    const walkedMs = far.level.refilledAtMs - skipped.refilledAtMs;
    spanMs = Math.min(walkedMs, Math.floor(spanMs / 2));
  }
}

function walked(
  level: Level,
  rates: RateInTime,
  nowMs: number,
): { readonly level: Level; readonly isThere: boolean } {
  let at = level;
  for (let boundaries = 0; boundaries < WALKED_MAX; boundaries += 1) {
    const endMs = rates.endAt(at.refilledAtMs);
    if (endMs > nowMs) return { level: at, isThere: true };
    at = withRate(at, rates.rateAt(at.refilledAtMs), rates.rateAt(endMs), endMs);
  }
  return { level: at, isThere: rates.endAt(at.refilledAtMs) > nowMs };
}

/**
 * Returns the least that a level may have come to at a later time, whichever windows were open: it
 * was cut to the least capacity, and has filled at the lowest speed.
 */
function skippedTo({ tokensMilli, refilledAtMs }: Level, rates: RateInTime, ms: number): Level {
  const all = rates.all();
  const capacityMilli = Math.min(...all.map((rate) => rate.capacityMilli));
  const gained = Math.min(...all.map((rate) => accruedMilli(rate, ms - refilledAtMs, 0)));
  const isFull = gained >= capacityMilli - tokensMilli;
  return {
    tokensMilli: isFull ? capacityMilli : tokensMilli + gained,
    refilledAtMs: ms,
    remainder: 0,
  };
}

/**
 * Returns a level as of an earlier time: without what accrues from there on, through the
 * boundaries, so that it comes to the same again and nothing accrues twice. Beyond the boundaries
 * that are walked, as much is taken as accrues at the highest speed.
 */
export function walkBack(level: Level, rates: RateInTime, nowMs: number): Level {
  let tokensMilli = level.tokensMilli;
  let atMs = nowMs;
  for (let boundaries = 0; atMs < level.refilledAtMs; boundaries += 1) {
    const isWalked = boundaries < WALKED_MAX;
    const untilMs = isWalked ? Math.min(rates.endAt(atMs), level.refilledAtMs) : level.refilledAtMs;
    const possible = isWalked ? [rates.rateAt(atMs)] : rates.all();
    tokensMilli -= Math.max(...possible.map((rate) => accruedUp(rate, untilMs - atMs)));
    atMs = untilMs;
  }
  return {
    tokensMilli: Math.max(-DEBT_MILLI_MAX, tokensMilli),
    refilledAtMs: nowMs,
    remainder: 0,
  };
}

function accruedUp(rate: Rate, elapsedMs: number): number {
  const { quotient, remainder } = accrued(rate, elapsedMs, 0);
  return remainder > 0 ? quotient + 1 : quotient;
}

/** Gives a level another rate at a time: the balance is cut, and the remainder is scaled. */
export function withRate(level: Level, before: Rate, after: Rate, atMs: number): Level {
  const { tokensMilli, refilledAtMs, remainder } = refill(level, before, atMs);
  if (tokensMilli >= after.capacityMilli) return fullLevel(after, refilledAtMs);
  const scaled = mulAddDiv(remainder, after.periodMs, 0, before.periodMs);
  return { tokensMilli, refilledAtMs, remainder: scaled };
}

/**
 * Returns the time until there is as much as is needed, through the windows that open until then;
 * `Infinity` where it does not fit within a week.
 */
export function waitThrough(
  neededMilli: number,
  availableMilli: number,
  rates: RateInTime,
  nowMs: number,
): number {
  if (neededMilli <= availableMilli) return 0;
  let [held, remainder, atMs] = [availableMilli, 0, nowMs];
  while (atMs - nowMs <= HORIZON_MS) {
    const rate = rates.rateAt(atMs);
    const endMs = rates.endAt(atMs);
    const waitedMs = waitMs(neededMilli, held, rate);
    if (atMs + waitedMs <= endMs) return atMs - nowMs + Math.max(1, waitedMs);
    const after = tokensAfter(rate, held, endMs - atMs, remainder);
    remainder = remainderAfter(rate, held, after, endMs - atMs, remainder);
    const next = rates.rateAt(endMs);
    remainder = mulAddDiv(remainder, next.periodMs, 0, rate.periodMs);
    [held, atMs] = [Math.min(after, next.capacityMilli), endMs];
  }
  return Number.POSITIVE_INFINITY;
}
