/** Splits into two and into more: what all shards hold together, and what each of them may hold. */

import type { SeenBucket } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { WritePlan } from "@zae-limiter/limiter/buckets/distributed/plan/write-plan.ts";
import { planLateShard, planSplit } from "@zae-limiter/limiter/buckets/distributed/shards/split.ts";
import { shardRate } from "@zae-limiter/limiter/core/bucket.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NOW, shardOf } from "../known.ts";
import { limitOf, written } from "../written.ts";

describe.each([2, 4, 8, 16])("a split into %d", (factor) => {
  test.each([10, 9.999, 7, 1.25, 0.001, 0, -3])(
    "a split divides %d tokens, and nothing is minted or lost",
    (tokens) => {
      const { kept, created, plan } = planSplit(shardOf(tokens), NOW, undefined, factor);
      const shards = [kept, ...created];
      expect(shards.map(({ shard }) => shard)).toEqual(
        Array.from({ length: factor }, (_, at) => at),
      );
      const held = shards.map(({ limits }) => limits.get("a")?.tokensMilli ?? Number.NaN);
      expect(held.reduce((sum, milli) => sum + milli, 0)).toBe(Math.round(tokens * 1000));
      shards.forEach(({ shard, limits, shardCount }, at) => {
        expect(shardCount).toBe(factor);
        const { rate } = limits.get("a") as NonNullable<ReturnType<typeof limits.get>>;
        expect(held[at]).toBeLessThanOrEqual(shardRate(rate, shard, factor).capacityMilli);
        if (at > 0) expect(held[at]).toBeGreaterThanOrEqual(0);
      });
      expect(created.map(({ limits }) => limits.get("a")?.totalConsumedMilli)).toEqual(
        created.map(() => 0),
      );
      expect(plan.change.set).toMatchObject({ shard_count: factor });
    },
  );
});

test("a split carries the part of a milli-token over, in units of the longer period", () => {
  const bucket = shardOf(5);
  const { kept } = planSplit(bucket, NOW + 1001, undefined, 4);
  // 10 tokens a day: 1,001 ms are 10,010,000 parts of 86,400,000 to a milli-token.
  expect(kept.limits.get("a")).toMatchObject({ remainder: 4 * 10_010_000 });
});

test("the shards of a bucket that had no count have one", () => {
  const uncounted = shardOf(5, { isUncounted: true });
  const { kept, created } = planSplit(uncounted, NOW, undefined, 2);
  for (const shard of [kept, ...created]) {
    const plan = new WritePlan();
    plan.requireSeen(shard, NOW);
    plan.set("mark", 1);
    expect(written(shard, plan)).toMatchObject({ shardCount: 2, isUncounted: undefined });
  }
});

describe("a shard that was announced", () => {
  /** The Python library has announced shards, and all tokens are still in the first one. */
  function announced(tokens: number, shardCount: number): SeenBucket {
    return shardOf(tokens, { shardCount });
  }

  test("an announced shard gets its share of what its origin holds too much", () => {
    const donor = announced(10, 2);
    const { plan, limits } = planLateShard(donor, donor, 1);
    expect(limits.get("a")).toMatchObject({
      ...{ tokensMilli: 5000, remainder: 0, totalConsumedMilli: 0 },
      rate: limitOf(donor).rate,
    });
    expect(limitOf(written(donor, plan)).tokensMilli).toBe(5000);
  });

  test("a shard whose origin holds no more than its share starts empty", () => {
    const donor = announced(5, 2);
    const { plan, limits } = planLateShard(donor, donor, 1);
    expect(limits.get("a")).toMatchObject({ tokensMilli: 0 });
    expect(plan.change).toEqual({ set: { shard_count: 2 }, add: {}, remove: [] });
  });

  test("the donor must still hold the excess, and must not have been split meanwhile", () => {
    const donor = announced(10, 2);
    const { plan } = planLateShard(donor, donor, 1);
    const poorer = announced(9.999, 2);
    expect(written(poorer, plan)).toBeUndefined();
    expect(written(announced(10, 4), plan)).toBeUndefined();
  });

  property(
    "a late shard and its donor hold together what the donor held, and no more than its share",
    [fc.integer({ min: -10_000, max: 10_000 }), fc.constantFrom(2, 4, 8, 64)],
    (milli, shardCount) => {
      const donor = announced(milli / 1000, shardCount);
      const { plan, limits } = planLateShard(donor, donor, shardCount - 1);
      const late = limits.get("a")?.tokensMilli ?? Number.NaN;
      expect(limitOf(written(donor, plan)).tokensMilli + late).toBe(milli);
      expect(late).toBeGreaterThanOrEqual(0);
      expect(late).toBeLessThanOrEqual(Math.ceil(10_000 / shardCount));
    },
    500,
  );
});
