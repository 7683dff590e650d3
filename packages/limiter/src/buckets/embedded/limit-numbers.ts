/**
 * The numbers of limits: what a limit holds at a time, and how a consume, a refund or another rate
 * changes it. A bucket has one array for all its limits, `STRIDE` numbers for each.
 *
 * The fast path and the slow path call the same functions, so they cannot differ. The kind of a
 * limit is a case here, and nowhere else in this folder: a limit refills evenly, or it has periods,
 * and then `buckets/periods.ts` decides, or it has slots, of which none come back by themselves.
 */

import {
  balanceAt,
  DEBT_MILLI_MAX,
  forceTake,
  fullLevel,
  hasSlots,
  type Level,
  type Rate,
  remainderAfter,
  tokensAfter,
} from "../../core/bucket.ts";
import { TOKENS_MAX } from "../../domain/check.ts";
import { SCHEDULES } from "../../domain/schedules.ts";
import {
  allowanceOf,
  balanceIn,
  hasPeriods,
  levelIn,
  type PeriodLevel,
  refunded,
  toppedUp,
  unusedLevel,
  withAllowance,
} from "../periods.ts";
import { balanceInForce, inForce, withOtherRate } from "../rates-in-time.ts";

/** Whole numbers; a total of consumption beyond 2^53 is a bigint. */
export type Numbers = (number | bigint)[];

/** Numbers of a limit: tokens, base time, remainder, consumed and counted. */
export const STRIDE = 5;

/**
 * Numbers that a limit with periods has besides. A bucket in which some limit has periods has them
 * for each limit, behind the others: most buckets have none, and a process keeps a million.
 */
export const PERIOD_NUMBERS = 3;

const TOKENS = 0;
const REFILLED_AT = 1;
const REMAINDER = 2;
/** Nothing accrues in a period, so it has no remainder: its end is in that place. */
const END = REMAINDER;
export const CONSUMED = 3;
/** The part of the consumption that is in the snapshots of usage. */
export const COUNTED = 4;
/** Places of the numbers of a period: granted, left at the last reset, consumed for late leases. */
const GRANTED = 0;
const LEFT = 1;
const LATE = 2;

/** From here on a total could leave the safe integers, so ordinary calls end here. */
const CONSUMED_MAX = Number.MAX_SAFE_INTEGER - TOKENS_MAX * 1000;

/** Sets the numbers of a limit that is full and has never been used. */
export function fill(numbers: Numbers, at: number, rate: Rate, nowMs: number): void {
  const place = at * STRIDE;
  setLevel(numbers, place, fullLevel(SCHEDULES.rateAt(rate, nowMs), nowMs));
  numbers[place + CONSUMED] = 0;
  numbers[place + COUNTED] = 0;
  if (!hasPeriods(rate)) return;
  numbers[periodPlace(numbers, place) + LATE] = 0;
  setPeriod(numbers, place, unusedLevel(allowanceOf(rate), nowMs));
}

/** Returns an array of exactly the size needed: one that grows reserves room for more. */
export function numbersFor(rates: readonly Rate[]): Numbers {
  const each = rates.some(hasPeriods) ? STRIDE + PERIOD_NUMBERS : STRIDE;
  const numbers = new Array<number>(rates.length * each);
  for (let place = rates.length * STRIDE; place < numbers.length; place += 1) numbers[place] = 0;
  return numbers;
}

/** Returns the place of a period's numbers, in an array that has them. */
export function periodPlace(numbers: Readonly<Numbers>, place: number): number {
  const limits = numbers.length / (STRIDE + PERIOD_NUMBERS);
  return limits * STRIDE + (place / STRIDE) * PERIOD_NUMBERS;
}

/** Copies the numbers of a limit to another place, or to another bucket. */
export function copyLimit(
  from: Readonly<Numbers>,
  fromAt: number,
  to: Numbers,
  toAt: number,
): void {
  for (let offset = 0; offset < STRIDE; offset += 1) {
    to[toAt * STRIDE + offset] = from[fromAt * STRIDE + offset] as number | bigint;
  }
}

/**
 * Whether a limit can take part in an ordinary call: its clock has not gone back, it has no debt,
 * which a time to live must cover, and its total is far from 2^53. A call that opens a period is
 * not ordinary.
 */
export function isOrdinaryAt(
  numbers: Readonly<Numbers>,
  at: number,
  rate: Rate,
  amount: number,
  nowMs: number,
): boolean {
  const place = at * STRIDE;
  if (hasPeriods(rate) && amount > 0 && nowMs >= (numbers[place + END] as number)) return false;
  return (
    nowMs >= (numbers[place + REFILLED_AT] as number) &&
    (numbers[place + TOKENS] as number) >= 0 &&
    (numbers[place + CONSUMED] as number) < CONSUMED_MAX
  );
}

/** Returns the balance of a limit at a time, in milli-tokens; negative: a debt. */
export function heldAt(numbers: Readonly<Numbers>, at: number, rate: Rate, nowMs: number): number {
  const place = at * STRIDE;
  if (hasPeriods(rate)) return heldInPeriod(numbers, place, rate, nowMs);
  if (rate.schedule !== undefined) return balanceInForce(levelOf(numbers, place), rate, nowMs);
  const elapsedMs = nowMs - (numbers[place + REFILLED_AT] as number);
  if (elapsedMs < 0) return balanceAt(levelOf(numbers, place), rate, nowMs);
  const remainder = numbers[place + REMAINDER] as number;
  return tokensAfter(rate, numbers[place + TOKENS] as number, elapsedMs, remainder);
}

/** Consumes an amount without a check, from a limit that `heldAt` says to hold `held` now. */
export function consumeAt(
  numbers: Numbers,
  at: number,
  rate: Rate,
  held: number,
  amount: number,
  nowMs: number,
): void {
  const place = at * STRIDE;
  if (!hasSlots(rate)) countAt(numbers, at, amount);
  if (hasPeriods(rate)) {
    consumeInPeriod(numbers, place, rate, amount, nowMs);
    return;
  }
  const now = walkAt(numbers, at, rate, nowMs);
  const elapsedMs = nowMs - (numbers[place + REFILLED_AT] as number);
  if (elapsedMs < 0 || now !== rate) {
    setLevel(numbers, place, forceTake(levelOf(numbers, place), now, amount, nowMs));
    return;
  }
  const tokens = numbers[place + TOKENS] as number;
  const remainder = numbers[place + REMAINDER] as number;
  numbers[place + TOKENS] = Math.max(-DEBT_MILLI_MAX, held - amount);
  numbers[place + REFILLED_AT] = nowMs;
  numbers[place + REMAINDER] = remainderAfter(rate, tokens, held, elapsedMs, remainder);
}

/**
 * Refunds an amount. The base time stays: only a consume folds accrued tokens in. `fromEndMs`: the
 * end of the period that it was consumed in.
 */
export function refundAt(
  numbers: Numbers,
  at: number,
  rate: Rate,
  amount: number,
  fromEndMs?: number,
): void {
  if (!hasSlots(rate)) countAt(numbers, at, -amount);
  const place = at * STRIDE;
  if (hasPeriods(rate)) {
    const level = periodOf(numbers, place);
    setPeriod(numbers, place, refunded(level, allowanceOf(rate), amount, fromEndMs));
    return;
  }
  numbers[place] = (numbers[place] as number) + amount;
}

/**
 * Adds tokens that no call has consumed before, and returns how many. A limit that refills evenly
 * takes what it has room for; a period takes all. `Infinity` fills the limit up.
 */
export function addTokens(
  numbers: Numbers,
  at: number,
  rate: Rate,
  amount: number,
  nowMs: number,
): number {
  const held = heldAt(numbers, at, rate, nowMs);
  const place = at * STRIDE;
  if (hasSlots(rate)) return 0;
  if (hasPeriods(rate)) return addToPeriod(numbers, place, rate, amount, nowMs) - held;
  const { capacityMilli } = walkAt(numbers, at, rate, nowMs);
  const added = Math.max(0, Math.min(amount, capacityMilli - held));
  numbers[place] = (numbers[place] as number) + added;
  return added;
}

/** Brings a limit with windows to their last boundary, and returns the numbers in force. */
export function walkAt(numbers: Numbers, at: number, rate: Rate, nowMs: number): Rate {
  if (rate.schedule === undefined) return rate;
  const now = inForce(levelOf(numbers, at * STRIDE), rate, nowMs);
  setLevel(numbers, at * STRIDE, now.level);
  return now.rate;
}

/** Adds to the total of consumption, and leaves the balance as it is. */
export function countAt(numbers: Numbers, at: number, amount: number | bigint): void {
  const place = at * STRIDE + CONSUMED;
  const total = numbers[place] as number | bigint;
  const areNumbers = typeof total === "number" && typeof amount === "number";
  const sum = areNumbers ? total + amount : BigInt(total) + BigInt(amount);
  const isExact = typeof sum === "bigint" || Number.isSafeInteger(sum);
  numbers[place] = isExact ? sum : BigInt(total) + BigInt(amount);
}

/**
 * Gives a limit another rate of its kind: the balance stays, capped, and so does the accrued
 * remainder. A period has its own rules for that.
 */
export function changeRate(
  numbers: Numbers,
  at: number,
  before: Rate,
  after: Rate,
  nowMs: number,
): void {
  if (hasPeriods(after)) {
    changeAllowance(numbers, at * STRIDE, before, after, nowMs);
    return;
  }
  if (hasSlots(after)) {
    // Held slots stay held, so with fewer slots less than none may be free.
    refundAt(numbers, at, after, after.capacityMilli - before.capacityMilli);
    return;
  }
  const place = at * STRIDE;
  setLevel(numbers, place, withOtherRate(levelOf(numbers, place), before, after, nowMs));
}

/** Returns the total that was consumed, in milli-tokens. */
export function consumedAt(numbers: Readonly<Numbers>, at: number): number | bigint {
  return numbers[at * STRIDE + CONSUMED] as number | bigint;
}

/** Returns the consumption that is not in the snapshots of usage yet, in milli-tokens. */
export function uncountedAt(numbers: Readonly<Numbers>, at: number): number | bigint {
  const total = consumedAt(numbers, at);
  const counted = numbers[at * STRIDE + COUNTED] as number | bigint;
  if (typeof total === "number" && typeof counted === "number") return total - counted;
  return BigInt(total) - BigInt(counted);
}

/** Records that the snapshots have all consumption of a limit. */
export function markCountedAt(numbers: Numbers, at: number): void {
  numbers[at * STRIDE + COUNTED] = consumedAt(numbers, at);
}

/** Returns the base time: when a consume last folded the accrued tokens in. */
export function refilledAtMs(numbers: Readonly<Numbers>, at: number): number {
  return numbers[at * STRIDE + REFILLED_AT] as number;
}

/** Returns the level of a limit. */
export function levelAt(numbers: Readonly<Numbers>, at: number): Level {
  return levelOf(numbers, at * STRIDE);
}

/** Sets the level of a limit, and leaves its totals as they are. */
export function setLevelAt(numbers: Numbers, at: number, level: Level): void {
  setLevel(numbers, at * STRIDE, level);
}

function levelOf(numbers: Readonly<Numbers>, place: number): Level {
  return {
    tokensMilli: numbers[place + TOKENS] as number,
    refilledAtMs: numbers[place + REFILLED_AT] as number,
    remainder: numbers[place + REMAINDER] as number,
  };
}

function setLevel(numbers: Numbers, place: number, level: Level): void {
  numbers[place + TOKENS] = level.tokensMilli;
  numbers[place + REFILLED_AT] = level.refilledAtMs;
  numbers[place + REMAINDER] = level.remainder;
}

/** Returns the level of a limit with periods, as it is stored. */
export function periodAt(numbers: Readonly<Numbers>, at: number): PeriodLevel {
  return periodOf(numbers, at * STRIDE);
}

/** Sets the level of a limit with periods. */
export function setPeriodAt(numbers: Numbers, at: number, level: PeriodLevel): void {
  setPeriod(numbers, at * STRIDE, level);
}

/** Opens the period of a quota that is due. A session ends, and is opened by what it grants. */
export function openDueAt(numbers: Numbers, at: number, rate: Rate, nowMs: number): void {
  const place = at * STRIDE;
  if (!hasPeriods(rate) || nowMs < (numbers[place + END] as number)) return;
  if (rate.rule?.kind === "quota") openPeriod(numbers, place, rate, nowMs);
  else setPeriod(numbers, place, unusedLevel(allowanceOf(rate), nowMs));
}

/** Counts tokens that a period consumes for a lease of an earlier one. */
export function countLateAt(numbers: Numbers, at: number, amount: number): void {
  const place = periodPlace(numbers, at * STRIDE) + LATE;
  numbers[place] = (numbers[place] as number) + amount;
}

/** Returns the milli-tokens that the period in force has consumed for leases of earlier ones. */
export function lateAt(numbers: Readonly<Numbers>, at: number): number {
  return numbers[periodPlace(numbers, at * STRIDE) + LATE] as number;
}

function heldInPeriod(
  numbers: Readonly<Numbers>,
  place: number,
  rate: Rate,
  nowMs: number,
): number {
  if (nowMs < (numbers[place + END] as number)) return numbers[place + TOKENS] as number;
  return balanceIn(periodOf(numbers, place), allowanceOf(rate), nowMs);
}

function consumeInPeriod(
  numbers: Numbers,
  place: number,
  rate: Rate,
  amount: number,
  nowMs: number,
): void {
  if (nowMs >= (numbers[place + END] as number)) openPeriod(numbers, place, rate, nowMs);
  const tokens = numbers[place + TOKENS] as number;
  numbers[place + TOKENS] = Math.max(-DEBT_MILLI_MAX, tokens - amount);
  numbers[place + REFILLED_AT] = Math.max(nowMs, numbers[place + REFILLED_AT] as number);
}

/** Returns the balance that the addition leaves. */
function addToPeriod(
  numbers: Numbers,
  place: number,
  rate: Rate,
  amount: number,
  nowMs: number,
): number {
  const allowance = allowanceOf(rate);
  const isOver = nowMs >= (numbers[place + END] as number);
  // A reset ends a session: the next call opens a new one.
  if (rate.rule?.kind === "session" && !Number.isFinite(amount)) {
    setPeriod(numbers, place, unusedLevel(allowance, nowMs));
    return allowance.amountMilli;
  }
  if (isOver) openPeriod(numbers, place, rate, nowMs);
  const level = toppedUp(periodOf(numbers, place), allowance, amount);
  setPeriod(numbers, place, level);
  return level.tokensMilli;
}

function openPeriod(numbers: Numbers, place: number, rate: Rate, nowMs: number): void {
  setPeriod(numbers, place, levelIn(periodOf(numbers, place), allowanceOf(rate), nowMs));
  numbers[periodPlace(numbers, place) + LATE] = 0;
}

function changeAllowance(
  numbers: Numbers,
  place: number,
  before: Rate,
  after: Rate,
  nowMs: number,
): void {
  const old = allowanceOf(before);
  const stored = periodOf(numbers, place);
  const isQuota = before.rule?.kind === "quota";
  // The old rule opens the period that is due: a changed rule must not reset it twice.
  const level = isQuota ? levelIn(stored, old, nowMs) : stored;
  setPeriod(numbers, place, withAllowance(level, old, allowanceOf(after), nowMs));
}

function periodOf(numbers: Readonly<Numbers>, place: number): PeriodLevel {
  return {
    tokensMilli: numbers[place + TOKENS] as number,
    endMs: numbers[place + END] as number,
    grantedMilli: numbers[periodPlace(numbers, place) + GRANTED] as number,
    leftMilli: numbers[periodPlace(numbers, place) + LEFT] as number,
  };
}

function setPeriod(numbers: Numbers, place: number, level: PeriodLevel): void {
  numbers[place + TOKENS] = level.tokensMilli;
  numbers[place + END] = level.endMs;
  numbers[periodPlace(numbers, place) + GRANTED] = level.grantedMilli;
  numbers[periodPlace(numbers, place) + LEFT] = level.leftMilli;
}
