/** Which shard a consume goes to, by what is known of the shards. */

import type { SeenBucket } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { pickShard } from "@zae-limiter/limiter/buckets/distributed/shards/shard-choice.ts";
import { describe, expect, test } from "vitest";
import { NOW, requestOf, shardOf, situationOf } from "../known.ts";

/** Shards of a bucket of 10 tokens with these balances; `undefined`: nothing is known of it. */
function shardsOf(tokens: readonly (number | undefined)[]): (SeenBucket | undefined)[] {
  return tokens.map((held, shard) =>
    held === undefined ? undefined : shardOf(held, { shard, shardCount: tokens.length }),
  );
}

function picked(
  tokens: readonly (number | undefined)[],
  amount: number,
  {
    tried = [] as number[],
    throttled = [] as number[],
    random = () => 0,
    count = tokens.length,
  } = {},
): number | undefined {
  const { name, config } = requestOf(amount);
  const { states } = situationOf(shardsOf(tokens));
  for (const shard of throttled) states.throttled(name, shard);
  const wanted = { name, config, amountsMilli: [amount * 1000], count, tried: new Set(tried) };
  return pickShard(wanted, states, NOW, random);
}

describe("a consume of one token goes", () => {
  test.each<[string, number | undefined, number | undefined]>([
    ["to the shard that has most left", picked([2, 4], 1), 1],
    ["to a full shard before any other", picked([4, 5], 1), 1],
    ["to a shard of which nothing is known, as if it were full", picked([4, undefined], 1), 1],
    ["past a shard that has too little", picked([0, 2], 1), 1],
    ["past a throttled shard", picked([5, 2], 1, { throttled: [0] }), 1],
    ["to a throttled shard where no other has enough", picked([5, 0], 1, { throttled: [0] }), 0],
    ["to none where all are known to have too little", picked([0, 0], 1), undefined],
    ["to none that was tried", picked([5, 4], 1, { tried: [0] }), 1],
    ["to none when three were tried", picked([5, 5, 5, 5], 1, { tried: [0, 1, 2] }), undefined],
  ])("a consume of one token goes %s", (_, found, expected) => {
    expect(found).toBe(expected);
  });
});

test("an amount that no share can hold goes to none of the shards", () => {
  expect(picked([5, 5], 6)).toBeUndefined();
  expect(picked([5, 5], 5)).toBe(0);
});

test("an eighth of many shards is tried before all are read", () => {
  const tokens = Array.from({ length: 64 }, () => undefined);
  const tried = Array.from({ length: 7 }, (_, shard) => shard);
  expect(picked(tokens, 0, { tried })).toBeTypeOf("number");
  expect(picked(tokens, 0, { tried: [...tried, 7] })).toBeUndefined();
});

test("eight at random are compared, and the others where these have too little", () => {
  const tokens = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0.625, 0, 0, 0, 0, 0, 0];
  const amount = 0.5;
  // The first eight are drawn, and none of them has enough.
  expect(picked(tokens, amount, { random: () => 0 })).toBe(9);
});
