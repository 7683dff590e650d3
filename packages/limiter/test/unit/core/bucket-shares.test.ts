import {
  type Level,
  type Rate,
  refill,
  shardRate,
  shareOf,
} from "@zae-limiter/limiter/core/bucket.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { partsOf } from "./oracle.ts";

const SHARDS_MAX = 64;
const amount = fc.oneof(
  fc.integer({ min: 1, max: 1000 }),
  fc.integer({ min: 1, max: 1_000_000_000_000_000 }),
);
const count = fc.integer({ min: 1, max: SHARDS_MAX });
const rateOf = fc.record({
  capacityMilli: amount,
  refillMilli: amount,
  periodMs: fc.integer({ min: 1, max: 1_000_000_000_000 }),
});

function shards(shardCount: number): number[] {
  return Array.from({ length: shardCount }, (_, shard) => shard);
}

describe("shareOf", () => {
  test("the odd parts go to the first shards: 10 over 4 is 3, 3, 2, 2 (B50)", () => {
    expect(shards(4).map((shard) => shareOf(10, shard, 4))).toEqual([3, 3, 2, 2]);
  });

  property("the shares add up exactly and differ by at most one", [amount, count], (whole, n) => {
    const parts = shards(n).map((shard) => shareOf(whole, shard, n));
    expect(parts.reduce((sum, part) => sum + part, 0)).toBe(whole);
    expect(Math.max(...parts) - Math.min(...parts)).toBeLessThanOrEqual(1);
  });

  property(
    "shard i of n is shards i and i + n of 2n together",
    [amount, count, fc.nat(SHARDS_MAX - 1)],
    (whole, n, any) => {
      const shard = any % n;
      const halves = shareOf(whole, shard, 2 * n) + shareOf(whole, shard + n, 2 * n);
      expect(halves).toBe(shareOf(whole, shard, n));
    },
  );

  property(
    "the shares of a debt add up exactly too",
    [fc.integer({ min: -1_000_000_000_000_000, max: -1 }), count],
    (whole, n) => {
      const sum = shards(n).reduce((total, shard) => total + shareOf(whole, shard, n), 0);
      expect(sum).toBe(whole);
    },
  );
});

describe("shardRate", () => {
  test("a single shard has the limit as it is", () => {
    const rate: Rate = { capacityMilli: 1000, refillMilli: 1000, periodMs: 60_000 };
    expect(shardRate(rate, 0, 1)).toBe(rate);
  });

  property(
    "the capacities add up and the period stays a safe integer",
    [rateOf, count],
    (rate, n) => {
      const parts = shards(n).map((shard) => shardRate(rate, shard, n));
      expect(parts.reduce((sum, part) => sum + part.capacityMilli, 0)).toBe(rate.capacityMilli);
      expect(parts.every((part) => part.refillMilli === rate.refillMilli)).toBe(true);
      expect(parts.every((part) => Number.isSafeInteger(part.periodMs))).toBe(true);
    },
  );

  property(
    "over time, shard i of n gains what shards i and i + n of 2n gain together",
    [rateOf, count, fc.nat(SHARDS_MAX - 1), fc.integer({ min: 1, max: 31_536_000_000 })],
    (rate, n, any, elapsed) => {
      const shard = any % n;
      // From a debt too large for that time, so that no cap hides a difference.
      const empty: Level = { tokensMilli: -8_000_000_000_000_000, refilledAtMs: 0, remainder: 0 };
      const grown = (part: Rate) => {
        const after = refill(empty, part, elapsed);
        fc.pre(after.tokensMilli < 0);
        return partsOf(after, part) - partsOf(empty, part);
      };
      // A part of 2n is half as large as a part of n, so two halves count the same number twice.
      const whole = grown(shardRate(rate, shard, n));
      const lower = grown(shardRate(rate, shard, 2 * n));
      const upper = grown(shardRate(rate, shard + n, 2 * n));
      expect(lower + upper).toBe(2n * whole);
    },
  );
});
