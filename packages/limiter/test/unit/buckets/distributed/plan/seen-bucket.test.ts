import {
  asSeen,
  builtFrom,
  decoded,
  encodeShard,
  excessMilli,
  isAnnounced,
  isPinned,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { NAMESPACE } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";
import { shardOf } from "../known.ts";
import { itemOf, limitOf } from "../written.ts";

test("a shard that is written and read again is the same, with rebases and generation", () => {
  const bucket = shardOf(4, { shard: 3, shardCount: 8, rebases: 2, generation: 5, ttl: undefined });
  const again = decoded(encodeShard(NAMESPACE, bucket));
  expect(again).toMatchObject({ shard: 3, shardCount: 8, rebases: 2, generation: 5 });
  expect(limitOf(again)).toEqual(limitOf(bucket));
});

test("an item that is missing, or a stub without a base time, is no bucket", () => {
  expect(decoded(undefined)).toBeUndefined();
  const { rf: _, ...stub } = itemOf(shardOf(4));
  expect(decoded(stub as ReturnType<typeof itemOf>)).toBeUndefined();
});

test("only the first of several shards says what was needed and counts writes", () => {
  const record = { nd: "1.0000000.1.1", wn: 7, ma: 12 };
  const first = decoded({ ...itemOf(shardOf(4, { shardCount: 2 })), ...record });
  expect(first).toMatchObject({ need: record.nd, writesCounted: 7, mergingAtMs: 12 });
  const unsharded = decoded({ ...itemOf(shardOf(4)), ...record });
  expect(unsharded).toMatchObject({ writesCounted: 0, mergingAtMs: undefined });
  const second = decoded({ ...itemOf(shardOf(4, { shard: 1, shardCount: 2 })), ...record });
  expect(second?.need).toBeUndefined();
});

test.each([
  [5, 2, 0, false],
  [5.001, 2, 1, true],
  [10, 4, 7500, true],
  [-3, 4, 0, false],
  [10, 1, 0, false],
])("with %d tokens and %i shards the first one holds %i milli-tokens too much", (...row) => {
  const [tokens, shardCount, excess, announced] = row;
  const bucket = shardOf(tokens, { shardCount });
  expect(excessMilli(bucket, limitOf(bucket))).toBe(excess);
  expect(isAnnounced(bucket)).toBe(announced);
});

test("more shards than there can be are announced, whatever the shard holds", () => {
  expect(isAnnounced(shardOf(0, { shardCount: 64, announced: 128 }))).toBe(true);
});

test("a bucket of this library is not pinned to its base time", () => {
  expect(isPinned(shardOf(1))).toBe(false);
});

test("a config is compared with the limits and the version that an item has", () => {
  const from = builtFrom(shardOf(1, { configVersion: 4 }));
  expect([from.version, from.source, [...from.limitNames()]]).toEqual([4, "resource", ["a"]]);
  expect(from.rateOf("a")).toMatchObject({ capacityMilli: 10_000 });
  expect(from.rateOf("b")).toBeUndefined();
});

test("an attribute that is 0 is not stored, and compared as absent", () => {
  expect(asSeen("rn", 0)).toEqual({ is: "absent", name: "rn" });
  expect(asSeen("rn", 2)).toEqual({ is: "=", name: "rn", value: 2 });
});
