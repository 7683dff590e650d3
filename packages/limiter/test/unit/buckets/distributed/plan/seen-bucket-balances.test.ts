import {
  accruedUp,
  balanceAt,
  balanceMilliAt,
  balanceOf,
  balancesAt,
  boundedChange,
  isEven,
  looksFull,
  mustRebase,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { balanceAt as balanceOfLevel, DEBT_MILLI_MAX } from "@zae-limiter/limiter/core/bucket.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { NOW, shardOf } from "../known.ts";
import { limitOf } from "../written.ts";

const DAY_MS = 86_400_000;
const WHOLE = { shard: 0, shardCount: 1, refilledAtMs: NOW } as const;

function limit(tokensMilli: number, rate: [number, number, number], remainder = 0) {
  const [capacityMilli, refillMilli, periodMs] = rate;
  return {
    tokensMilli,
    rate: { capacityMilli, refillMilli, periodMs },
    totalConsumedMilli: 0,
    remainder,
  };
}

test.each([
  // tokens, remainder, elapsed ms; then balance, remainder, full
  [0, 0, 0, 0, 0, false],
  [0, 0, 1, 0, 3, false],
  [0, 0, 999, 2, 997, false],
  [0, 999, 1, 1, 2, false],
  [9_999, 0, 1000, 10_000, 0, true],
  [-5, 0, 1000, -2, 0, false],
  [10, 0, -1000, 7, 0, false],
])(
  "%i milli-tokens and a remainder of %i become, after %i ms at 3 milli-tokens a second, %i and %i",
  (tokens, remainder, elapsedMs, expected, rest, full) => {
    const balance = balanceAt(WHOLE, limit(tokens, [10_000, 3, 1000], remainder), NOW + elapsedMs);
    expect([balanceOf(balance), balance.remainder]).toEqual([expected, rest]);
    expect(looksFull(balance)).toBe(full);
  },
);

test("a remainder that is no part of a milli-token counts as none", () => {
  expect(balanceAt(WHOLE, limit(0, [10, 1, 1000], 1000), NOW + 999)).toMatchObject({
    accruedMilli: 0,
    remainder: 999,
  });
});

test("a limit is even when every millisecond accrues whole milli-tokens", () => {
  expect(isEven(balanceAt(WHOLE, limit(0, [10, 2000, 1000]), NOW))).toBe(true);
  expect(isEven(balanceAt(WHOLE, limit(0, [10, 2001, 1000]), NOW))).toBe(false);
  expect(isEven(balanceAt(WHOLE, limit(0, [10, 2000, 1000], 1), NOW))).toBe(false);
});

test("a change never makes a debt deeper than the deepest one", () => {
  expect(boundedChange(5, -10)).toBe(-10);
  expect(boundedChange(-DEBT_MILLI_MAX + 3, -10)).toBe(-3);
  expect(boundedChange(-DEBT_MILLI_MAX, -10)).toBe(0);
  expect(boundedChange(-DEBT_MILLI_MAX, 7)).toBe(7);
});

test("all limits of a bucket are brought to the same time", () => {
  expect([...balancesAt(shardOf(4), NOW)].map(([name, at]) => [name, balanceOf(at)])).toEqual([
    ["a", 4000],
  ]);
});

const rates = fc.record({
  capacityMilli: fc.integer({ min: 1, max: 1_000_000 }),
  refillMilli: fc.integer({ min: 1, max: 1_000_000 }),
  periodMs: fc.integer({ min: 1, max: 86_400_000 }),
});

property(
  "the balance of an undivided bucket is that of the core, to the milli-token",
  [rates, fc.integer({ min: -1000, max: 1000 }), fc.nat(100_000), fc.nat(86_399_999)],
  (rate, share, elapsedMs, carried) => {
    const tokensMilli = Math.floor((share * rate.capacityMilli) / 1000);
    const remainder = carried % rate.periodMs;
    const stored = { tokensMilli, rate, totalConsumedMilli: 0, remainder };
    const balance = balanceAt(WHOLE, stored, NOW + elapsedMs);
    const level = { tokensMilli, refilledAtMs: NOW, remainder };
    expect(balanceOf(balance)).toBe(balanceOfLevel(level, rate, NOW + elapsedMs));
    expect(balance.remainder).toBeGreaterThanOrEqual(0);
    expect(balance.remainder).toBeLessThan(rate.periodMs);
    expect(balance.accruedMilli).toBeGreaterThanOrEqual(balance.accruedMin);
    expect(balance.accruedMilli).toBeLessThanOrEqual(balance.accruedMax);
    expect(accruedUp(balance) - balance.accruedMilli).toBe(balance.remainder > 0 ? 1 : 0);
  },
  1000,
);

property(
  "a balance that is computed alone is the one that comes with all its parts, at any time",
  [
    rates,
    fc.maxSafeInteger(),
    fc.integer({ min: -100_000, max: 200_000_000 }),
    fc.integer({ min: -1, max: 86_400_000 }),
    fc.constantFrom([0, 1], [0, 2], [3, 4], [63, 64]),
  ],
  (rate, tokensMilli, elapsedMs, remainder, [shard = 0, shardCount = 1]) => {
    const stored = { tokensMilli, rate, totalConsumedMilli: 0, remainder };
    const bucket = { shard, shardCount, refilledAtMs: NOW };
    const balance = balanceOf(balanceAt(bucket, stored, NOW + elapsedMs));
    expect(balanceMilliAt(bucket, stored, NOW + elapsedMs)).toBe(balance);
  },
  1000,
);

test.each([
  [0, false],
  [DAY_MS, false],
  [DAY_MS + 1, true],
  [-2000, false],
  [-2001, true],
])("a base time that is %i ms old must be moved: %s", (ageMs, expected) => {
  expect(mustRebase(shardOf(4), NOW + ageMs)).toBe(expected);
});

test("a base time must be moved before its arithmetic leaves the safe integers", () => {
  const bucket = shardOf(4);
  const rate = { ...limitOf(bucket).rate, refillMilli: 1_000_000_000_000 };
  const quick = { ...bucket, limits: new Map([["a", { ...limitOf(bucket), rate }]]) };
  expect(mustRebase(quick, NOW + 2000)).toBe(false);
  expect(mustRebase(quick, NOW + 4000)).toBe(true);
});
