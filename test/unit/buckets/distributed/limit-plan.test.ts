import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { balanceAt, balanceOf } from "../../../../src/buckets/distributed/balance-at.ts";
import {
  amountsByName,
  consumes,
  countAcquires,
  exceeds,
  isStampedDisabled,
  leftOf,
  type PlanContext,
  planLimit,
  planTtl,
  requireCovered,
  requireEnabled,
} from "../../../../src/buckets/distributed/limit-plan.ts";
import type { SeenBucket } from "../../../../src/buckets/distributed/seen-bucket.ts";
import { WritePlan } from "../../../../src/buckets/distributed/write-plan.ts";
import { DEBT_MILLI_MAX } from "../../../../src/core/bucket.ts";
import { property } from "../../../support/property.ts";
import { configOf } from "../table.ts";
import { NOW, shardOf } from "./known.ts";
import { itemOf, limitOf, written, writtenItem } from "./written.ts";

const DAY_MS = 86_400_000;
const CONTEXT: PlanContext = { nowMs: NOW, ttlMultiplier: 7, trustFull: () => true };

function changed(bucket: SeenBucket, amount: number, more: Partial<PlanContext> = {}) {
  const context = { ...CONTEXT, ...more };
  const plan = new WritePlan();
  const balance = balanceAt(bucket, limitOf(bucket), context.nowMs);
  const guess = planLimit(plan, "a", balance, amount, context);
  return { plan, guess, after: written(bucket, plan) };
}

test("amounts are found by the names of their limits, and a missing one is 0", () => {
  const config = configOf(["a:1/min", "b:1/min"]);
  expect([...amountsByName(config, [5])]).toEqual([
    ["a", 5],
    ["b", 0],
  ]);
});

test.each([
  [[5, 0], [5, -3], false],
  [[6, 0], [5, 9], true],
  [[0, 1], [-5, 1], false],
  [[-7, 0], [-9, 0], false],
])("amounts %j exceed balances %j: %s", (amounts, balances, expected) => {
  expect(exceeds(amounts, balances)).toBe(expected);
});

test("only an amount above zero is a consume", () => {
  expect([consumes([0, 1]), consumes([0, -1]), consumes([])]).toEqual([true, false, false]);
});

test.each<[string, number[], Partial<PlanContext>, number | undefined]>([
  ["a consume", [5], {}, 1],
  ["a consume of nothing", [0], {}, undefined],
  ["an adjustment", [5], { force: true }, undefined],
  ["a write for three calls", [5], { acquires: 3 }, 3],
  ["a refund that makes an acquire void", [-5], { force: true, acquires: -1 }, -1],
])("%s counts as so many acquires", (_, amounts, more, expected) => {
  const plan = new WritePlan();
  countAcquires(plan, amounts, { ...CONTEXT, ...more });
  expect(Object.values(plan.change.add ?? {})[0]).toBe(expected);
});

describe("one limit", () => {
  test("a low one loses the amount, and its base time stays", () => {
    const { after, guess } = changed(shardOf(4), 1500);
    expect(limitOf(after)).toMatchObject({ tokensMilli: 2500, totalConsumedMilli: 7500 });
    expect(after?.refilledAtMs).toBe(NOW);
    expect(guess).toMatchObject({ full: false, lookedFull: false, tokensMilli: 2500 });
  });

  test("a full one drops the time beyond full", () => {
    const idle = shardOf(4);
    const nowMs = NOW + 3 * DAY_MS;
    const { after } = changed(idle, 1500, { nowMs });
    expect(balanceOf(balanceAt(after as SeenBucket, limitOf(after), nowMs))).toBe(8500);
  });

  test("a limit that only looks full is consumed from like a low one", () => {
    const nowMs = NOW + 3 * DAY_MS;
    const { guess, after } = changed(shardOf(4), 1500, { nowMs, trustFull: () => false });
    expect(guess).toMatchObject({ full: false, lookedFull: true });
    // The write needs a bucket that is not full, and this one is.
    expect(after).toBeUndefined();
  });

  test("a refund needs nothing but the limit, and goes to the stored balance", () => {
    expect(limitOf(changed(shardOf(4), -1000).after)).toMatchObject({
      tokensMilli: 5000,
      totalConsumedMilli: 5000,
    });
    const { plan } = changed(shardOf(4), -1000);
    const { b_a_tk: _, ...without } = itemOf(shardOf(4));
    expect(writtenItem(without as ReturnType<typeof itemOf>, plan)).toBeUndefined();
  });

  test("a bypass counts what was consumed, and leaves the balance as it is", () => {
    const { after } = changed(shardOf(4), 9000, { bypass: true });
    expect(limitOf(after)).toMatchObject({ tokensMilli: 4000, totalConsumedMilli: 15_000 });
  });

  test.each<[string, Partial<PlanContext>, boolean]>([
    ["a consume", {}, false],
    ["an adjustment", { force: true }, true],
    ["a consume from a soft limit", { soft: new Set(["a"]) }, true],
    ["a consume from another soft limit", { soft: new Set(["b"]) }, false],
  ])("%s may make a debt or may not", (_, more, expected) => {
    expect(changed(shardOf(1), 2000, more).after !== undefined).toBe(expected);
  });

  test("a debt stops at the deepest one", () => {
    const bucket = shardOf(0);
    const deep = { ...limitOf(bucket), tokensMilli: -DEBT_MILLI_MAX + 100 };
    const { after } = changed({ ...bucket, limits: new Map([["a", deep]]) }, 500, { force: true });
    expect(limitOf(after).tokensMilli).toBe(-DEBT_MILLI_MAX);
  });

  property(
    "after a consume the bucket has the amount less, whatever time has passed",
    [fc.integer({ min: -5000, max: 10_000 }), fc.nat(2 * DAY_MS), fc.integer({ min: 1, max: 500 })],
    (milli, elapsedMs, amount) => {
      const nowMs = NOW + elapsedMs;
      const bucket = shardOf(milli / 1000);
      const before = balanceOf(balanceAt(bucket, limitOf(bucket), nowMs));
      const { after } = changed(bucket, amount, { nowMs });
      expect(after !== undefined).toBe(before >= amount);
      if (after === undefined) return;
      expect(balanceOf(balanceAt(after, limitOf(after), nowMs))).toBe(before - amount);
      const { remainder } = limitOf(after);
      expect(remainder >= 0 && remainder < DAY_MS).toBe(true);
    },
    1000,
  );
});

describe("the time to live", () => {
  const config = configOf(["a:10/day"]);
  const renewed = (bucket: SeenBucket, nowMs = NOW, source = config.source) => {
    const plan = new WritePlan();
    const left = leftOf(new Map([["a", balanceAt(bucket, limitOf(bucket), nowMs)]]), new Map());
    const ttl = planTtl(plan, bucket, { source }, left, { nowMs, ttlMultiplier: 7 });
    return { ttl, change: plan.change };
  };

  test("a time that is good enough stays, and one that is half over is renewed", () => {
    const bucket = shardOf(4);
    expect(renewed(bucket)).toMatchObject({ ttl: bucket.ttl, change: { set: {}, remove: [] } });
    const nowMs = NOW + 4 * DAY_MS;
    const { ttl, change } = renewed(bucket, nowMs);
    expect(ttl).toBe(Math.ceil(nowMs / 1000) + 7 * 86_400 + 1);
    expect(change.set).toEqual({ ttl });
  });

  test("a bucket with several shards, or with limits of its own, has none", () => {
    for (const { ttl, change } of [
      renewed(shardOf(4, { shardCount: 2 })),
      renewed(shardOf(4), NOW, "entity"),
    ]) {
      expect([ttl, change.remove]).toEqual([undefined, ["ttl"]]);
    }
  });

  test("a write that begins a time to live needs balances that the time covers", () => {
    const bucket = shardOf(-3, { ttl: undefined });
    const ttl = NOW / 1000 + 86_400;
    const plan = new WritePlan();
    plan.set("ttl", ttl);
    const balances = new Map([["a", balanceAt(bucket, limitOf(bucket), NOW)]]);
    requireCovered(plan, bucket, balances, new Map(), ttl, CONTEXT);
    // In a day 10 tokens accrue: an empty bucket would be full, one in debt would not.
    expect(written(bucket, plan)).toBeUndefined();
    expect(written(shardOf(0, { ttl: undefined }), plan)).toBeDefined();
  });

  test("a consume that leaves the time as it is needs nothing more", () => {
    const bucket = shardOf(4);
    const plan = new WritePlan();
    const balances = new Map([["a", balanceAt(bucket, limitOf(bucket), NOW)]]);
    requireCovered(plan, bucket, balances, new Map([["a", 5]]), bucket.ttl, CONTEXT);
    expect(plan.condition).toEqual([]);
  });
});

test("a bucket that is stamped as switched off meanwhile is not consumed from", () => {
  const bucket = shardOf(4);
  const plan = new WritePlan();
  plan.set("mark", 1);
  requireEnabled(plan, bucket);
  expect(isStampedDisabled(bucket)).toBe(false);
  expect(writtenItem({ ...itemOf(bucket), disabled: true }, plan)).toBeUndefined();
  expect(written(bucket, plan)).toBeDefined();
});
