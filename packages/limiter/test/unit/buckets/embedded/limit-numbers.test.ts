import {
  addTokens,
  changeRate,
  consumeAt,
  consumedAt,
  copyLimit,
  countAt,
  fill,
  heldAt,
  isOrdinaryAt,
  markCountedAt,
  type Numbers,
  refilledAtMs,
  refundAt,
  uncountedAt,
} from "@zae-limiter/limiter/buckets/embedded/limit-numbers.ts";
import { balanceAt, forceTake, fullLevel, type Rate } from "@zae-limiter/limiter/core/bucket.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { bucketWith, limitsIn, limitWith, NOW, type TestLimit } from "./bucket-of.ts";

const OTHER = limitWith(7000, { name: "other" });
const { rate: RATE } = OTHER;

/** The numbers of another limit and of this one, which is second. */
function numbersOf(limit: TestLimit): Numbers {
  return bucketWith([OTHER, limit]).numbers;
}

/** The limit as the numbers have it; the other one must be as it was. */
function limitIn(numbers: Numbers, rate: Rate = RATE): TestLimit {
  const made = bucketWith([OTHER, limitWith(0, { rate })]);
  made.numbers.splice(0, made.numbers.length, ...numbers);
  const [other, limit] = limitsIn(made);
  expect(other).toEqual(OTHER);
  return limit as TestLimit;
}

const anyLimit = fc.tuple(
  fc.oneof(fc.integer({ min: -20_000, max: 12_000 }), fc.constant(10_000)),
  fc.nat(59_999),
);

property(
  "a limit holds what the arithmetic of the core says, also before its base time",
  [anyLimit, fc.integer({ min: -90_000, max: 90_000 })],
  ([tokensMilli, remainder], elapsedMs) => {
    const level = { tokensMilli, refilledAtMs: NOW, remainder };
    const numbers = numbersOf(limitWith(0, { level }));
    const nowMs = NOW + elapsedMs;
    expect(heldAt(numbers, 1, RATE, nowMs)).toBe(balanceAt(level, RATE, nowMs));
  },
  2000,
);

property(
  "a consume changes one limit as the arithmetic of the core does, also into debt",
  [anyLimit, fc.integer({ min: -90_000, max: 90_000 }), fc.integer({ min: 1, max: 30_000 })],
  ([tokensMilli, remainder], elapsedMs, amount) => {
    const level = { tokensMilli, refilledAtMs: NOW, remainder };
    const numbers = numbersOf(limitWith(0, { level, consumedMilli: 500 }));
    const nowMs = NOW + elapsedMs;
    consumeAt(numbers, 1, RATE, heldAt(numbers, 1, RATE, nowMs), amount, nowMs);
    expect(limitIn(numbers)).toMatchObject({
      level: forceTake(level, RATE, amount, nowMs),
      consumedMilli: 500 + amount,
      countedMilli: 0,
    });
  },
  2000,
);

test("a refund adds tokens, takes them off the total, and keeps the base time", () => {
  const numbers = numbersOf(limitWith(4000, { consumedMilli: 6000 }));
  refundAt(numbers, 1, RATE, 2500);
  expect(limitIn(numbers)).toEqual(limitWith(6500, { consumedMilli: 3500 }));
});

test("tokens that are added are in no total, and a count leaves the balance", () => {
  const numbers = numbersOf(limitWith(4000));
  addTokens(numbers, 1, RATE, 1000, NOW);
  countAt(numbers, 1, 700);
  expect(limitIn(numbers)).toEqual(limitWith(5000, { consumedMilli: 700 }));
});

test("a total that leaves the safe integers goes on as a bigint, and never comes back", () => {
  const numbers = numbersOf(limitWith(0, { consumedMilli: Number.MAX_SAFE_INTEGER }));
  countAt(numbers, 1, 2);
  expect(consumedAt(numbers, 1)).toBe(2n ** 53n + 1n);
  countAt(numbers, 1, -5);
  expect(consumedAt(numbers, 1)).toBe(2n ** 53n - 4n);
});

test("uncounted is the difference of two totals, exact beyond the safe integers", () => {
  const total = 2n ** 60n + 1n;
  const numbers = numbersOf(limitWith(0, { consumedMilli: total, countedMilli: 3 }));
  expect(uncountedAt(numbers, 1)).toBe(total - 3n);
  markCountedAt(numbers, 1);
  expect(uncountedAt(numbers, 1)).toBe(0n);
  expect(uncountedAt(numbersOf(limitWith(0, { consumedMilli: 5, countedMilli: 7 })), 1)).toBe(-2);
});

test("a limit that is filled is full from now on, and can be copied", () => {
  const numbers = numbersOf(limitWith(-3, { consumedMilli: 9 }));
  fill(numbers, 1, RATE, NOW + 5);
  expect(limitIn(numbers).level).toEqual(fullLevel(RATE, NOW + 5));
  expect(refilledAtMs(numbers, 1)).toBe(NOW + 5);
  copyLimit(numbers, 1, numbers, 0);
  expect(numbers.slice(0, numbers.length / 2)).toEqual(numbers.slice(numbers.length / 2));
});

test.each([
  ["a debt", limitWith(-1), NOW, false],
  ["a clock that went back", limitWith(1000), NOW - 1, false],
  ["a total near the safe integers", limitWith(1, { consumedMilli: 2 ** 53 - 1 }), NOW, false],
  ["a total beyond the safe integers", limitWith(1, { consumedMilli: 2n ** 60n }), NOW, false],
  ["an empty limit", limitWith(0), NOW, true],
])("%s decides whether a limit can take part in an ordinary call", (_, limit, nowMs, expected) => {
  expect(isOrdinaryAt(numbersOf(limit), 1, RATE, 1, nowMs)).toBe(expected);
});

property(
  "another rate mints nothing: the balance is the smaller one, and the remainder below its period",
  [anyLimit, fc.nat(120_000), fc.integer({ min: 1, max: 40 }), fc.constantFrom(1000, 7000, 60_000)],
  ([tokensMilli, remainder], passedMs, tokens, periodMs) => {
    const level = { tokensMilli, refilledAtMs: NOW, remainder };
    const numbers = numbersOf(limitWith(0, { level }));
    const nowMs = NOW + passedMs;
    const before = heldAt(numbers, 1, RATE, nowMs);
    const rate = { capacityMilli: tokens * 1000, refillMilli: tokens * 1000, periodMs };
    changeRate(numbers, 1, RATE, rate, nowMs);
    expect(heldAt(numbers, 1, rate, nowMs)).toBe(Math.min(before, rate.capacityMilli));
    expect(limitIn(numbers, rate).level.remainder).toBeLessThan(periodMs);
  },
  1000,
);
