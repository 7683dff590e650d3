import { planAdjust } from "@zae-limiter/limiter/buckets/distributed/plan/adjust-plan.ts";
import {
  balanceAt,
  balanceOf,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import type { PlanContext } from "@zae-limiter/limiter/buckets/distributed/plan/write-plan.ts";
import type { BucketConfig } from "@zae-limiter/limiter/buckets/leg.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { NOW, RULES, shardOf } from "../known.ts";
import { limitOf, written } from "../written.ts";

const DAY_MS = 86_400_000;
const CONFIG = configOf(["a:10/day"]);
const CONTEXT: PlanContext = { nowMs: NOW, rules: RULES, trustFull: () => true };

function adjusted(
  bucket: SeenBucket,
  delta: number,
  nowMs = NOW,
  config: BucketConfig = CONFIG,
): SeenBucket | undefined {
  const planned = planAdjust(bucket, config, [delta], { ...CONTEXT, nowMs });
  return planned.kind === "write" ? written(bucket, planned.plan) : undefined;
}

test.each([
  [4, 1500, 2500],
  [4, 9000, -5000],
  [4, -1000, 5000],
  [-4, -1000, -3000],
  [10, -1000, 11_000],
])("a bucket with %d tokens that is adjusted by %i milli-tokens stores %i", (...row) => {
  const [tokens, delta, expected] = row;
  const bucket = adjusted(shardOf(tokens), delta);
  expect(limitOf(bucket).tokensMilli).toBe(expected);
  expect(limitOf(bucket).totalConsumedMilli).toBe(10_000 - tokens * 1000 + delta);
});

test("a refund beyond full is gone by the next look", () => {
  const bucket = adjusted(shardOf(10), -1000) as SeenBucket;
  expect(balanceOf(balanceAt(bucket, limitOf(bucket), NOW))).toBe(10_000);
});

test("an adjustment by nothing, or of limits that the bucket does not have, writes nothing", () => {
  expect(planAdjust(shardOf(4), CONFIG, [0], CONTEXT)).toEqual({
    kind: "nothing",
    balancesMilli: [],
  });
  const other = configOf(["b:10/day"]);
  expect(planAdjust(shardOf(4), other, [500], CONTEXT).kind).toBe("nothing");
});

test("a refund is written whatever has become of the bucket since it was seen", () => {
  const planned = planAdjust(shardOf(4), CONFIG, [-1000], CONTEXT);
  if (planned.kind !== "write") throw new Error("nothing is planned");
  for (const now of [shardOf(2, { refilledAtMs: NOW + 7 }), shardOf(2, { shardCount: 4 })]) {
    expect(limitOf(written(now, planned.plan)).tokensMilli).toBe(3000);
  }
});

test("consuming more needs the bucket that was seen", () => {
  const planned = planAdjust(shardOf(4), CONFIG, [1000], CONTEXT);
  if (planned.kind !== "write") throw new Error("nothing is planned");
  expect(written(shardOf(2), planned.plan)).toBeDefined();
  expect(written(shardOf(2, { refilledAtMs: NOW + 7 }), planned.plan)).toBeUndefined();
});

test("consuming more from a bucket with an old base time moves it", () => {
  const nowMs = NOW + 2 * DAY_MS;
  expect(adjusted(shardOf(4), 1000, nowMs)).toMatchObject({ refilledAtMs: nowMs });
  expect(adjusted(shardOf(4), -1000, nowMs)).toMatchObject({ refilledAtMs: NOW });
});

test("a bypass adjusts the count, and leaves the balance as it is", () => {
  const bucket = adjusted(shardOf(4), 1000, NOW, { ...CONFIG, bypass: true });
  expect(limitOf(bucket)).toMatchObject({ tokensMilli: 4000, totalConsumedMilli: 7000 });
});

property(
  "an adjustment and its opposite leave the stored balance and the total as they were",
  [fc.integer({ min: -5000, max: 9000 }), fc.integer({ min: 1, max: 20_000 })],
  (milli, delta) => {
    const bucket = shardOf(milli / 1000);
    const back = adjusted(adjusted(bucket, delta) as SeenBucket, -delta);
    expect(limitOf(back)).toEqual(limitOf(bucket));
  },
  500,
);
