import {
  balanceMilli,
  balances,
  builtFrom,
  changedLinks,
  type EmbeddedLimit,
  limitNamed,
  newBucket,
  states,
  withConfig,
  withConsumed,
  withCounted,
} from "@zae-limiter/limiter/buckets/embedded/embedded-bucket.ts";
import type { BucketConfig, Leg, Link } from "@zae-limiter/limiter/buckets/leg.ts";
import { UNLINKED } from "@zae-limiter/limiter/buckets/link.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bucketWith, limitWith, NOW } from "./bucket-of.ts";

test("a new bucket is full, and says what it was built from", () => {
  const bucket = newBucket(configOf(["a:10/min", "b:5/min"], "system", 4), UNLINKED, NOW);
  expect(bucket).toMatchObject({ version: 4, source: "system", events: 0, ttl: undefined });
  expect(bucket.limits.map((limit) => balanceMilli(limit, NOW))).toEqual([10_000, 5000]);
  const from = builtFrom(bucket);
  expect([from.version, from.source, [...from.limitNames()]]).toEqual([4, "system", ["a", "b"]]);
  expect(from.rateOf("b")).toMatchObject({ capacityMilli: 5000 });
});

test.each([
  ["a larger capacity leaves the balance", 4000, "a:20/min", 4000],
  ["a smaller capacity cuts the balance", 4000, "a:3/min", 3000],
  ["a debt stays a debt", -4000, "a:3/min", -4000],
])("%s", (_, tokens, text, expected) => {
  const bucket = withConfig(bucketWith([limitWith(tokens)]), configOf([text], "resource", 2), NOW);
  expect(balanceMilli(limitNamed(bucket, "a") as EmbeddedLimit, NOW)).toBe(expected);
});

test("a config brings new limits full, and takes away those it does not name", () => {
  const bucket = bucketWith([limitWith(4000), limitWith(1, { name: "old" })]);
  const after = withConfig(bucket, configOf(["a:10/min", "new:5/min"], "resource", 2), NOW);
  expect(after.limits.map(({ name }) => name)).toEqual(["a", "new"]);
  expect(balanceMilli(limitNamed(after, "new") as EmbeddedLimit, NOW)).toBe(5000);
});

test("limits of a call leave the version and the other limits as they are", () => {
  const bucket = bucketWith([limitWith(4000), limitWith(1, { name: "old" })]);
  const after = withConfig(bucket, configOf(["a:20/min"], "override", 9), NOW);
  expect([after.version, after.source]).toEqual([1, "override"]);
  expect(after.limits.map(({ name }) => name)).toEqual(["a", "old"]);
});

test("a consume settles the time, and a refund keeps it", () => {
  const later = NOW + 6000;
  expect(withConsumed(limitWith(4000), 2000, later)).toMatchObject({
    level: { tokensMilli: 3000, refilledAtMs: later },
    consumedMilli: 2000,
  });
  expect(withConsumed(limitWith(4000), -2000, later)).toMatchObject({
    level: { tokensMilli: 6000, refilledAtMs: NOW },
    consumedMilli: -2000,
  });
});

test("a count leaves the balance, and a change by nothing leaves the limit", () => {
  const limit = limitWith(4000);
  expect(withCounted(limit, 2000)).toMatchObject({ level: limit.level, consumedMilli: 2000 });
  expect(withCounted(limit, 0)).toBe(limit);
  expect(withConsumed(limit, 0, NOW + 1)).toBe(limit);
});

test("a total that leaves the safe integers goes on as a bigint", () => {
  const limit = limitWith(4000, { consumedMilli: Number.MAX_SAFE_INTEGER });
  expect(withCounted(limit, 2).consumedMilli).toBe(BigInt(Number.MAX_SAFE_INTEGER) + 2n);
});

property(
  "another rate mints nothing: the balance is the smaller one, and the remainder below its period",
  [
    fc.integer({ min: -10_000, max: 10_000 }),
    fc.nat(59_999),
    fc.nat(120_000),
    fc.integer({ min: 1, max: 40 }),
    fc.constantFrom("sec", "7sec", "min", "day"),
  ],
  (tokensMilli, remainder, passedMs, tokens, period) => {
    const before = limitWith(0, { level: { tokensMilli, refilledAtMs: NOW, remainder } });
    const nowMs = NOW + passedMs;
    const config = configOf([`a:${tokens}/${period}`], "resource", 2);
    const [after] = withConfig(bucketWith([before]), config, nowMs).limits;
    if (after === undefined) throw new Error("the limit is gone");
    expect(balanceMilli(after, nowMs)).toBe(Math.min(balanceMilli(before, nowMs), tokens * 1000));
    expect(after.level.remainder).toBeLessThan(after.rate.periodMs);
  },
  1000,
);

describe("the buckets of a call", () => {
  const PARENT: Link = { cascade: true, parentId: "team" };

  function legOf(config: BucketConfig, amountsMilli: readonly number[], link = UNLINKED): Leg {
    return { entityId: "e", resource: "r", config, amountsMilli, link, linkIsFresh: true };
  }

  test("a limit that the bucket does not have yet is full", () => {
    const leg = legOf(configOf(["a:10/min", "new:7/min"]), [0, 0]);
    expect(balances(bucketWith([limitWith(4000)]), leg, NOW + 6000)).toEqual([5000, 7000]);
  });

  test("links of buckets that differ from those of the legs are told, all of them", () => {
    const config = configOf(["a:10/min"]);
    const bucket = bucketWith([limitWith(1)], { link: PARENT });
    expect(changedLinks([legOf(config, [0], PARENT)], [bucket])).toBeUndefined();
    expect(changedLinks([legOf(config, [0])], [bucket])).toEqual([PARENT]);
  });

  test("a level that says whether acquires cascade counts more than the bucket", () => {
    const config = { ...configOf(["a:10/min"]), cascade: false };
    const bucket = bucketWith([limitWith(1)], { link: PARENT });
    expect(changedLinks([legOf(config, [0], PARENT)], [bucket])).toEqual([
      { cascade: false, parentId: "team" },
    ]);
  });
});

describe("a row for people", () => {
  test("a row shows each of its limits with the balance at a time", () => {
    const bucket = bucketWith([
      limitWith(4000, { consumedMilli: 6000 }),
      limitWith(-1000, { name: "b" }),
    ]);
    const row = { entityId: "e", resource: "r", bucket };
    expect(states(row as Parameters<typeof states>[0], NOW + 6000)).toEqual([
      {
        ...{ entityId: "e", resource: "r", shard: 0, shardCount: 1, limitName: "a" },
        ...{ capacityMilli: 10_000, refillMilli: 10_000, periodMs: 60_000 },
        ...{ balanceMilli: 5000, consumedMilli: 6000, refilledAtMs: NOW },
      },
      expect.objectContaining({ limitName: "b", balanceMilli: 0, consumedMilli: 0 }),
    ]);
  });

  test("a balance never shows more than the capacity", () => {
    const row = { entityId: "e", resource: "r", bucket: bucketWith([limitWith(9000)]) };
    const [state] = states(row as Parameters<typeof states>[0], NOW + 3_600_000);
    expect(state?.balanceMilli).toBe(10_000);
  });
});
