/** When shards are merged: a table of what was needed, and the record of it. */

import type { SeenBucket } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { WritePlan } from "@zae-limiter/limiter/buckets/distributed/plan/write-plan.ts";
import {
  CLAIM_MS,
  isMergeable,
  mayHalve,
} from "@zae-limiter/limiter/buckets/distributed/shards/merge-policy.ts";
import {
  countNeed,
  encodeNeed,
  levelOfShards,
  needAfterSplit,
  needOf,
} from "@zae-limiter/limiter/buckets/distributed/shards/need.ts";
import { describe, expect, test } from "vitest";
import { NOW, shardOf } from "../known.ts";

const MINUTE = 60_000;
const WINDOW = Math.floor(NOW / (10 * MINUTE));
const MARK = { markMs: NOW, markWrites: 0 };

/** A first shard with these levels on record, newest first. */
function first(shardCount: number, levels: string, more: Partial<SeenBucket> = {}): SeenBucket {
  const padded = [...levels.padEnd(7, "0")].map(Number);
  const need = encodeNeed({ window: WINDOW, levels: padded, ...MARK });
  return shardOf(0, { shardCount, need, ...more });
}

describe("a bucket is halved", () => {
  test.each([
    ["16 shards with no traffic at all", 16, "0000000", true],
    ["a quarter of 16 shards in the last ten minutes", 16, "4400000", true],
    ["more than a quarter of 16 shards in this window", 16, "5000000", false],
    ["more than a quarter of 16 shards in the window before", 16, "0500000", false],
    ["half of 16 shards earlier in the hour", 16, "0050000", true],
    ["more than half of 16 shards earlier in the hour", 16, "0060000", false],
    ["more than half of 16 shards an hour ago", 16, "0000006", false],
    ["two shards at half of what one serves", 2, "1100000", true],
    ["two shards at more than half of what one serves", 2, "2000000", false],
    ["two shards where one was well used earlier in the hour", 2, "0020000", true],
    ["64 shards that needed 16", 64, "6666666", true],
    ["64 shards that needed 32 for a moment in this hour", 64, "0007000", true],
    ["64 shards that needed 64 for a moment in this hour", 64, "0008000", false],
    ["one shard", 1, "0000000", false],
  ])(
    "a bucket is halved when that is enough for what was needed: %s",
    (_, count, levels, expected) => {
      expect(mayHalve(first(count, levels), NOW)).toBe(expected);
    },
  );

  test("a bucket is halved only after windows have passed, in which nothing was recorded", () => {
    const bucket = first(4, "4444444");
    const halves = [0, 9, 19, 20, 59, 60, 61, 70].map((minutes) =>
      mayHalve(bucket, NOW + minutes * MINUTE),
    );
    expect(halves).toEqual([false, false, false, false, false, false, false, true]);
  });

  test("a bucket is not halved without a record, or with one that cannot be read", () => {
    for (const need of [undefined, "", "1.2.3", "x.0000000.1.1"]) {
      expect(mayHalve(shardOf(0, { shardCount: 4, need }), NOW)).toBe(false);
    }
  });

  test("a bucket is halved by one client at a time", () => {
    const claimed = first(4, "", { mergingAtMs: NOW });
    expect(mayHalve(claimed, NOW + CLAIM_MS - 1)).toBe(false);
    expect(mayHalve(claimed, NOW + CLAIM_MS)).toBe(true);
  });

  test("a bucket is not halved by another shard than the first", () => {
    expect(mayHalve(first(4, "", { shard: 1 }), NOW)).toBe(false);
  });

  test("a bucket is not halved where a client of the Python library has left a trace", () => {
    const bucket = first(4, "");
    const writes = {
      ...(bucket.writes as NonNullable<SeenBucket["writes"]>),
      tokensMilli: 999_000,
    };
    expect(isMergeable({ ...bucket, writes })).toBe(false);
    expect(isMergeable({ ...bucket, writes: undefined })).toBe(false);
    const python = { unsupported: new Map(), stamps: {}, resets: true, windows: false };
    expect(isMergeable({ ...bucket, python })).toBe(false);
  });
});

/** The need that a planned write records. */
function written(bucket: SeenBucket, nowMs: number) {
  const plan = new WritePlan();
  countNeed(plan, bucket, nowMs);
  const { nd, ...others } = plan.change.set ?? {};
  expect(others).toEqual({});
  const need = nd === undefined ? undefined : needOf({ ...bucket, need: String(nd) });
  return { counted: plan.change.add?.wn, need };
}

describe("what a bucket needs is measured", () => {
  test("the need of a bucket is measured for the first of several shards, and for no other", () => {
    expect(written(shardOf(0), NOW)).toEqual({ counted: undefined, need: undefined });
    expect(written(shardOf(0, { shard: 1, shardCount: 2 }), NOW).counted).toBeUndefined();
    expect(written(first(2, ""), NOW)).toEqual({ counted: 1, need: undefined });
  });

  test("the need of a bucket is measured from the first write on, as if all shards were needed", () => {
    const { need } = written(shardOf(0, { shardCount: 8, writesCounted: 7 }), NOW);
    expect(need?.levels).toEqual([5, 5, 5, 5, 5, 5, 5]);
    expect(need).toMatchObject({ window: WINDOW, markMs: NOW, markWrites: 7 });
  });

  test.each([
    [0, 0],
    [1250, 0],
    [1251, 1],
    [2500, 1],
    [5000, 2],
    [5001, 3],
    [640_000, 9],
    [9_000_000, 9],
  ])("%d writes to one of two shards in 20 s are level %d", (writesCounted, level) => {
    const bucket = first(2, "", { writesCounted });
    expect(written(bucket, NOW + 9999).need).toBeUndefined();
    expect(written(bucket, NOW + 20_000).need?.levels[0]).toBe(level);
  });

  test("the need of a bucket is measured by window, and the highest level of each is kept", () => {
    const later = written(first(2, "3100000", { writesCounted: 25_000 }), NOW + 20_000);
    expect(later.need?.levels).toEqual([5, 1, 0, 0, 0, 0, 0]);
    const next = written(first(2, "3100000"), NOW + 20 * MINUTE);
    expect(next.need?.levels).toEqual([0, 0, 3, 1, 0, 0, 0]);
    expect(written(first(2, "3100000"), NOW + 120 * MINUTE).need?.levels).toEqual([
      0, 0, 0, 0, 0, 0, 0,
    ]);
  });

  test("a clock that is behind changes nothing", () => {
    const bucket = first(2, "3100000");
    expect(written(bucket, NOW - 20 * MINUTE).need).toBeUndefined();
    expect(mayHalve(bucket, NOW - 20 * MINUTE)).toBe(false);
  });

  test("a split into many keeps half of them for ten minutes, until they were measured", () => {
    const need = needAfterSplit(shardOf(0), 64, NOW);
    const bucket = shardOf(0, { shardCount: 64, need });
    const halves = [0, 9, 20, 69, 70].map((minutes) => mayHalve(bucket, NOW + minutes * MINUTE));
    expect(halves).toEqual([false, false, true, true, true]);
  });

  test("a split keeps as many shards for an hour as were not enough", () => {
    const need = needAfterSplit(shardOf(0), 2, NOW);
    const bucket = shardOf(0, { shardCount: 2, need });
    expect(needOf(bucket)?.levels[0]).toBe(levelOfShards(1));
    const halves = [0, 9, 20].map((minutes) => mayHalve(bucket, NOW + minutes * MINUTE));
    expect(halves).toEqual([false, false, true]);
  });
});
