/** What a write that failed means: when it counts, and whether it goes once more. */

import { describe, expect, test } from "vitest";
import {
  askedAt,
  isFullNow,
  repeatsOvertaken,
} from "../../../../src/buckets/distributed/overtaking.ts";
import type { SeenBucket } from "../../../../src/buckets/distributed/seen-bucket.ts";
import type { ShardWrite } from "../../../../src/buckets/distributed/step.ts";
import { WritePlan } from "../../../../src/buckets/distributed/write-plan.ts";
import { NOW, requestOf, shardOf } from "./known.ts";

test.each([
  ["the time of the request", 5, 0, 10, 5],
  ["the base time, where it is later", 5, 8, 10, 8],
  ["now at the latest", 5, 20, 10, 10],
])("a failed write is judged by %s", (_, askedMs, baseMs, nowMs, expected) => {
  const bucket = { ...shardOf(1), refilledAtMs: baseMs };
  expect(askedAt(askedMs, bucket, nowMs)).toBe(expected);
});

test("a bucket that had too little is full a day later, and not at once", () => {
  const at = (nowMs: number) => isFullNow(requestOf(1), shardOf(0), { nowMs, ttlMultiplier: 7 });
  expect(at(NOW)).toBe(false);
  expect(at(NOW + 2 * 86_400_000)).toBe(true);
});

describe("a write that another one has overtaken", () => {
  const now = shardOf(4);
  const planned = (...full: readonly boolean[]) => ({
    kind: "write" as const,
    plan: new WritePlan(),
    guesses: full.map((isFull) => ({ limit: "a", full: isFull, lookedFull: isFull })),
  });
  const overtaken = (from: Partial<SeenBucket> = {}, repeats = false) =>
    ({ shard: 0, from: { ...now, ...from }, repeats }) as ShardWrite;

  test.each<[string, ShardWrite | undefined, ReturnType<typeof planned>, boolean]>([
    ["goes once more where the bucket is below full", overtaken(), planned(false), true],
    ["goes once more only where all limits are", overtaken(), planned(false, true), false],
    ["is planned again where the bucket is full", overtaken(), planned(true), false],
    ["is planned again where nothing was guessed", overtaken(), planned(), false],
    ["is planned again the second time", overtaken({}, true), planned(false), false],
    [
      "is planned again after a rebase",
      overtaken({ refilledAtMs: NOW - 1 }),
      planned(false),
      false,
    ],
    [
      "is planned again after a rebase at the same time",
      overtaken({ rebases: 1 }),
      planned(false),
      false,
    ],
    ["is planned again after a split", overtaken({ shardCount: 2 }), planned(false), false],
    ["is none: a read is not repeated", undefined, planned(false), false],
  ])("a write that another one has overtaken %s", (_, write, plan, expected) => {
    expect(repeatsOvertaken(write, now, plan as never)).toBe(expected);
  });
});
