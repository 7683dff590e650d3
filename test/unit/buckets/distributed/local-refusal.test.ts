import { expect, test } from "vitest";
import { refusedLocally } from "../../../../src/buckets/distributed/local-refusal.ts";
import type { SeenBucket } from "../../../../src/buckets/distributed/seen-bucket.ts";
import type { Leg } from "../../../../src/buckets/leg.ts";
import { UNLINKED } from "../../../../src/buckets/recorded-link.ts";
import { configOf } from "../table.ts";
import { NOW, shardOf, situationOf } from "./known.ts";

const CONFIG = configOf(["a:10/day"]);

function shardAt(shard: number, tokens: number, shardCount: number): SeenBucket {
  return shardOf(tokens, { shard, shardCount, ttl: undefined });
}

function legOf(tokens: number, more: Partial<Leg> = {}): Leg {
  return {
    ...{ entityId: "e", resource: "r", config: CONFIG, amountsMilli: [tokens * 1000] },
    ...{ link: UNLINKED, linkIsFresh: false },
    ...more,
  };
}

function statesOf(shown: readonly (SeenBucket | undefined)[], agoMs = 0) {
  return situationOf(shown, { shownMs: NOW - agoMs }).states;
}

test("a call is refused by what was shown a moment ago, with what there is", () => {
  const states = statesOf([shardAt(0, 1, 2), shardAt(1, 2, 2)]);
  const refused = refusedLocally(states, [legOf(4)], NOW);
  expect(refused?.balancesMilli).toEqual([[3000]]);
  expect(refused?.firsts).toEqual([states.of(legOf(4), 0)]);
});

test.each<[string, (SeenBucket | undefined)[], number, number]>([
  ["its bucket was never shown", [], 4, 0],
  ["there is no bucket yet", [undefined], 4, 0],
  ["the first shard has enough", [shardAt(0, 4, 1)], 4, 0],
  ["another shard has enough", [shardAt(0, 1, 2), shardAt(1, 4, 2)], 4, 0],
  ["all shards have enough together", [shardAt(0, 2, 2), shardAt(1, 2, 2)], 4, 0],
  ["a shard was never shown", [shardAt(0, 1, 2)], 4, 0],
  ["the states are a second old", [shardAt(0, 1, 1)], 4, 1000],
  ["the clock went back", [shardAt(0, 1, 1)], 4, -1],
  ["it consumes nothing", [shardAt(0, -1, 1)], 0, 0],
])("the store is asked about a call where %s", (_, shown, tokens, agoMs) => {
  expect(refusedLocally(statesOf(shown, agoMs), [legOf(tokens)], NOW)).toBeUndefined();
});

test("the store is asked where no limit is a gate", () => {
  const states = statesOf([shardAt(0, 1, 1)]);
  const bypassed = legOf(4, { config: { ...CONFIG, bypass: true } });
  expect(refusedLocally(states, [bypassed], NOW)).toBeUndefined();
});

test("one leg refuses the whole call, and a leg that was not shown has no balances", () => {
  const states = statesOf([shardAt(0, 1, 1)]);
  const unknown = legOf(4, { entityId: "parent" });
  const before = refusedLocally(states, [unknown, legOf(4)], NOW);
  expect(before?.balancesMilli).toEqual([undefined, [1000]]);
  expect(before?.firsts).toEqual([undefined, states.of(legOf(4), 0)]);
  const behind = refusedLocally(states, [legOf(4), unknown], NOW);
  expect(behind?.balancesMilli).toEqual([[1000], undefined]);
});
