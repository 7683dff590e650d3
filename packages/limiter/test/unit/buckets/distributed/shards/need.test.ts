import type { SeenBucket } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { WritePlan } from "@zae-limiter/limiter/buckets/distributed/plan/write-plan.ts";
import {
  countNeed,
  encodeNeed,
  levelOfShards,
  type Need,
  needAfterSplit,
  needOf,
  peaksOf,
} from "@zae-limiter/limiter/buckets/distributed/shards/need.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { NOW, shardOf } from "../known.ts";

const WINDOW_MS = 600_000;
const WINDOW = NOW / WINDOW_MS;

function needing(levels: readonly number[], more: Partial<Need> = {}): Need {
  return { window: WINDOW, levels, markMs: NOW, markWrites: 0, ...more };
}

function first(need: Need | undefined, more: Partial<SeenBucket> = {}): SeenBucket {
  const record = need === undefined ? undefined : encodeNeed(need);
  return shardOf(1, { shardCount: 4, need: record, ...more });
}

function counted(bucket: SeenBucket, nowMs: number) {
  const plan = new WritePlan();
  countNeed(plan, bucket, nowMs);
  const { nd } = plan.change.set ?? {};
  return { adds: plan.change.add, levels: needOf({ ...bucket, need: nd as string })?.levels };
}

test.each([
  [1, 2],
  [2, 3],
  [64, 8],
])("%i shards that are well used are level %i", (count, level) => {
  expect(levelOfShards(count)).toBe(level);
});

test.each([undefined, "", "1.123.4.5", "x.1234567.1.1", "1.1234567.1"])(
  "the record %j cannot be read, and counts as none",
  (need) => {
    expect(needOf(shardOf(1, { need }))).toBeUndefined();
  },
);

test("a level for each window and digits only are what a record may have", () => {
  expect(() => encodeNeed(needing([1, 2]))).toThrow(/a level for each window/);
  expect(() => encodeNeed(needing([10, 0, 0, 0, 0, 0, 0]))).toThrow(/a digit/);
});

test.each([
  [0, 3, 7],
  [WINDOW_MS, 1, 6],
  [2 * WINDOW_MS, 0, 5],
  [6 * WINDOW_MS, 0, 1],
  [7 * WINDOW_MS, 0, 0],
  [-WINDOW_MS, 3, 7],
])("%i ms later the last ten minutes have needed %i and the last hour %i", (...row) => {
  const [passedMs, recent, hour] = row;
  const need = needing([1, 3, 4, 4, 5, 6, 7]);
  expect(peaksOf(need, NOW + passedMs)).toEqual({ recent, hour });
});

test("a write to an unsplit bucket, or to another shard than the first, counts nothing", () => {
  for (const bucket of [shardOf(1), first(undefined, { shard: 1 })]) {
    expect(counted(bucket, NOW).adds).toEqual({});
  }
});

test("without a record all shards may have been needed in the last hour", () => {
  expect(counted(first(undefined), NOW)).toEqual({
    adds: { wn: 1 },
    levels: [4, 4, 4, 4, 4, 4, 4],
  });
});

test.each([
  // writes to the first of four shards, and the level: all of them take four times as many
  [0, 0],
  [312, 0],
  [313, 1],
  [1250, 2],
  [5000, 4],
  [1_000_000, 9],
])("%i writes to the first of four shards in ten seconds are level %i", (writes, level) => {
  const bucket = first(needing([0, 0, 0, 0, 0, 0, 0]), { writesCounted: writes });
  expect(counted(bucket, NOW + 9999).levels).toBeUndefined();
  expect(counted(bucket, NOW + 10_000).levels).toEqual([level, 0, 0, 0, 0, 0, 0]);
});

test("a split keeps the shards it had for the rest of the hour", () => {
  const record = needAfterSplit(first(needing([1, 0, 0, 0, 0, 0, 6])), 8, NOW);
  expect(needOf(shardOf(1, { need: record }))?.levels).toEqual([4, 0, 0, 0, 0, 0, 6]);
  const begun = needAfterSplit(first(undefined), 8, NOW);
  expect(needOf(shardOf(1, { need: begun }))?.levels).toEqual([4, 4, 4, 4, 4, 4, 4]);
});

property(
  "a record that is written and read again is the same",
  [
    fc.array(fc.nat(9), { minLength: 7, maxLength: 7 }),
    fc.nat(999_999_999),
    fc.maxSafeNat(),
    fc.maxSafeNat(),
  ],
  (levels, window, markMs, markWrites) => {
    const need = { window, levels, markMs, markWrites };
    expect(needOf(shardOf(1, { need: encodeNeed(need) }))).toEqual(need);
  },
  500,
);
