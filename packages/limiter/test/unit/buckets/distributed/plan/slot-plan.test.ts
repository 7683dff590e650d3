/** Slots in the plans of one shard: taken, given back, divided, joined, started and removed. */

import { planAdjust } from "@zae-limiter/limiter/buckets/distributed/plan/adjust-plan.ts";
import { planConsume } from "@zae-limiter/limiter/buckets/distributed/plan/consume-plan.ts";
import { newBucket } from "@zae-limiter/limiter/buckets/distributed/plan/new-bucket.ts";
import {
  balanceOf,
  balancesAt,
  decoded,
  isAnnounced,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import type {
  PlanContext,
  WritePlan,
} from "@zae-limiter/limiter/buckets/distributed/plan/write-plan.ts";
import { planMerge } from "@zae-limiter/limiter/buckets/distributed/shards/merge.ts";
import { planLateShard, planSplit } from "@zae-limiter/limiter/buckets/distributed/shards/split.ts";
import { type BucketConfig, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { NO_MARKS, type SlotMark } from "@zae-limiter/limiter/records/slot-attributes.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";
import { NOW, RULES } from "../known.ts";
import { itemOf, limitOf, written, writtenItem } from "../written.ts";

const CONFIG = configOf(["rpm:10", "parallel:20 concurrent"]);
const CONTEXT: PlanContext = { nowMs: NOW, rules: RULES, trustFull: () => true };
const HELD: ReadonlyMap<string, SlotMark> = new Map([["p.1", { sequence: 4, count: 5 }]]);

function fresh(config: BucketConfig = CONFIG): SeenBucket {
  const name = { entityId: "e", resource: "r" };
  const amountsMilli = config.limits.map(() => 0);
  return newBucket({ name, config, link: UNLINKED, amountsMilli, nowMs: NOW, rules: RULES });
}

/** A shard with free slots and entries. */
function shardWith(free: number, marks = NO_MARKS, more: Partial<SeenBucket> = {}): SeenBucket {
  const bucket = { ...fresh(), ttl: undefined, meterMs: NOW, ...more };
  const parallel = { ...limitOf(bucket, "parallel"), tokensMilli: free * 1000, marks };
  const rpm = { ...limitOf(bucket, "rpm"), tokensMilli: 10_000 / bucket.shardCount };
  const limits = new Map([
    ["rpm", rpm],
    ["parallel", parallel],
  ]);
  return { ...bucket, limits };
}

function planned(bucket: SeenBucket, amounts: number[], config: BucketConfig = CONFIG): WritePlan {
  const plan = planConsume(bucket, config, amounts, CONTEXT);
  if (plan.kind !== "write") throw new Error(`it is ${plan.kind}`);
  return plan.plan;
}

function freeIn(bucket: SeenBucket | undefined): number {
  return limitOf(bucket, "parallel").tokensMilli / 1000;
}

test("slots are taken with the tokens, by a number that is added to", () => {
  const plan = planned(fresh(), [1000, 3000]);
  expect(plan.change.add).toMatchObject({ s_parallel_fr: -3 });
  expect(plan.condition).toContainEqual({ is: ">=", name: "s_parallel_fr", value: 3 });
  expect([...(plan.slots ?? [])]).toEqual([["parallel", 3]]);
  expect(freeIn(written(fresh(), plan))).toBe(17);
  expect(written(shardWith(2), plan)).toBeUndefined();
});

test("a call without slots has none in its write, and one that lacks some has no write", () => {
  const plan = planned(shardWith(0), [1000, 0]);
  expect(plan.slots).toBeUndefined();
  expect(JSON.stringify([plan.change, plan.condition])).not.toContain("s_parallel");
  expect(planConsume(shardWith(2), CONFIG, [1000, 3000], CONTEXT)).toEqual({
    kind: "refused",
    balancesMilli: [10_000, 2000],
  });
});

test("soft slots are taken whatever there is, and under bypass none are", () => {
  const soft = configOf(["rpm:10", "parallel:20 concurrent soft"]);
  const plan = planned(shardWith(0), [1000, 3000], soft);
  expect(freeIn(written(shardWith(0), plan))).toBe(-3);
  const bypass = planned(shardWith(0), [1000, 3000], { ...CONFIG, bypass: true });
  expect(bypass.slots).toBeUndefined();
  expect(freeIn(written(shardWith(0), bypass))).toBe(0);
});

test("nothing accrues and nothing is capped: slots go back to the shard that gave", () => {
  const shard = shardWith(15, NO_MARKS, { shard: 1, shardCount: 2 });
  const balance = balancesAt(shard, NOW + 3_600_000).get("parallel");
  expect(balance && balanceOf(balance)).toBe(15_000);
  expect(isAnnounced(shard)).toBe(false);
});

test("a bucket with slots that are held does not expire, and may again once all are back", () => {
  const before = fresh();
  expect(before.ttl).toBeDefined();
  const taken = written(before, planned(before, [0, 3000]));
  expect(taken?.ttl).toBeUndefined();
  const adjusted = planAdjust(taken as SeenBucket, CONFIG, [0, -3000], CONTEXT);
  if (adjusted.kind !== "write") throw new Error("it gives back");
  expect([...(adjusted.plan.slots ?? [])]).toEqual([["parallel", -3]]);
  expect(written(taken as SeenBucket, adjusted.plan)?.ttl).toBeDefined();
  // Another client has taken one since.
  expect(written(shardWith(16), adjusted.plan)).toBeUndefined();
});

test("fewer slots leave less than none, and more are free at once, in every shard its share", () => {
  for (const [slots, free] of [
    [10, -5],
    [25, 10],
  ] as const) {
    const config = configOf(["rpm:10", `parallel:${slots} concurrent`], "resource", 2);
    const shards = [0, 1].map((shard) => shardWith(shard * 5, HELD, { shard, shardCount: 2 }));
    const after = shards.map((shard) => written(shard, planned(shard, [0, 0], config)));
    expect(after.map(freeIn).reduce((sum, each) => sum + each, 0)).toBe(free);
    expect(limitOf(after[0], "parallel").marks).toEqual(HELD);
    expect(limitOf(after[0], "parallel").rate.capacityMilli).toBe(slots * 1000);
  }
});

test("a limit that is removed takes its entries along, and comes back without them", () => {
  const without = configOf(["rpm:10"], "resource", 2);
  const plan = planned(shardWith(15, HELD), [0], without);
  const item = writtenItem(itemOf(shardWith(15, HELD)), plan);
  expect(Object.keys(item ?? {}).filter((name) => name.startsWith("s_"))).toEqual([]);
  const moved = new Map([["p.1", { sequence: 5, count: 5 }]]);
  expect(written(shardWith(15, moved), plan)).toBeUndefined();
  const again = configOf(["rpm:10", "parallel:20 concurrent"], "resource", 3);
  const back = decoded(item) as SeenBucket;
  expect(freeIn(written(back, planned(back, [0, 0], again)))).toBe(20);
});

test("a limit changes its kind both ways, and leaves nothing behind", () => {
  const rate = configOf(["rpm:10", "parallel:20"], "resource", 2);
  const bucket = shardWith(15, HELD);
  const asRate = written(bucket, planned(bucket, [0, 0], rate)) as SeenBucket;
  expect(limitOf(asRate, "parallel")).toMatchObject({ tokensMilli: 15_000 });
  expect(Object.keys(itemOf(asRate)).filter((name) => name.startsWith("s_"))).toEqual([]);
  const slots = configOf(["rpm:10", "parallel:20 concurrent"], "resource", 3);
  const item = writtenItem(itemOf(asRate), planned(asRate, [0, 2000], slots));
  expect(freeIn(decoded(item))).toBe(18);
  expect(Object.keys(item ?? {}).filter((name) => name.startsWith("b_parallel"))).toEqual([]);
});

test("only the first shard begins with slots, so that no client makes any", () => {
  const without = configOf(["rpm:10"]);
  const begun = [0, 1].map((shard) => {
    const bucket = { ...fresh(without), shard, shardCount: 2, ttl: undefined };
    return freeIn(written(bucket, planned(bucket, [0, 0], { ...CONFIG, version: 2 })));
  });
  expect(begun).toEqual([20, 0]);
});

test("a split moves its part of what is free, and a merge joins it once nothing is held", () => {
  const bucket = shardWith(15, HELD);
  const { plan, kept, created } = planSplit(bucket, NOW, undefined, 4);
  expect([kept, ...created].map(freeIn)).toEqual([6, 3, 3, 3]);
  expect(freeIn(written(bucket, plan))).toBe(6);
  expect(created.map((shard) => limitOf(shard, "parallel").marks?.size)).toEqual([0, 0, 0]);
  const merge = (kept: SeenBucket, gone: SeenBucket) =>
    planMerge(itemOf(kept), itemOf(gone), { nowMs: NOW, generation: 1, ttlMultiplier: 7 });
  const one = shardWith(6, HELD, { shardCount: 2 });
  const other = shardWith(9, NO_MARKS, { shard: 1, shardCount: 2 });
  const merged = merge(one, other);
  expect(freeIn(written(one, merged?.kept as WritePlan))).toBe(15);
  expect(limitOf(merged?.merged, "parallel").marks).toEqual(HELD);
  expect(merged?.merged.ttl).toBeUndefined();
  expect(merge(other, one)).toBeUndefined();
  expect(merge(one, { ...one, shard: 1 })).toBeUndefined();
});

test("a shard that is made late gets half of what is free in the one it descends from", () => {
  const donor = shardWith(15, HELD, { shardCount: 2 });
  const { plan, limits } = planLateShard(donor, donor, 1);
  expect(limits.get("parallel")).toMatchObject({ tokensMilli: 7000, marks: NO_MARKS });
  expect(freeIn(written(donor, plan))).toBe(8);
});
