import type { SeenBucket } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import {
  balancesOf,
  fullBalances,
} from "@zae-limiter/limiter/buckets/distributed/state/shard-balances.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { describe, expect, test } from "vitest";
import { NOW, shardOf, situationOf } from "../known.ts";

const NAME = { entityId: "e", resource: "r" };
const CONFIG = configOf(["a:10/day"]);
const DAY_MS = 86_400_000;

function shardAt(shard: number, tokens: number, shardCount: number, more = {}): SeenBucket {
  return shardOf(tokens, { shard, shardCount, ttl: undefined, ...more });
}

function statesOf(shown: readonly (SeenBucket | undefined)[], agoMs = 0) {
  return situationOf(shown, { shownMs: NOW - agoMs }).states;
}

describe("the number of shards", () => {
  test("the number of shards is unknown until the first one was shown, and 1 where there is no bucket", () => {
    expect(statesOf([]).countOf(NAME)).toBeUndefined();
    expect(statesOf([undefined]).countOf(NAME)).toBe(1);
    expect(statesOf([shardAt(0, 1, 4)]).countOf(NAME)).toBe(4);
  });

  test("the number of shards is what another shard has shown since, where that is more", () => {
    const states = statesOf([shardAt(0, 1, 2)], 5);
    states.correct(shardAt(1, 1, 2));
    expect(states.countOf(NAME)).toBe(2);
    states.correct(shardAt(1, 1, 8));
    expect(states.countOf(NAME)).toBe(8);
  });
});

describe("known balances", () => {
  test("known balances are those of all shards, and their sums", () => {
    const states = statesOf([shardAt(0, 1, 2), shardAt(1, 2.5, 2)]);
    expect(states.known(NAME, CONFIG, NOW)).toEqual({
      shards: [[1000], [2500]],
      sumsMilli: [3500],
    });
  });

  test("known balances of a bucket that does not exist are those of a full one", () => {
    expect(statesOf([undefined]).known(NAME, CONFIG, NOW)).toEqual({
      shards: [],
      sumsMilli: [10_000],
    });
  });

  test.each<[string, (SeenBucket | undefined)[], number]>([
    ["the first shard was never shown", [], 0],
    ["a shard was never shown", [shardAt(0, 1, 2)], 0],
    ["the states are a second old", [shardAt(0, 1, 1)], 1000],
    ["the clock went back", [shardAt(0, 1, 1)], -1],
    [
      "a shard was shown before another one was merged into it",
      [shardAt(0, 1, 2), shardAt(1, 1, 4)],
      0,
    ],
    [
      "newer limits wait to be brought",
      [shardAt(0, 1, 1, { configVersion: 0, limits: new Map() })],
      0,
    ],
  ])("balances are not known where %s", (_, shown, agoMs) => {
    expect(statesOf(shown, agoMs).known(NAME, CONFIG, NOW)).toBeUndefined();
  });

  test("known balances leave out a shard whose share still lies in its origin", () => {
    const states = statesOf([shardAt(0, 1, 4), shardAt(1, 2, 2), shardAt(2, 0.5, 4), undefined]);
    expect(states.known(NAME, CONFIG, NOW)?.sumsMilli).toEqual([3500]);
  });
});

test("balances refuse for a second after they were shown, and only what they lack", () => {
  const shown = [shardAt(0, 1.5, 1)];
  const parts = [1, 2, 3].map((tokens) => ({ amountsMilli: [tokens * 1000] }));
  expect(statesOf(shown).refused(NAME, CONFIG, parts, NOW)).toEqual({
    refused: parts.slice(1),
    sumsMilli: [1500],
  });
  expect(statesOf(shown).refused(NAME, CONFIG, parts.slice(0, 1), NOW)).toBeUndefined();
  expect(statesOf(shown, 1000).refused(NAME, CONFIG, parts, NOW)).toBeUndefined();
  expect(statesOf([undefined]).refused(NAME, CONFIG, parts, NOW)).toBeUndefined();
});

test.each([
  ["nearly all was consumed", [shardAt(0, 0.6, 2), shardAt(1, 0.6, 2)], true],
  ["an eighth is left", [shardAt(0, 0.625, 2), shardAt(1, 0.625, 2)], false],
  ["few of the shards were seen", [shardAt(0, 0, 4)], false],
])("a bucket is scarce or is not where %s", (_, shown, expected) => {
  expect(statesOf(shown).isScarce(NAME, CONFIG)).toBe(expected);
});

test("last balances are full where nothing is known, and never beyond full", () => {
  const lastOf = (shown: readonly SeenBucket[], agoMs = 0) =>
    statesOf(shown, agoMs).lastBalances(NAME, CONFIG).balancesMilli;
  expect(lastOf([])).toEqual([10_000]);
  expect(lastOf([shardAt(0, 1, 2)], DAY_MS)).toEqual([6000]);
  expect(lastOf([shardAt(0, 5, 2), shardAt(1, 5, 2)])).toEqual([10_000]);
});

describe("how old balances are", () => {
  const NEVER = Number.NEGATIVE_INFINITY;

  /** Two shards, of which the second was shown later, and what this process has predicted. */
  function twoShards(predicted: readonly number[] = []) {
    const states = statesOf([shardAt(0, 1, 2), shardAt(1, 2, 2)], 400);
    const idOf = (shard: number) => states.idOf(NAME, shard);
    states.shards.observe(idOf(1))(shardAt(1, 2, 2), NOW - 7);
    for (const shard of predicted) states.shards.predict(idOf(shard), shardAt(shard, 1, 2), []);
    return states;
  }

  test.each<[string, number[], number[], number]>([
    ["the oldest shard", [], [], NOW - 400],
    ["the oldest shard that was not written", [], [0], NOW - 7],
    ["now where all were written", [], [0, 1], NOW],
    ["never where a shard is predicted", [1], [0], NEVER],
    ["that of the others where the one that is predicted was written", [0], [0], NOW - 7],
  ])("last balances are as old as %s", (_, predicted, written, expected) => {
    const { shownAtMs } = twoShards(predicted).lastBalances(NAME, CONFIG, written);
    expect(shownAtMs).toBe(expected);
  });

  test.each<[string, (SeenBucket | undefined)[], number]>([
    ["a shard is unknown", [shardAt(0, 1, 2)], NEVER],
    ["the bucket is unknown", [], NEVER],
    [
      "the share of a shard still lies in its origin",
      [shardAt(0, 1, 4), shardAt(1, 2, 2), shardAt(2, 0.5, 4)],
      NOW - 5,
    ],
    ["a shard is not there", [shardAt(0, 1, 2), undefined], NOW - 5],
  ])("last balances have an age where %s", (_, shown, expected) => {
    expect(statesOf(shown, 5).lastBalances(NAME, CONFIG).shownAtMs).toBe(expected);
  });

  test("a refusal is as old as the oldest shard, and a prediction is no older than what it is from", () => {
    const ageOf = (states: ReturnType<typeof twoShards>) =>
      states.shownAtMs([NAME], [states.of(NAME, 0)], NOW);
    expect(ageOf(twoShards())).toBe(NOW - 400);
    expect(ageOf(twoShards([0]))).toBe(NOW - 7);
    expect(ageOf(twoShards([0, 1]))).toBe(NOW);
    expect(ageOf(statesOf([]))).toBe(NOW);
  });
});

test("a throttled shard is passed by for a quarter of a second", () => {
  const states = statesOf([]);
  expect(states.isThrottled(NAME, 1, NOW)).toBe(false);
  states.throttled(NAME, 1);
  expect([0, 249, 250, -1].map((ms) => states.isThrottled(NAME, 1, NOW + ms))).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect(states.isThrottled(NAME, 2, NOW)).toBe(false);
});

test("a shard that is gone was merged where its origin is of a later generation", () => {
  const origin = (generation: number, shardCount = 2) => shardAt(1, 1, shardCount, { generation });
  const shown = (one: SeenBucket) => [shardAt(0, 1, 4), one, shardAt(2, 1, 4), undefined];
  expect(statesOf(shown(origin(1))).isMerged(NAME, 3)).toBe(true);
  expect(statesOf(shown(origin(0))).isMerged(NAME, 3)).toBe(false);
  expect(statesOf(shown(origin(1, 4))).isMerged(NAME, 3)).toBe(false);
  expect(statesOf(shown(origin(1))).isMerged(NAME, 2)).toBe(false);
});

test("a bucket that is forgotten is forgotten with all its shards", () => {
  const states = statesOf([shardAt(0, 1, 2), shardAt(1, 1, 2), shardAt(2, 1, 4)]);
  states.forgetAll(NAME);
  expect([0, 1, 2].map((shard) => states.of(NAME, shard))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test("a limit that a shard does not have yet is full in it", () => {
  const config = configOf(["a:10/day", "b:6/day"]);
  expect(balancesOf(shardAt(0, 1, 2), config, NOW)).toEqual([1000, 3000]);
  expect(fullBalances(config, NOW)).toEqual([10_000, 6000]);
});
