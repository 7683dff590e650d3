import { consumeChain } from "@zae-limiter/limiter/buckets/embedded/fast-chain.ts";
import { PackedBucket } from "@zae-limiter/limiter/buckets/embedded/packed-bucket.ts";
import { SharedBuilds } from "@zae-limiter/limiter/buckets/embedded/shared-builds.ts";
import { ANCESTORS_MAX } from "@zae-limiter/limiter/records/entities/ancestry.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";
import { bucketWith, limitWith, NOW } from "./bucket-of.ts";

/** A bucket with so many tokens, of an entity that cascades to `parentId`. */
function bucketOf(tokens: number, parentId?: string): PackedBucket {
  const link = { cascade: parentId !== undefined, parentId };
  const bucket = bucketWith([limitWith(tokens * 1000)], { link });
  const packed = new PackedBucket(bucket, new SharedBuilds().of(bucket, undefined));
  const config = configOf(["a:10/min"]);
  const fast = { config, given: undefined, generation: 1, expires: false, keepSeconds: -1 };
  packed.remember(fast, 0);
  return packed;
}

function consumed(tokens: number, bucket: PackedBucket, above: Record<string, PackedBucket>) {
  const request = { entityId: "child", resource: "r", consume: { a: tokens } };
  return consumeChain({ request, bucket, ignoresMissing: false, nowMs: NOW }, (id) => above[id]);
}

function tokensOf(...buckets: readonly PackedBucket[]): number[] {
  return buckets.map((bucket) => (bucket.unpacked().limits[0]?.level.tokensMilli ?? 0) / 1000);
}

test("a chain that has enough is consumed from in every bucket, from the child up", () => {
  const [child, team, org] = [bucketOf(5, "team"), bucketOf(6, "org"), bucketOf(7)];
  const result = consumed(2, child, { team, org });
  expect(result?.granted).toBe(true);
  expect(result?.legs.map(({ entityId }) => entityId)).toEqual(["child", "team", "org"]);
  expect(result?.balancesMilli).toEqual([[3000], [4000], [5000]]);
  expect(result?.outcomes.map(({ parts }) => parts)).toEqual(
    [0, 1, 2].map(() => [{ shard: 0, amountsMilli: [2000] }]),
  );
  expect(tokensOf(child, team, org)).toEqual([3, 4, 5]);
});

test("one ancestor that refuses leaves every bucket of the chain unchanged", () => {
  const [child, team] = [bucketOf(5, "team"), bucketOf(1)];
  const result = consumed(2, child, { team });
  expect(result).toMatchObject({ granted: false, balancesMilli: [[5000], [1000]] });
  expect(tokensOf(child, team)).toEqual([5, 1]);
});

test("an ancestor without a bucket, or one that cannot decide, leaves all to the slow path", () => {
  const child = bucketOf(5, "team");
  expect(consumed(2, child, {})).toBeUndefined();
  expect(consumed(2, child, { team: bucketOf(-1) })).toBeUndefined();
  expect(tokensOf(child)).toEqual([5]);
});

test("a circle of ancestors ends on the slow path", () => {
  const child = bucketOf(5, "child");
  expect(consumed(1, child, { child })).toBeUndefined();
  expect(tokensOf(child)).toEqual([5]);
});

test("the longest chain that there may be is decided here", () => {
  const above: Record<string, PackedBucket> = {};
  for (let at = 1; at <= ANCESTORS_MAX; at += 1) {
    above[`e${at}`] = bucketOf(5, at < ANCESTORS_MAX ? `e${at + 1}` : undefined);
  }
  expect(consumed(1, bucketOf(5, "e1"), above)?.legs).toHaveLength(ANCESTORS_MAX + 1);
});
