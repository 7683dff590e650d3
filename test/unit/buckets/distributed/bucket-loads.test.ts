/** What a process remembers of the traffic of a bucket. */

import { describe, expect, test } from "vitest";
import { BucketLoads } from "../../../../src/buckets/distributed/bucket-loads.ts";
import type { SeenBucket } from "../../../../src/buckets/distributed/seen-bucket.ts";
import { NOW, shardOf } from "./known.ts";

/** `behindMs`: how far the meter is behind the clock when it is seen. */
interface Sight {
  readonly afterMs: number;
  readonly behindMs: number;
  readonly shardCount?: number;
}

/** Returns the rate that these sights of a meter add up to. */
function rateAfter(...sights: readonly Sight[]): number | undefined {
  let nowMs = NOW;
  const loads = new BucketLoads(() => nowMs);
  let bucket: SeenBucket = shardOf(0);
  for (const { afterMs, behindMs, shardCount = 1 } of sights) {
    nowMs += afterMs;
    bucket = shardOf(0, { meterMs: nowMs - behindMs, shardCount });
    loads.sawMeter(bucket);
  }
  return loads.of(bucket).writesPerSecond;
}

describe("the rate of writes to a shard", () => {
  test.each<[string, readonly Sight[], number | undefined]>([
    ["is not known from one sight", [{ afterMs: 0, behindMs: 500 }], undefined],
    [
      "is how far the meter has moved between two",
      [
        { afterMs: 0, behindMs: 500 },
        { afterMs: 200, behindMs: 600 },
      ],
      500,
    ],
    [
      "is not measured over less than 100 ms",
      [
        { afterMs: 0, behindMs: 500 },
        { afterMs: 99, behindMs: 0 },
      ],
      undefined,
    ],
    [
      "is not measured over more than 3 s",
      [
        { afterMs: 0, behindMs: 500 },
        { afterMs: 3000, behindMs: 0 },
      ],
      undefined,
    ],
    [
      "stays when the meter may have been brought forward: it moved by more than the writes",
      [
        { afterMs: 0, behindMs: 2500 },
        { afterMs: 200, behindMs: 2600 },
        { afterMs: 400, behindMs: 2000 },
      ],
      500,
    ],
    [
      "is not known across a split, which starts the meter again",
      [
        { afterMs: 0, behindMs: 2900 },
        { afterMs: 100, behindMs: 1998, shardCount: 2 },
      ],
      undefined,
    ],
  ])("%s", (_, sights, expected) => {
    expect(rateAfter(...sights)).toBe(expected);
  });
});

test("half of what was counted is forgotten in a second, and all of it with another count", () => {
  let nowMs = NOW;
  const loads = new BucketLoads(() => nowMs);
  const bucket = shardOf(0);
  for (let call = 0; call < 4; call += 1) loads.count(bucket, 1, "throttled");
  loads.count(bucket, 1, "consumed");
  expect(loads.of(bucket)).toMatchObject({ consumed: 1, throttled: 4, sinceMs: NOW });
  nowMs += 1000;
  loads.count(bucket, 1, "consumed");
  expect(loads.of(bucket)).toMatchObject({ consumed: 1.5, throttled: 2, sinceMs: NOW });
  expect(loads.of({ ...bucket, shardCount: 2 })).toMatchObject({
    consumed: 0,
    throttled: 0,
    sinceMs: nowMs,
  });
});

test("the largest amounts are remembered by limit, whichever process saw them", () => {
  const loads = new BucketLoads(() => NOW);
  const bucket = shardOf(0);
  expect(loads.largestOf(bucket)).toBeUndefined();
  const limits = [{ name: "a" }, { name: "b" }] as unknown as Parameters<
    BucketLoads["note"]
  >[1]["limits"];
  loads.note(bucket, { limits }, [1000, 5000]);
  loads.note(bucket, { limits }, [3000, 2000]);
  loads.noteLargest(bucket, new Map([["b", 9000]]));
  expect(loads.largestOf(bucket)).toEqual(
    new Map([
      ["a", 3000],
      ["b", 9000],
    ]),
  );
});
