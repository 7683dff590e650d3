import { balanceAt, balanceOf } from "@zae-limiter/limiter/buckets/distributed/plan/balance-at.ts";
import {
  planAdjust,
  planConsume,
  weigh,
  withGates,
} from "@zae-limiter/limiter/buckets/distributed/plan/consume-plan.ts";
import type { SeenBucket } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import type { PlanContext } from "@zae-limiter/limiter/buckets/distributed/plan/write-plan.ts";
import type { BucketConfig } from "@zae-limiter/limiter/buckets/leg.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NOW, RULES, shardOf } from "../known.ts";
import { limitOf, written } from "../written.ts";

const DAY_MS = 86_400_000;
const CONFIG = configOf(["a:10/day"]);
const SOFT = { ...CONFIG, limits: [Limit.perDay("a", 10, { soft: true })] };
const CONTEXT: PlanContext = { nowMs: NOW, rules: RULES, trustFull: () => true };

function after(bucket: SeenBucket, config: BucketConfig, amounts: number[], nowMs = NOW) {
  const planned = planConsume(bucket, config, amounts, { ...CONTEXT, nowMs });
  return planned.kind === "write" ? written(bucket, planned.plan) : undefined;
}

test.each<[string, number, BucketConfig, string]>([
  ["enough", 4, CONFIG, "write"],
  ["exactly enough", 2, CONFIG, "write"],
  ["one milli-token too little", 1.999, CONFIG, "refused"],
  ["a debt", -4, CONFIG, "refused"],
  ["too little of a soft limit", 1, SOFT, "write"],
  ["too little, where limits are bypassed", 1, { ...CONFIG, bypass: true }, "write"],
  ["older limits than those of the call", 4, configOf(["a:20/day"], "resource", 2), "write"],
  ["newer limits than those of the call", 4, configOf(["a:20/day"], "resource", 0), "outdated"],
])("a consume of two tokens from a bucket with %s is planned", (_, tokens, config, kind) => {
  expect(planConsume(shardOf(tokens), config, [2000], CONTEXT).kind).toBe(kind);
});

test("a refusal tells what the bucket has at the time of the plan", () => {
  expect(planConsume(shardOf(1), CONFIG, [2000], { ...CONTEXT, nowMs: NOW + DAY_MS / 10 })).toEqual(
    { kind: "write", plan: expect.anything(), guesses: expect.anything() },
  );
  expect(planConsume(shardOf(1), CONFIG, [2000], CONTEXT)).toEqual({
    kind: "refused",
    balancesMilli: [1000],
  });
});

test("a bucket whose time to live is over is written to, even when nothing is consumed", () => {
  const over = shardOf(4, { ttl: NOW / 1000 - 1 });
  expect(planConsume(over, CONFIG, [0], CONTEXT).kind).toBe("write");
  expect(planConsume(shardOf(4), CONFIG, [0], CONTEXT)).toEqual({
    kind: "nothing",
    balancesMilli: [4000],
  });
});

test("a base time that is more than a day old is moved along with the consume", () => {
  const moved = after(shardOf(4), CONFIG, [2000], NOW + 2 * DAY_MS);
  expect(moved?.refilledAtMs).toBe(NOW + 2 * DAY_MS);
  expect(limitOf(moved)).toMatchObject({ tokensMilli: 8000 });
});

test("newer limits come with the consume, and a refusal brings them by a write of their own", () => {
  const newer = configOf(["a:20/day"], "resource", 2);
  expect(limitOf(after(shardOf(4), newer, [2000]))).toMatchObject({
    tokensMilli: 2000,
    rate: { capacityMilli: 20_000 },
  });
  const refused = planConsume(shardOf(4), newer, [9000], CONTEXT);
  if (refused.kind !== "refused" || refused.limitsOnly === undefined) throw new Error("no limits");
  expect(refused.balancesMilli).toEqual([4000]);
  expect(limitOf(written(shardOf(4), refused.limitsOnly))).toMatchObject({
    tokensMilli: 4000,
    rate: { capacityMilli: 20_000 },
  });
});

test("weighing finds what a consume would find, and consumes nothing", () => {
  expect(weigh(shardOf(4), CONFIG, CONTEXT)).toEqual({
    balancesMilli: [4000],
    limitsOnly: undefined,
  });
  const newer = configOf(["a:20/day"], "resource", 2);
  expect(weigh(shardOf(4), newer, CONTEXT)?.balancesMilli).toEqual([4000]);
  expect(weigh(shardOf(4), newer, CONTEXT)?.limitsOnly).toBeDefined();
  expect(weigh(shardOf(4), configOf(["a:20/day"], "resource", 0), CONTEXT)).toBeUndefined();
});

test("limits that are neither soft nor bypassed leave the context as it is", () => {
  expect(withGates(CONTEXT, CONFIG)).toBe(CONTEXT);
  expect(withGates(CONTEXT, { ...CONFIG, bypass: true })).toMatchObject({ bypass: true });
});

property(
  "plans one after the other grant no more than the bucket holds and accrues",
  [
    fc.integer({ min: 0, max: 10_000 }),
    fc.array(fc.tuple(fc.nat(DAY_MS / 8), fc.integer({ min: 1, max: 4000 })), { maxLength: 12 }),
  ],
  (milli, steps) => {
    let bucket = shardOf(milli / 1000);
    let nowMs = NOW;
    let granted = 0;
    for (const [passesMs, amount] of steps) {
      nowMs += passesMs;
      const next = after(bucket, CONFIG, [amount], nowMs);
      if (next === undefined) continue;
      bucket = next;
      granted += amount;
    }
    expect(granted).toBeLessThanOrEqual(milli + ((nowMs - NOW) * 10_000) / DAY_MS);
    expect(Number(limitOf(bucket).totalConsumedMilli)).toBe(10_000 - milli + granted);
    expect(balanceOf(balanceAt(bucket, limitOf(bucket), nowMs))).toBeGreaterThanOrEqual(0);
  },
  500,
);

describe("a change after the fact", () => {
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
});
