/** Splits into two and into more: what all shards hold together, and what each of them may hold. */

import { describe, expect, test } from "vitest";
import { planSplit } from "../../../../src/buckets/distributed/split.ts";
import { shardRate } from "../../../../src/core/shares.ts";
import { NOW, shardOf } from "./known.ts";

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
