import {
  balancesBefore,
  isCertain,
  isRefusedAnyway,
  refusedBy,
} from "@zae-limiter/limiter/buckets/distributed/consume/cascade.ts";
import type { ConsumeAnswer } from "@zae-limiter/limiter/buckets/distributed/consume/step.ts";
import type { SeenBucket } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { type Leg, type Link, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { describe, expect, test } from "vitest";
import { NOW, shardOf, situationOf } from "../known.ts";

const PARENT: Link = { cascade: true, parentId: "team" };
const REFUSED: ConsumeAnswer = { kind: "refused", balancesMilli: [1000], local: false };
const OUTDATED: ConsumeAnswer = { kind: "outdated" };

function legOf(resource: string, more: Partial<Leg> = {}): Leg {
  return {
    ...{ entityId: "e", resource, config: configOf(["a:10/day"]), amountsMilli: [3000] },
    ...{ link: UNLINKED, linkIsFresh: true },
    ...more,
  };
}

function consumed(balance: number): ConsumeAnswer {
  return { kind: "consumed", parts: [], link: UNLINKED, balancesMilli: [balance] };
}

test("a call for one resource is not refused before all of its legs have an answer", () => {
  expect(isRefusedAnyway([legOf("r"), legOf("r")], [REFUSED, undefined])).toBe(false);
  expect(isRefusedAnyway([legOf("r"), legOf("s")], [REFUSED, undefined])).toBe(true);
  expect(isRefusedAnyway([legOf("r"), legOf("s")], [consumed(1), undefined])).toBe(false);
});

test.each<[string, (number[] | undefined)[], Partial<Leg>, boolean, boolean]>([
  ["the entity itself has too little", [[1000], undefined], {}, false, true],
  ["a parent has too little, and the link to it is old", [undefined, [1000]], {}, false, false],
  ["a parent has too little, and the link was shown", [undefined, [1000]], {}, true, true],
  ["a parent has too little, and the entity is known", [[9000], [1000]], {}, false, true],
  [
    "a parent has too little by a link just read",
    [undefined, [1000]],
    { linkIsFresh: true },
    false,
    true,
  ],
  ["a parent has enough", [undefined, [3000]], {}, true, false],
])("a refusal for which %s is certain or is not", (_, balances, more, isShown, expected) => {
  const child = legOf("r", { link: PARENT, linkIsFresh: false, ...more });
  expect(isCertain([child, legOf("r")], balances, () => isShown)).toBe(expected);
});

test("a refusal by another resource is certain, whatever leads to the parents of the first", () => {
  const legs = [legOf("r", { link: PARENT, linkIsFresh: false }), legOf("r"), legOf("s")];
  expect(isCertain(legs, [undefined, undefined, [1000]], () => false)).toBe(true);
});

test.each<[string, ConsumeAnswer | undefined, number[] | undefined]>([
  ["that was consumed", consumed(7000), [10_000]],
  ["that was refused", REFUSED, [1000]],
  ["whose limits are outdated", OUTDATED, undefined],
  ["that was not reached", undefined, undefined],
])("a leg %s shows what it had before the call", (_, answer, expected) => {
  expect(balancesBefore(answer, legOf("r"))).toEqual(expected);
});

test("a bypassed leg has what it had, because nothing was taken from it", () => {
  const leg = legOf("r", { config: { ...configOf(["a:10/day"]), bypass: true } });
  expect(balancesBefore(consumed(7000), leg)).toEqual([7000]);
});

function stateOf(bucket: SeenBucket | undefined, seenAtMs: number) {
  return { bucket, seenAtMs, asOfMs: seenAtMs };
}

test("a refusal of one leg says what it has, and when the store has shown that", () => {
  const shown = stateOf(shardOf(1), NOW - 400);
  expect(refusedBy([legOf("r")], [[1000]], true, [shown], NOW - 400)).toEqual({
    outcome: "refused",
    balancesMilli: [[1000]],
    local: true,
    shownAtMs: NOW - 400,
  });
});

test("a refusal of several legs names those without a bucket", () => {
  const legs = [legOf("r"), legOf("s"), legOf("t")];
  const firsts = [stateOf(shardOf(1), NOW - 1), stateOf(undefined, NOW - 7), undefined];
  expect(refusedBy(legs, [[1000], [0], [0]], false, firsts, NOW - 7)).toEqual({
    outcome: "refused",
    balancesMilli: [[1000], [0], [0]],
    local: false,
    withoutBucket: [legs[1], legs[2]],
    shownAtMs: NOW - 7,
  });
});

test("legs that were made from another parent than a bucket has are made again", () => {
  const legs = [legOf("r", { link: PARENT }), legOf("s", { link: PARENT })];
  const firsts = [stateOf(shardOf(1), NOW), undefined];
  expect(refusedBy(legs, [[0], [0]], true, firsts, NOW)).toEqual({
    outcome: "relinked",
    links: [UNLINKED, PARENT],
  });
});

describe("a call that cached states may refuse", () => {
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
    const refused = states.refusal([legOf(4)], NOW);
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
    expect(statesOf(shown, agoMs).refusal([legOf(tokens)], NOW)).toBeUndefined();
  });

  test("the store is asked where no limit is a gate", () => {
    const states = statesOf([shardAt(0, 1, 1)]);
    const bypassed = legOf(4, { config: { ...CONFIG, bypass: true } });
    expect(states.refusal([bypassed], NOW)).toBeUndefined();
  });

  test("one leg refuses the whole call, and a leg that was not shown has no balances", () => {
    const states = statesOf([shardAt(0, 1, 1)]);
    const unknown = legOf(4, { entityId: "parent" });
    const before = states.refusal([unknown, legOf(4)], NOW);
    expect(before?.balancesMilli).toEqual([undefined, [1000]]);
    expect(before?.firsts).toEqual([undefined, states.of(legOf(4), 0)]);
    const behind = states.refusal([legOf(4), unknown], NOW);
    expect(behind?.balancesMilli).toEqual([[1000], undefined]);
  });
});
