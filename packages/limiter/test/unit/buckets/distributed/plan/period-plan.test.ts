import { planAdjust } from "@zae-limiter/limiter/buckets/distributed/plan/adjust-plan.ts";
import { planConsume } from "@zae-limiter/limiter/buckets/distributed/plan/consume-plan.ts";
import { newBucket } from "@zae-limiter/limiter/buckets/distributed/plan/new-bucket.ts";
import { periodsIn } from "@zae-limiter/limiter/buckets/distributed/plan/period-plan.ts";
import {
  decoded,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { planSplit } from "@zae-limiter/limiter/buckets/distributed/shards/split.ts";
import { DYNAMODB_TRAITS } from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { type BucketConfig, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { encodeBucket } from "@zae-limiter/limiter/records/bucket-item.ts";
import { applyChange, holds } from "@zae-limiter/limiter/storage/evaluate.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";

const NOW = 1_800_000_000_000;
const DAY_MS = 86_400_000;
const END_MS = NOW - (NOW % DAY_MS) + DAY_MS;
const RULES = { ...DYNAMODB_TRAITS, ttlMultiplier: 7 };
const CONFIG = configOf(["a:10/day UTC"]);

function itemOf(config: BucketConfig, amountsMilli: readonly number[]): Item {
  const name = { entityId: "e", resource: "r" };
  const made = { name, config, link: UNLINKED, amountsMilli, nowMs: NOW, rules: RULES };
  return encodeBucket("n", newBucket(made));
}

function seen(item: Item): SeenBucket {
  const bucket = decoded(item);
  if (bucket === undefined) throw new Error("The item is a bucket");
  return bucket;
}

/** Applies a plan, or returns what it was refused by. */
function written(item: Item, plan: ReturnType<typeof planConsume>): Item {
  if (plan.kind !== "write") throw new Error(plan.kind);
  expect(holds(plan.plan.condition, item)).toBe(true);
  const { PK, SK } = item;
  return applyChange({ PK, SK }, item, plan.plan.change);
}

function consume(item: Item, amountMilli: number, nowMs: number, config = CONFIG) {
  const context = { nowMs, rules: RULES, trustFull: () => true };
  return planConsume(seen(item), config, [amountMilli], context);
}

test("inside a period a consume adds to the balance, and leaves base time and end alone", () => {
  const item = itemOf(CONFIG, [3000]);
  const after = written(item, consume(item, 4000, NOW + 1000));
  expect(after).toMatchObject({ b_a_tk: 3000, b_a_pe: END_MS, rf: NOW, b_a_tc: 7000 });
  expect(consume(after, 4000, NOW + 2000)).toMatchObject({
    kind: "refused",
    balancesMilli: [3000],
  });
});

test("the first consume after the end opens the next period, and only one of two clients", () => {
  const item = itemOf(CONFIG, [9000]);
  const [one, other] = [consume(item, 4000, END_MS + 5), consume(item, 2000, END_MS + 9)];
  const after = written(item, one);
  expect(after).toMatchObject({ b_a_tk: 6000, b_a_pe: END_MS + DAY_MS, rf: END_MS + 5, b_a_gc: 1 });
  expect(after).toMatchObject({ vu: END_MS + DAY_MS });
  if (other.kind !== "write") throw new Error(other.kind);
  expect(holds(other.plan.condition, after)).toBe(false);
  expect(written(after, consume(after, 2000, END_MS + 9))).toMatchObject({ b_a_tk: 4000 });
});

test("a refund is written to the period that it was consumed in, and else only off the total", () => {
  const item = itemOf(CONFIG, [9000]);
  const context = { nowMs: END_MS + 7, rules: RULES, trustFull: () => true };
  const refund = (to: Item) => planAdjust(seen(to), CONFIG, [-2000], context, [END_MS]);
  expect(written(item, refund(item))).toMatchObject({ b_a_tk: 3000, b_a_tc: 7000 });
  const next = written(item, consume(item, 4000, END_MS + 5));
  expect(written(next, refund(next))).toMatchObject({ b_a_tk: 6000, b_a_tc: 11_000 });
});

test("a split divides a balance, and opens the period that is due, with all of its allowance", () => {
  for (const [nowMs, sumMilli] of [
    [NOW + 5, 7000],
    [END_MS + 5, 10_000],
  ] as const) {
    const item = itemOf(CONFIG, [3000]);
    const { plan, created } = planSplit(seen(item), nowMs);
    const after = written(item, { kind: "write", plan, guesses: [] });
    const moved = created.map(({ limits }) => limits.get("a")?.tokensMilli ?? 0);
    expect(Number(after["b_a_tk"]) + (moved[0] ?? 0)).toBe(sumMilli);
    const shards = [seen(after), ...created];
    const [period] = periodsIn(shards, CONFIG, nowMs) ?? [];
    expect(period).toMatchObject({ grantedMilli: 10_000 });
    expect(period?.endMs).toBe(nowMs < END_MS ? END_MS : END_MS + DAY_MS);
  }
});

test("a session in one of several shards counts what the others hold as granted, not as unused", () => {
  const config = configOf(["a:10/session:5hour"]);
  const made = { ...seen(itemOf(config, [1000])), shardCount: 2 };
  const [idle] = seen(itemOf(config, [0])).limits;
  const other = { ...made, shard: 1, limits: new Map(idle === undefined ? [] : [idle]) };
  const [period] = periodsIn([made, other], config, NOW) ?? [];
  expect(period).toEqual({ endMs: NOW + 5 * 3_600_000, grantedMilli: 10_000, atMs: NOW });
  expect(periodsIn([other], config, NOW)).toEqual([undefined]);
});
