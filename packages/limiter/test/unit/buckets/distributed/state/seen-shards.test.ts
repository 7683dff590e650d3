import { seenShards, totals } from "@zae-limiter/limiter/buckets/distributed/state/seen-shards.ts";
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
  expect(totals([shardOf(2), shardOf(3)], CONFIG, NOW)).toEqual([5000]);
  expect(totals([shardOf(8), shardOf(8)], CONFIG, NOW)).toEqual([10_000]);
  expect(totals([], CONFIG, NOW)).toEqual([10_000]);
});
