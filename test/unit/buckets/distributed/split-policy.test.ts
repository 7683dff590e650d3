/** When a bucket doubles, by what a process has seen of it. */

import { describe, expect, test } from "vitest";
import {
  hasOwnTraffic,
  type Load,
  mayDouble,
  type Sign,
} from "../../../../src/buckets/distributed/split-policy.ts";
import { NOW, shardOf } from "./known.ts";

const LOAD: Load = {
  count: 1,
  sinceMs: NOW - 60_000,
  consumed: 1000,
  throttled: 0,
  writesPerSecond: 300,
};

function doubles(
  shardCount: number,
  sign: Sign,
  load: Partial<Load> = {},
  { agoMs = 60_000, capacity = 1000, largest = 0 } = {},
): boolean {
  const limit = {
    tokensMilli: 0,
    rate: { capacityMilli: capacity * 1000, refillMilli: 1, periodMs: 1 },
    totalConsumedMilli: 0,
    remainder: 0,
  };
  const first = shardOf(0, {
    shardCount,
    refilledAtMs: NOW - agoMs,
    limits: new Map([["a", limit]]),
  });
  return mayDouble(first, sign, { ...LOAD, ...load }, new Map([["a", largest * 1000]]), NOW);
}

describe("the traffic of a throttled shard", () => {
  test.each<[string, Sign, number | undefined, boolean]>([
    ["is its own when its meter is saturated", "saturated", undefined, true],
    ["is its own when its meter shows enough writes", "throttled", 250, true],
    ["may be that of a neighbour when its meter shows few", "throttled", 249, false],
    ["may be that of a neighbour when it was not measured", "throttled", undefined, false],
  ])("%s", (_, sign, writesPerSecond, own) => {
    expect(hasOwnTraffic(sign, { ...LOAD, writesPerSecond })).toBe(own);
  });
});

describe("a bucket", () => {
  test.each<[string, boolean, boolean]>([
    ["of one shard doubles at the first sign", doubles(1, "throttled"), true],
    [
      "doubles no sooner than a second after a split",
      doubles(2, "saturated", { sinceMs: NOW - 999 }),
      false,
    ],
    [
      "doubles a second after a split when it is saturated",
      doubles(2, "saturated", { sinceMs: NOW - 1000 }),
      true,
    ],
    ["waits a second after it was made again", doubles(2, "saturated", {}, { agoMs: 999 }), false],
    [
      "doubles at once for a process that has just come, when its base time is old",
      doubles(2, "throttled", { sinceMs: NOW, consumed: 0 }, { agoMs: 14_000 }),
      true,
    ],
    [
      "does not double for a process that has just come, when its base time is young",
      doubles(2, "throttled", { sinceMs: NOW, consumed: 0 }, { agoMs: 13_999 }),
      false,
    ],
  ])("%s", (_, found, expected) => {
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
    "that was split %d ms ago and has %d of 1000 calls throttled: doubles is %s",
    (ms, throttled, expected) => {
      const load = { sinceMs: NOW - ms, consumed: 1000 - throttled, throttled };
      expect(doubles(2, "throttled", load)).toBe(expected);
    },
  );

  test("whose meter shows that an item is full needs few throttled calls", () => {
    const load = { sinceMs: NOW - 1500, consumed: 980, throttled: 20 };
    expect(doubles(2, "throttled", { ...load, writesPerSecond: 700 })).toBe(true);
    expect(doubles(2, "throttled", { ...load, writesPerSecond: 699 })).toBe(false);
  });

  test.each([
    [1, 2, 0, true],
    [1, 1, 0, false],
    [1, 20, 10, true],
    [1, 20, 11, false],
    [32, 64, 0, true],
    [64, 1000, 0, false],
  ])(
    "of %d shards with %d tokens and requests of up to %d: doubles is %s",
    (count, capacity, largest, expected) => {
      expect(doubles(count, "saturated", {}, { capacity, largest })).toBe(expected);
    },
  );
});
