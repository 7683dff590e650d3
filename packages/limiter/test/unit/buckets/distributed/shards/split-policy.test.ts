/** When a bucket splits, and into how many shards, by what a process has seen of it. */

import {
  hasOwnTraffic,
  type Load,
  type Sign,
  splitFactor,
} from "@zae-limiter/limiter/buckets/distributed/shards/split-policy.ts";
import { SHARDS_MAX } from "@zae-limiter/limiter/core/bucket.ts";
import { describe, expect, test } from "vitest";
import { NOW, shardOf } from "../known.ts";

const LOAD: Load = {
  count: 1,
  sinceMs: NOW - 60_000,
  consumed: 1000,
  throttled: 0,
  writesPerSecond: 300,
};

interface Around {
  readonly agoMs?: number;
  readonly capacity?: number;
  readonly largest?: number;
  readonly maxShards?: number;
  readonly limits?: number;
}

/** Into how many a first shard splits; 1: not now. */
function factor(
  shardCount: number,
  sign: Sign,
  load: Partial<Load> = {},
  {
    agoMs = 60_000,
    capacity = 1_000_000,
    largest = 0,
    maxShards = SHARDS_MAX,
    limits = 1,
  }: Around = {},
): number {
  const limit = {
    tokensMilli: 0,
    rate: { capacityMilli: capacity * 1000, refillMilli: 1, periodMs: 1 },
    totalConsumedMilli: 0,
    remainder: 0,
  };
  const names = Array.from({ length: limits }, (_, at) => (at === 0 ? "a" : `a${at}`));
  const first = shardOf(0, {
    shardCount,
    refilledAtMs: NOW - agoMs,
    limits: new Map(names.map((name) => [name, limit])),
  });
  const room = { largestMilli: new Map([["a", largest * 1000]]), maxShards };
  return splitFactor(first, sign, { ...LOAD, ...load }, room, NOW);
}

function splits(...of: Parameters<typeof factor>): boolean {
  return factor(...of) > 1;
}

describe("the traffic of a throttled shard", () => {
  test.each<[string, Sign, number | undefined, boolean]>([
    ["is its own when its meter is saturated", "saturated", undefined, true],
    ["is its own when its meter shows enough writes", "throttled", 250, true],
    ["may be that of a neighbour when its meter shows few", "throttled", 249, false],
    ["may be that of a neighbour when it was not measured", "throttled", undefined, false],
  ])("the traffic of a throttled shard %s", (_, sign, writesPerSecond, own) => {
    expect(hasOwnTraffic(sign, { ...LOAD, writesPerSecond })).toBe(own);
  });
});

describe("a bucket", () => {
  test.each<[string, boolean, boolean]>([
    ["of one shard splits at the first sign", splits(1, "throttled"), true],
    [
      "splits no sooner than a second after a split",
      splits(2, "saturated", { sinceMs: NOW - 999 }),
      false,
    ],
    [
      "splits a second after a split when it is saturated",
      splits(2, "saturated", { sinceMs: NOW - 1000 }),
      true,
    ],
    ["waits a second after it was made again", splits(2, "saturated", {}, { agoMs: 999 }), false],
    [
      "splits at once for a process that has just come, when its base time is old",
      splits(2, "throttled", { sinceMs: NOW, consumed: 0 }, { agoMs: 14_000 }),
      true,
    ],
    [
      "does not split for a process that has just come, when its base time is young",
      splits(2, "throttled", { sinceMs: NOW, consumed: 0 }, { agoMs: 13_999 }),
      false,
    ],
  ])("the policy says that a bucket %s", (_, found, expected) => {
    expect(found).toBe(expected);
  });

  test.each([
    [1999, 600, true],
    [1999, 599, false],
    [3999, 400, true],
    [3999, 399, false],
    [4000, 20, true],
    [4000, 19, false],
  ])(
    "a bucket that was split %d ms ago and has %d of 1000 calls throttled: splits is %s",
    (ms, throttled, expected) => {
      const load = { sinceMs: NOW - ms, consumed: 1000 - throttled, throttled };
      expect(splits(2, "throttled", load)).toBe(expected);
    },
  );

  test("a bucket whose meter shows that an item is full needs few throttled calls", () => {
    const load = { sinceMs: NOW - 1500, consumed: 980, throttled: 20 };
    expect(splits(2, "throttled", { ...load, writesPerSecond: 700 })).toBe(true);
    expect(splits(2, "throttled", { ...load, writesPerSecond: 699 })).toBe(false);
  });

  test.each([
    [1, 2, 0, true],
    [1, 1, 0, false],
    [1, 20, 10, true],
    [1, 20, 11, false],
    [32, 64, 0, true],
    [64, 1000, 0, false],
  ])(
    "a bucket of %d shards with %d tokens and requests of up to %d: splits is %s",
    (count, capacity, largest, expected) => {
      expect(splits(count, "saturated", {}, { capacity, largest })).toBe(expected);
    },
  );
});

describe("a bucket splits into", () => {
  const asked = (writesPerSecond: number, throttled = 4, consumed = 96) => ({
    writesPerSecond,
    throttled,
    consumed,
    sinceMs: NOW - 5000,
  });
  test.each<[number, string, number, Partial<Load>, Around]>([
    [2, "its meter shows what a doubling serves", 1, asked(1923), {}],
    [4, "its meter shows more than a doubling serves", 1, asked(1924), {}],
    [8, "eight shards are nearest to what is well used", 1, asked(5400), {}],
    [16, "sixteen shards are nearest to what is well used", 1, asked(5500), {}],
    [64, "one shard gets all that a bucket can take", 1, asked(40_000), {}],
    [2, "no call was throttled", 1, asked(40_000, 0), {}],
    [2, "its meter was not measured", 1, { ...asked(0, 100), writesPerSecond: undefined }, {}],
    [2, "its meter is low, although nearly all calls are throttled", 1, asked(250, 100, 20), {}],
    [2, "few calls of this process are throttled", 1, asked(1000, 3, 1), {}],
    [8, "two of three calls are throttled", 1, asked(1000, 200, 96), {}],
    [4, "only four times as many are left", 16, asked(40_000), {}],
    [1, "none are left", 64, asked(40_000), {}],
    [4, "the bucket may have four at most", 1, asked(40_000), { maxShards: 4 }],
    [1, "the bucket has as many as it may", 4, asked(40_000), { maxShards: 4 }],
    [4, "smaller shares would hold less than a token", 1, asked(40_000), { capacity: 7 }],
    [
      8,
      "smaller shares would hold less than a call",
      1,
      asked(40_000),
      { capacity: 90, largest: 11 },
    ],
    [32, "a transaction has no room for more limits", 1, asked(40_000), { limits: 100 }],
    [2, "a transaction has hardly room for the limits", 1, asked(40_000), { limits: 2500 }],
  ])("a shard is split by %d when %s", (expected, _, count, load, around) => {
    expect(factor(count, "throttled", load, around)).toBe(expected);
  });
});
