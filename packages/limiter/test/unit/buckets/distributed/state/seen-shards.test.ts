import type { SeenBucket } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { seenBy, seenShards } from "@zae-limiter/limiter/buckets/distributed/state/seen-shards.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";
import { NOW, shardOf, situationOf } from "../known.ts";

const NAME = { entityId: "e", resource: "r" };
const CONFIG = configOf(["a:10/day"]);

test("the shards that were seen have their balances and how many there are", () => {
  const shards = [2, 3].map((tokens, shard) =>
    shardOf(tokens, { shard, shardCount: 2, ttl: undefined }),
  );
  const { states } = situationOf([shards[0], undefined]);
  expect(seenShards(states, NAME, CONFIG)).toEqual([
    { balancesMilli: [2000], periods: undefined, shardCount: 2 },
  ]);
  const all = situationOf(shards).states;
  expect(seenShards(all, NAME, CONFIG).map(({ balancesMilli }) => balancesMilli)).toEqual([
    [2000],
    [3000],
  ]);
  expect(seenShards(situationOf([]).states, NAME, CONFIG)).toEqual([]);
});

test("the sums of shards are at most full, and full where there is none", () => {
  const { rules } = situationOf([]);
  const context = { namespaceId: "n", nowMs: NOW, rules };
  const sumOf = (...shards: SeenBucket[]) => seenBy([{ config: CONFIG }], [shards], context);
  expect(sumOf(shardOf(2), shardOf(3)).balancesMilli).toEqual([[5000]]);
  expect(sumOf(shardOf(8), shardOf(8)).balancesMilli).toEqual([[10_000]]);
  expect(sumOf().balancesMilli).toEqual([[10_000]]);
});
