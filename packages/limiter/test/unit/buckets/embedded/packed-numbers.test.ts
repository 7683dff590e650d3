import {
  balanceMilli,
  type EmbeddedLimit,
  withConsumed,
} from "@zae-limiter/limiter/buckets/embedded/embedded-bucket.ts";
import {
  heldAt,
  lastRefillMs,
  limitsOf,
  numbersOf,
  refundAt,
  takeAt,
} from "@zae-limiter/limiter/buckets/embedded/packed-numbers.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { bucketWith, limitWith, NOW } from "./bucket-of.ts";

const OTHER = limitWith(7000, { name: "other" });

function limitsIn(numbers: readonly number[], limit: EmbeddedLimit): EmbeddedLimit[] {
  return limitsOf(["other", limit.name], [OTHER.rate, limit.rate], numbers);
}

test("numbers hold all that limits hold", () => {
  const limit = limitWith(3000, { consumedMilli: 9000, countedMilli: 4000 });
  expect(limitsIn(numbersOf(bucketWith([OTHER, limit])), limit)).toEqual([OTHER, limit]);
});

property<[number, number, number]>(
  "a consume and a refund change one limit as they do on the slow path",
  [fc.nat(10_000), fc.nat(60_000), fc.nat(10_000)],
  (tokens, elapsedMs, delta) => {
    const limit = limitWith(tokens);
    const nowMs = NOW + elapsedMs;
    const numbers = numbersOf(bucketWith([OTHER, limit]));
    const held = heldAt(numbers, 1, limit.rate, nowMs);
    expect(held).toBe(balanceMilli(limit, nowMs));
    const amount = Math.min(1 + delta, held);
    if (amount > 0) takeAt(numbers, 1, limit.rate, held, amount, nowMs);
    const taken = amount > 0 ? withConsumed(limit, amount, nowMs) : limit;
    expect(limitsIn(numbers, limit)).toEqual([OTHER, taken]);
    refundAt(numbers, 1, 1 + delta);
    expect(limitsIn(numbers, limit)).toEqual([OTHER, withConsumed(taken, -1 - delta, nowMs)]);
  },
  2000,
);

test.each([
  ["a debt", limitWith(-1), NOW],
  ["a clock that went back", limitWith(1000), NOW - 1],
  ["a total near the safe integers", limitWith(1, { consumedMilli: 2 ** 53 - 1 }), NOW],
])("numbers leave %s to the slow path", (_, limit, nowMs) => {
  expect(heldAt(numbersOf(bucketWith([limit])), 0, limit.rate, nowMs)).toBeLessThan(0);
});

test("the last refill is the latest of all limits", () => {
  const numbers = numbersOf(bucketWith([OTHER, limitWith(1000), OTHER]));
  takeAt(numbers, 1, OTHER.rate, 1000, 1000, NOW + 5);
  expect(lastRefillMs(numbers)).toBe(NOW + 5);
});
