import {
  evaluateRebase,
  planRebase,
} from "@zae-limiter/limiter/buckets/distributed/plan/rebase.ts";
import {
  balanceAt,
  balanceOf,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import {
  moveEpoch,
  type PlanContext,
  WritePlan,
} from "@zae-limiter/limiter/buckets/distributed/plan/write-plan.ts";
import type { BucketConfig } from "@zae-limiter/limiter/buckets/leg.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NOW, RULES, shardOf } from "../known.ts";
import { itemOf, limitOf, written, writtenItem } from "../written.ts";

const DAY_MS = 86_400_000;
const CONFIG = configOf(["a:10/day"]);
const CONTEXT: PlanContext = { nowMs: NOW, rules: RULES, trustFull: () => true };

function rebased(
  bucket: SeenBucket,
  config: BucketConfig,
  amounts: readonly number[],
  nowMs: number,
  applies = false,
): SeenBucket | undefined {
  const planned = planRebase(bucket, config, amounts, { ...CONTEXT, nowMs }, applies);
  return planned.kind === "write" ? written(bucket, planned.plan) : undefined;
}

function heldAt(bucket: SeenBucket | undefined, nowMs: number, name = "a"): number {
  return balanceOf(balanceAt(bucket as SeenBucket, limitOf(bucket, name), nowMs));
}

describe("the base time", () => {
  test.each([
    ["the base time moves to now", 5000, NOW + 5000],
    ["the base time stays when it is a little ahead", -1000, NOW],
    ["the base time goes back when it is far ahead", -5000, NOW - 5000],
  ])("%s", (_, passedMs, expected) => {
    expect(rebased(shardOf(4), CONFIG, [0], NOW + passedMs)?.refilledAtMs).toBe(expected);
  });

  test("rebases to the same base time are numbered, and a later one starts at 0", () => {
    const plan = new WritePlan();
    expect(moveEpoch(plan, shardOf(4, { rebases: 2 }), NOW)).toBe(3);
    expect(plan.change.set).toEqual({ rf: NOW, rn: 3 });
    const later = new WritePlan();
    expect(moveEpoch(later, shardOf(4, { rebases: 2 }), NOW + 1)).toBe(0);
    expect(later.change).toMatchObject({ set: { rf: NOW + 1 }, remove: ["rn"] });
  });
});

describe("new limits", () => {
  const apply = (bucket: SeenBucket, texts: readonly string[], amounts = texts.map(() => 0)) =>
    rebased(bucket, configOf(texts, "resource", 2), amounts, NOW + 1000, true);

  test("a larger capacity leaves the balance, and a smaller one cuts it", () => {
    expect(heldAt(apply(shardOf(4), ["a:20/day"]), NOW + 1000)).toBe(4000);
    expect(heldAt(apply(shardOf(4), ["a:3/day"]), NOW + 1000)).toBe(3000);
    expect(heldAt(apply(shardOf(-4), ["a:3/day"]), NOW + 1000)).toBe(-4000);
  });

  test("a limit that is new starts full, and one that is gone leaves no attribute", () => {
    const bucket = shardOf(4);
    const after = apply(bucket, ["b:7/min"], [2000]);
    expect([...(after?.limits.keys() ?? [])]).toEqual(["b"]);
    expect(heldAt(after, NOW + 1000, "b")).toBe(5000);
    const planned = planRebase(
      bucket,
      configOf(["b:7/min"], "resource", 2),
      [0],
      { ...CONTEXT, nowMs: NOW + 1000 },
      true,
    );
    if (planned.kind !== "write") throw new Error("nothing is planned");
    const item = writtenItem(itemOf(bucket), planned.plan) ?? {};
    expect(Object.keys(item).filter((name) => name.startsWith("b_a_"))).toEqual([]);
  });

  test("stored limits say their version and source; those of a call leave the version", () => {
    expect(apply(shardOf(4), ["a:20/day"])).toMatchObject({
      configVersion: 2,
      configSource: "resource",
    });
    const override = configOf(["a:20/day"], "override", 9);
    expect(rebased(shardOf(4), override, [0], NOW, true)).toMatchObject({
      configVersion: 1,
      configSource: "override",
    });
  });

  test("limits of an older version than the bucket's do not take its version back", () => {
    const older = configOf(["a:20/day"], "resource", 0);
    expect(rebased(shardOf(4), older, [0], NOW, true)?.configVersion).toBe(1);
  });

  test("a refusal tells the balance by the new limits, and weighing finds the same", () => {
    const config = configOf(["a:3/day"], "resource", 2);
    const planned = planRebase(shardOf(4), config, [3500], CONTEXT, true);
    expect(planned).toMatchObject({ kind: "refused", balancesMilli: [3000] });
    expect(evaluateRebase(shardOf(4), config, CONTEXT, true).balancesMilli).toEqual([3000]);
  });
});

test("limits of a call that take something away are not brought by a refusal", () => {
  const smaller = configOf(["a:3/day"], "override");
  expect(evaluateRebase(shardOf(4), smaller, CONTEXT, true).limitsOnly).toBeUndefined();
  const larger = configOf(["a:30/day"], "override");
  expect(evaluateRebase(shardOf(4), larger, CONTEXT, true).limitsOnly).toBeDefined();
});

property(
  "a rebase mints nothing and loses nothing: later balances are as without it",
  [
    fc.integer({ min: -10_000, max: 9000 }),
    fc.nat(DAY_MS),
    fc.nat(DAY_MS),
    fc.nat(DAY_MS - 1),
    fc.constantFrom(1, 2, 8),
  ],
  (milli, beforeMs, afterMs, remainder, shardCount) => {
    const made = shardOf(milli / 1000 / shardCount, { shardCount, ttl: undefined });
    const stored = { ...limitOf(made), remainder };
    const bucket = { ...made, limits: new Map([["a", stored]]) };
    const atMs = NOW + beforeMs;
    const after = rebased(bucket, CONFIG, [0], atMs);
    expect(after?.refilledAtMs).toBe(atMs);
    expect(heldAt(after, atMs + afterMs)).toBe(heldAt(bucket, atMs + afterMs));
    const kept = limitOf(after).remainder;
    expect(kept >= 0 && kept < shardCount * DAY_MS).toBe(true);
    expect(limitOf(after).totalConsumedMilli).toBe(stored.totalConsumedMilli);
  },
  1000,
);

property(
  "new limits never leave more than the bucket held, nor more than they allow",
  [
    fc.integer({ min: -10_000, max: 10_000 }),
    fc.nat(DAY_MS),
    fc.integer({ min: 1, max: 40 }),
    fc.constantFrom("sec", "7sec", "min", "day"),
  ],
  (milli, passedMs, tokens, period) => {
    const bucket = shardOf(milli / 1000);
    const atMs = NOW + passedMs;
    const after = rebased(
      bucket,
      configOf([`a:${tokens}/${period}`], "resource", 2),
      [0],
      atMs,
      true,
    );
    expect(heldAt(after, atMs)).toBe(Math.min(heldAt(bucket, atMs), tokens * 1000));
    const { remainder, rate } = limitOf(after);
    expect(remainder >= 0 && remainder < rate.periodMs).toBe(true);
  },
  1000,
);
