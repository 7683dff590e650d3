import {
  evaluate,
  planConsume,
  withGates,
} from "@zae-limiter/limiter/buckets/distributed/plan/consume-plan.ts";
import {
  balanceAt,
  balanceOf,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import type { PlanContext } from "@zae-limiter/limiter/buckets/distributed/plan/write-plan.ts";
import type { BucketConfig } from "@zae-limiter/limiter/buckets/leg.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
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

test("newer limits come with the consume, and a refusal plans them by a write of their own", () => {
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
  expect(evaluate(shardOf(4), CONFIG, CONTEXT)).toEqual({
    balancesMilli: [4000],
    limitsOnly: undefined,
  });
  const newer = configOf(["a:20/day"], "resource", 2);
  expect(evaluate(shardOf(4), newer, CONTEXT)?.balancesMilli).toEqual([4000]);
  expect(evaluate(shardOf(4), newer, CONTEXT)?.limitsOnly).toBeDefined();
  expect(evaluate(shardOf(4), configOf(["a:20/day"], "resource", 0), CONTEXT)).toBeUndefined();
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
