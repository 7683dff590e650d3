import { Bucket } from "@zae-limiter/limiter/buckets/embedded/bucket.ts";
import {
  earliestEndMs,
  isUnused,
  seenPeriodAt,
} from "@zae-limiter/limiter/buckets/embedded/bucket-periods.ts";
import { decodeRow, encodeRow } from "@zae-limiter/limiter/buckets/embedded/bucket-row.ts";
import { periodAt } from "@zae-limiter/limiter/buckets/embedded/limit-numbers.ts";
import { UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import type { Rate } from "@zae-limiter/limiter/core/bucket.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";
import { NOW } from "./bucket-of.ts";

const CONFIG = configOf(["a:10/day UTC", "b:10/session:5hour", "c:10/min"]);
const DAY_MS = 86_400_000;
const END_MS = NOW - (NOW % DAY_MS) + DAY_MS;

function opened(): Bucket {
  const bucket = Bucket.full(CONFIG, UNLINKED, NOW);
  bucket.consume(CONFIG, [3000, 1000, 0], NOW);
  return bucket;
}

function seen({ build, numbers }: Bucket, at: number, nowMs: number) {
  return seenPeriodAt(numbers, at, build.rates[at] as Rate, nowMs);
}

test("a call sees the period of a quota, and that of a session while it is open", () => {
  const unused = Bucket.full(CONFIG, UNLINKED, NOW);
  expect(seen(unused, 0, NOW)).toEqual({ endMs: END_MS, grantedMilli: 10_000, atMs: NOW });
  expect(seen(unused, 1, NOW)).toBeUndefined();
  const endMs = NOW + 5 * 3_600_000;
  expect(seen(opened(), 1, NOW)).toEqual({ endMs, grantedMilli: 10_000, atMs: NOW });
  expect(seen(opened(), 1, endMs)).toBeUndefined();
  expect(seen(opened(), 0, END_MS)?.endMs).toBe(END_MS + DAY_MS);
});

test("the earliest end is that of a period in force", () => {
  const { build, numbers } = opened();
  expect(earliestEndMs(build.rates, numbers, NOW)).toBe(Math.min(END_MS, NOW + 5 * 3_600_000));
  expect(earliestEndMs(build.rates, numbers, END_MS + DAY_MS)).toBe(Number.POSITIVE_INFINITY);
});

test("a limit is unused when a new one would be in the same period with the same balance", () => {
  const unusedIn = (bucket: Bucket, nowMs: number) =>
    [0, 1].map((at) =>
      isUnused(periodAt(bucket.numbers, at), bucket.build.rates[at] as Rate, nowMs),
    );
  expect(unusedIn(Bucket.full(CONFIG, UNLINKED, NOW), NOW)).toEqual([true, true]);
  expect(unusedIn(opened(), NOW)).toEqual([false, false]);
  expect(unusedIn(opened(), END_MS + DAY_MS)).toEqual([true, true]);
});

test("a row keeps periods, and the quota that another kind has replaced", () => {
  const bucket = opened();
  const replaced = bucket.withConfig(configOf(["a:10/min"], "resource", 9), NOW);
  expect(replaced.rare.paused.map(({ name, level }) => [name, level.tokensMilli])).toEqual([
    ["a", 7000],
    ["b", 9000],
  ]);
  for (const one of [bucket, replaced]) {
    expect(decodeRow(encodeRow(one), null, "e r")).toEqual(one);
  }
  const back = replaced.withConfig(configOf(["a:10/day UTC"], "resource", 10), NOW);
  expect(back.balanceMilli(0, NOW)).toBe(7000);
});
