/**
 * The numbers of limits: what a limit holds at a time, and how a consume, a refund or another rate
 * changes it. A bucket has one array for all its limits, `STRIDE` numbers for each.
 *
 * The fast path and the slow path call the same functions, so they cannot differ. The kind of a
 * limit is a case here, and nowhere else in this folder: so far all limits refill evenly.
 */

import {
  balanceAt,
  DEBT_MILLI_MAX,
  forceTake,
  fullLevel,
  type Level,
  type Rate,
  refill,
  remainderAfter,
  tokensAfter,
} from "../../core/bucket.ts";
import { mulAddDiv } from "../../core/integers.ts";
import { TOKENS_MAX } from "../../domain/check.ts";

/** Whole numbers; a total of consumption beyond 2^53 is a bigint. */
export type Numbers = (number | bigint)[];

/** Numbers of a limit: tokens, base time, remainder, consumed and counted. */
export const STRIDE = 5;

const TOKENS = 0;
const REFILLED_AT = 1;
const REMAINDER = 2;
const CONSUMED = 3;
/** The part of the consumption that is in the snapshots of usage. */
const COUNTED = 4;

/** From here on a total could leave the safe integers, so ordinary calls end here. */
const CONSUMED_MAX = Number.MAX_SAFE_INTEGER - TOKENS_MAX * 1000;

/** Sets the numbers of a limit that is full and has never been used. */
export function fill(numbers: Numbers, at: number, rate: Rate, nowMs: number): void {
  const place = at * STRIDE;
  setLevel(numbers, place, fullLevel(rate, nowMs));
  numbers[place + CONSUMED] = 0;
  numbers[place + COUNTED] = 0;
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
 * which a time to live must cover, and its total is far from 2^53.
 */
export function isOrdinaryAt(numbers: Readonly<Numbers>, at: number, nowMs: number): boolean {
  const place = at * STRIDE;
  return (
    nowMs >= (numbers[place + REFILLED_AT] as number) &&
    (numbers[place + TOKENS] as number) >= 0 &&
    (numbers[place + CONSUMED] as number) < CONSUMED_MAX
  );
}

/** Returns the balance of a limit at a time, in milli-tokens; negative: a debt. */
export function heldAt(numbers: Readonly<Numbers>, at: number, rate: Rate, nowMs: number): number {
  const place = at * STRIDE;
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
  countAt(numbers, at, amount);
  const elapsedMs = nowMs - (numbers[place + REFILLED_AT] as number);
  if (elapsedMs < 0) {
    setLevel(numbers, place, forceTake(levelOf(numbers, place), rate, amount, nowMs));
    return;
  }
  const tokens = numbers[place + TOKENS] as number;
  const remainder = numbers[place + REMAINDER] as number;
  numbers[place + TOKENS] = Math.max(-DEBT_MILLI_MAX, held - amount);
  numbers[place + REFILLED_AT] = nowMs;
  numbers[place + REMAINDER] = remainderAfter(rate, tokens, held, elapsedMs, remainder);
}

/** Refunds an amount. The base time stays: only a consume folds accrued tokens in. */
export function refundAt(numbers: Numbers, at: number, amount: number): void {
  addTokens(numbers, at, amount);
  countAt(numbers, at, -amount);
}

/** Adds tokens that no call has consumed before. */
export function addTokens(numbers: Numbers, at: number, amount: number): void {
  const place = at * STRIDE + TOKENS;
  numbers[place] = (numbers[place] as number) + amount;
}

/** Adds to the total of consumption, and leaves the balance as it is. */
export function countAt(numbers: Numbers, at: number, amount: number): void {
  const place = at * STRIDE + CONSUMED;
  const total = numbers[place] as number | bigint;
  const sum = typeof total === "number" ? total + amount : total + BigInt(amount);
  const isExact = typeof sum === "bigint" || Number.isSafeInteger(sum);
  numbers[place] = isExact ? sum : BigInt(total) + BigInt(amount);
}

/** Gives a limit another rate: the balance stays, capped, and so does the accrued remainder. */
export function changeRate(
  numbers: Numbers,
  at: number,
  before: Rate,
  after: Rate,
  nowMs: number,
): void {
  const level = refill(levelOf(numbers, at * STRIDE), before, nowMs);
  const { tokensMilli, refilledAtMs, remainder } = level;
  const isFull = tokensMilli >= after.capacityMilli;
  setLevel(
    numbers,
    at * STRIDE,
    isFull
      ? fullLevel(after, refilledAtMs)
      : {
          tokensMilli,
          refilledAtMs,
          remainder: mulAddDiv(remainder, after.periodMs, 0, before.periodMs),
        },
  );
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
