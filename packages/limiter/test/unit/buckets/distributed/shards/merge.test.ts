import {
  balanceAt,
  balanceOf,
  decoded,
  looksFull,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { planMerge } from "@zae-limiter/limiter/buckets/distributed/shards/merge.ts";
import { planSplit } from "@zae-limiter/limiter/buckets/distributed/shards/split.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { NOW, shardOf } from "../known.ts";
import { itemOf, limitOf, writtenItem } from "../written.ts";

const DAY_MS = 86_400_000;

/** A shard as this library has written it: with a meter of its own. */
function shard(at: number, tokens: number, more: Partial<SeenBucket> = {}): SeenBucket {
  const made = shardOf(tokens, { shard: at, shardCount: 2, ttl: undefined, meterMs: NOW });
  return { ...made, ...more };
}

function merged(kept: SeenBucket, gone: SeenBucket, nowMs = NOW) {
  const items = [itemOf(kept), itemOf(gone)] as const;
  const options = { nowMs, generation: 3, ttlMultiplier: 7 };
  const merge = planMerge(...items, options);
  if (merge === undefined) return undefined;
  return {
    ...merge,
    keptItem: writtenItem(items[0], merge.kept),
    goneItem: writtenItem(items[1], merge.gone),
  };
}

test.each([
  [5, 5, 10],
  [4, 1.5, 5.5],
  [5, -3, 2],
  [-2, -3, -5],
])("shards with %d and %d tokens become one with %d", (one, other, sum) => {
  const result = merged(shard(0, one), shard(1, other));
  const after = decoded(result?.keptItem);
  expect(after).toMatchObject({ shard: 0, shardCount: 1, generation: 3 });
  expect(limitOf(after).tokensMilli).toBe(sum * 1000);
  expect(limitOf(after).totalConsumedMilli).toBe(20_000 - sum * 1000);
  expect(limitOf(result?.merged)).toEqual(limitOf(after));
});

test("the shard that goes becomes a stub that is no bucket, and expires in an hour", () => {
  const result = merged(shard(0, 5), shard(1, 5));
  expect(decoded(result?.goneItem)).toBeUndefined();
  expect(Object.keys(result?.goneItem ?? {}).sort()).toEqual(["PK", "SK", "ttl"]);
  expect(result?.goneItem?.ttl).toBe(NOW / 1000 + 3600);
});

test("a merge that leaves several shards removes a time to live that the kept one still has", () => {
  const kept = shard(0, 2, { shardCount: 4, ttl: NOW / 1000 + 900 });
  const result = merged(kept, shard(2, 2, { shardCount: 4 }));
  expect(result?.keptItem).toMatchObject({ shard_count: 2 });
  expect(result?.keptItem).not.toHaveProperty("ttl");
  expect(result?.merged.ttl).toBeUndefined();
});

test.each<[string, SeenBucket, SeenBucket]>([
  ["that are no pair", shard(0, 5, { shardCount: 4 }), shard(1, 5, { shardCount: 4 })],
  ["of which one has split since", shard(0, 5, { shardCount: 4 }), shard(1, 5)],
  ["whose limits have other rates", shard(0, 5), otherRate(shard(1, 5))],
  ["with a base time far ahead", shard(0, 5), shard(1, 5, { refilledAtMs: NOW + 2001 })],
])("shards %s are not merged", (_, kept, gone) => {
  expect(merged(kept, gone)).toBeUndefined();
});

test.each<[string, Partial<SeenBucket>, number]>([
  ["another balance", {}, 4.999],
  ["another base time", { refilledAtMs: NOW + 1 }, 5],
  ["another number of shards", { shardCount: 4 }, 5],
  ["another generation", { generation: 1 }, 5],
])("neither write passes on a shard with %s than was seen", (_, change, tokens) => {
  const result = merged(shard(0, 5), shard(1, 5));
  if (result === undefined) throw new Error("nothing is planned");
  expect(writtenItem(itemOf(shard(0, tokens, change)), result.kept)).toBeUndefined();
  expect(writtenItem(itemOf(shard(1, tokens, change)), result.gone)).toBeUndefined();
});

function otherRate(bucket: SeenBucket): SeenBucket {
  const stored = limitOf(bucket);
  const rate = { ...stored.rate, refillMilli: 1 };
  return { ...bucket, limits: new Map([["a", { ...stored, rate }]]) };
}

function held(bucket: SeenBucket | undefined, nowMs: number): number {
  return balanceOf(balanceAt(bucket as SeenBucket, limitOf(bucket), nowMs));
}

/** Everything a shard holds, in parts of a milli-token of which a whole one has `perMilli`. */
function partsOf(bucket: SeenBucket | undefined, nowMs: number, perMilli: number): bigint {
  const balance = balanceAt(bucket as SeenBucket, limitOf(bucket), nowMs);
  const rest = looksFull(balance) ? 0 : balance.remainder;
  const scale = BigInt(perMilli / balance.share.periodMs);
  return BigInt(balanceOf(balance)) * BigInt(perMilli) + BigInt(rest) * scale;
}

property(
  "a merge holds what both shards held, to the part of a milli-token, and mints nothing",
  [
    fc.integer({ min: -5000, max: 5000 }),
    fc.integer({ min: -5000, max: 5000 }),
    fc.nat(2 * DAY_MS - 1),
    fc.nat(2 * DAY_MS - 1),
    fc.nat(DAY_MS),
  ],
  (one, other, rest, otherRest, passedMs) => {
    const withRest = (bucket: SeenBucket, remainder: number) => ({
      ...bucket,
      limits: new Map([["a", { ...limitOf(bucket), remainder }]]),
    });
    const kept = withRest(shard(0, one / 1000), rest);
    const gone = withRest(shard(1, other / 1000), otherRest);
    const nowMs = NOW + passedMs;
    const after = decoded(merged(kept, gone, nowMs)?.keptItem);
    const perMilli = 2 * DAY_MS;
    const before = partsOf(kept, nowMs, perMilli) + partsOf(gone, nowMs, perMilli);
    // The period of the merged shard is half as long: an odd part is rounded down.
    const lost = before - partsOf(after, nowMs, perMilli);
    expect(lost === 0n || lost === 1n).toBe(true);
    const { remainder } = limitOf(after);
    expect(remainder >= 0 && remainder < DAY_MS).toBe(true);
  },
  1000,
);

property(
  "a merge undoes a split: the bucket holds what it held before",
  [fc.integer({ min: -10_000, max: 10_000 }), fc.nat(DAY_MS)],
  (milli, passedMs) => {
    const before = shardOf(milli / 1000, { ttl: undefined, meterMs: NOW });
    const nowMs = NOW + passedMs;
    const split = planSplit(before, nowMs);
    const [created] = split.created;
    const after = decoded(merged(split.kept, created as SeenBucket, nowMs)?.keptItem);
    expect(held(after, nowMs)).toBe(held(before, nowMs));
    expect(limitOf(after).totalConsumedMilli).toBe(limitOf(before).totalConsumedMilli);
  },
  500,
);
