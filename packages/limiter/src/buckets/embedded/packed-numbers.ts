/**
 * The numbers of a bucket in one array, a stretch of `STRIDE` for each limit: what a limit holds,
 * and how a consume or a refund changes it.
 */

import { type Rate, remainderAfter, tokensAfter } from "../../core/bucket.ts";
import { TOKENS_MAX } from "../../domain/check.ts";
import { STRIDE } from "./bucket-row.ts";
import type { EmbeddedBucket, EmbeddedLimit } from "./embedded-bucket.ts";

/** Where the numbers of a limit are. */
const TOKENS = 0;
const REFILLED_AT = 1;
const REMAINDER = 2;
const CONSUMED = 3;
const COUNTED = 4;

/** The slow path adds beyond this, because a total could leave the safe integers. */
const CONSUMED_MAX = Number.MAX_SAFE_INTEGER - TOKENS_MAX * 1000;

/** Returns an array of exactly the size needed: one that grows reserves room for more. */
export function numbersOf({ limits }: EmbeddedBucket): number[] {
  const numbers = new Array<number>(limits.length * STRIDE);
  for (let at = 0; at < limits.length; at += 1) {
    const { level, consumedMilli, countedMilli } = limits[at] as EmbeddedLimit;
    const place = at * STRIDE;
    numbers[place + TOKENS] = level.tokensMilli;
    numbers[place + REFILLED_AT] = level.refilledAtMs;
    numbers[place + REMAINDER] = level.remainder;
    numbers[place + CONSUMED] = Number(consumedMilli);
    numbers[place + COUNTED] = Number(countedMilli);
  }
  return numbers;
}

export function limitsOf(
  names: readonly string[],
  rates: readonly Rate[],
  numbers: readonly number[],
): EmbeddedLimit[] {
  return names.map((name, at) => {
    const number = (offset: number) => numbers[at * STRIDE + offset] as number;
    return {
      name,
      rate: rates[at] as Rate,
      level: {
        tokensMilli: number(TOKENS),
        refilledAtMs: number(REFILLED_AT),
        remainder: number(REMAINDER),
      },
      consumedMilli: number(CONSUMED),
      countedMilli: number(COUNTED),
    };
  });
}

/**
 * Returns what a limit holds at a time, in milli-tokens; negative where the slow path has to tell:
 * a debt, a clock that went back, or a total that nears the safe integers.
 */
export function heldAt(numbers: readonly number[], at: number, rate: Rate, nowMs: number): number {
  const place = at * STRIDE;
  const tokens = numbers[place + TOKENS] as number;
  const elapsedMs = nowMs - (numbers[place + REFILLED_AT] as number);
  if (elapsedMs < 0 || (numbers[place + CONSUMED] as number) >= CONSUMED_MAX) return -1;
  if (tokens < 0) return tokens;
  return tokensAfter(rate, tokens, elapsedMs, numbers[place + REMAINDER] as number);
}

/** Takes an amount from a limit that holds so much now, as a refill has made it. */
export function takeAt(
  numbers: number[],
  at: number,
  rate: Rate,
  held: number,
  amount: number,
  nowMs: number,
): void {
  const place = at * STRIDE;
  const tokens = numbers[place + TOKENS] as number;
  const elapsedMs = nowMs - (numbers[place + REFILLED_AT] as number);
  const remainder = numbers[place + REMAINDER] as number;
  numbers[place + TOKENS] = held - amount;
  numbers[place + REFILLED_AT] = nowMs;
  numbers[place + REMAINDER] = remainderAfter(rate, tokens, held, elapsedMs, remainder);
  numbers[place + CONSUMED] = (numbers[place + CONSUMED] as number) + amount;
}

export function refundAt(numbers: number[], at: number, amount: number): void {
  const place = at * STRIDE;
  numbers[place + TOKENS] = (numbers[place + TOKENS] as number) + amount;
  numbers[place + CONSUMED] = (numbers[place + CONSUMED] as number) - amount;
}

/** Returns the time of the last consume. */
export function lastRefillMs(numbers: readonly number[]): number {
  let lastMs = 0;
  for (let place = REFILLED_AT; place < numbers.length; place += STRIDE) {
    lastMs = Math.max(lastMs, numbers[place] as number);
  }
  return lastMs;
}
