import fc from "fast-check";
import { expect, test } from "vitest";
import { planLateShard } from "../../../../src/buckets/distributed/late-shard.ts";
import type { SeenBucket } from "../../../../src/buckets/distributed/seen-bucket.ts";
import { property } from "../../../support/property.ts";
import { shardOf } from "./known.ts";
import { limitOf, written } from "./written.ts";

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
