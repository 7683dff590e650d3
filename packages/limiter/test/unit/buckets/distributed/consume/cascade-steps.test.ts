import {
  goesAgain,
  type LegsHistory,
  type LegsStep,
  newLegsHistory,
  nextOfLegs,
} from "@zae-limiter/limiter/buckets/distributed/consume/cascade-steps.ts";
import type { ConsumeAnswer } from "@zae-limiter/limiter/buckets/distributed/consume/step.ts";
import { type Leg, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";
import { NOW, shardOf, situationOf } from "../known.ts";

const CONSUMED: ConsumeAnswer = { kind: "consumed", parts: [], link: UNLINKED, balancesMilli: [0] };
const REFUSED: ConsumeAnswer = { kind: "refused", balancesMilli: [0], local: false };
const OUTDATED: ConsumeAnswer = { kind: "outdated" };

/** A leg on the bucket of which states are known, or on one of which nothing is. */
function legOf(tokens: number, entityId = "e"): Leg {
  return {
    ...{ entityId, resource: "r", config: configOf(["a:10/day"]) },
    ...{ amountsMilli: [tokens * 1000], link: UNLINKED, linkIsFresh: true },
  };
}

const SESSION = configOf(["a:10/session:5hour"]);
const KNOWN = situationOf([shardOf(6)]).states;

function next(
  legs: readonly Leg[],
  more: Partial<LegsHistory> = {},
  states = KNOWN,
): LegsStep | undefined {
  return nextOfLegs(legs, { ...newLegsHistory(legs), ...more }, states);
}

test("legs of which nothing is known are read before the first consume", () => {
  const legs = [legOf(1), legOf(1, "unknown"), legOf(1, "other")];
  expect(next(legs)).toEqual({ do: "read", legs: [1, 2] });
  expect(next(legs, { isRead: true })).toEqual({ do: "consume", legs: [0, 1, 2] });
});

test("once a leg was consumed nothing is read any more", () => {
  const legs = [legOf(1), legOf(1, "unknown")];
  expect(next(legs, { answers: [CONSUMED, undefined] })).toEqual({ do: "consume", legs: [1] });
});

test.each([
  ["all have plenty", [1, 3], [0, 1]],
  ["one had too little", [1, 7], [1]],
  ["one had hardly more than enough", [1, 4], [1]],
  ["one had too little and one hardly enough", [4, 7], [1]],
])("legs go first or together where %s", (_, [one = 0, other = 0], expected) => {
  expect(next([legOf(one), legOf(other)])).toEqual({ do: "consume", legs: expected });
});

test("before a session begins, legs are read that were not shown within the last second", () => {
  const legs = [{ ...legOf(1, "new"), config: SESSION }, legOf(1)];
  expect(next(legs)).toEqual({ do: "read", legs: [0] });
  const { states } = situationOf([shardOf(6)], { nowMs: NOW + 1000 });
  expect(next(legs, {}, states)).toEqual({ do: "read", legs: [0, 1] });
  expect(next([legOf(1), legOf(1)], {}, states)).toEqual({ do: "consume", legs: [0, 1] });
});

test("a leg that begins a session goes behind the others, unless it is certain to refuse", () => {
  const session = (tokens: number) => ({ ...legOf(tokens, "new"), config: SESSION });
  const known = { isRead: true };
  const legs = [session(8), legOf(1)];
  expect(next(legs, known)).toEqual({ do: "consume", legs: [1] });
  const answers = [undefined, CONSUMED];
  expect(next(legs, { ...known, answers })).toEqual({ do: "consume", legs: [0] });
  expect(next([session(11), legOf(1)], known)).toEqual({ do: "consume", legs: [0] });
  expect(next([session(1), session(2)], known)).toEqual({ do: "consume", legs: [1] });
  expect(next([session(0), legOf(1)], known)).toEqual({ do: "consume", legs: [0, 1] });
});

test("the second pass consumes leg by leg, from the child up", () => {
  const legs = [legOf(1), legOf(7)];
  expect(next(legs, { isRead: true, isSecond: true })).toEqual({ do: "consume", legs: [0] });
});

test("a call whose legs are all consumed is decided", () => {
  expect(next([legOf(1)], { answers: [CONSUMED] })).toBeUndefined();
});

test.each<[string, Partial<LegsHistory>, LegsStep | undefined]>([
  [
    "a refusal refunds what was consumed",
    { answers: [CONSUMED, REFUSED] },
    { do: "refund", legs: [0] },
  ],
  [
    "a failure refunds what was consumed",
    { answers: [CONSUMED, undefined], failures: [new Error("down")] },
    { do: "refund", legs: [0] },
  ],
  [
    "after the refund the refused legs are balances again",
    { answers: [CONSUMED, REFUSED], isRefunded: true },
    { do: "read-balances", legs: [1] },
  ],
  [
    "a call that was refused as a whole is decided",
    { answers: [REFUSED, REFUSED], isRefunded: true },
    undefined,
  ],
  [
    "a call with outdated limits is decided",
    { answers: [CONSUMED, OUTDATED, REFUSED], isRefunded: true },
    undefined,
  ],
  [
    "a call that failed is decided",
    { answers: [CONSUMED, REFUSED], isRefunded: true, failures: [1] },
    undefined,
  ],
  [
    "the second pass is the last",
    { answers: [CONSUMED, REFUSED], isRefunded: true, isSecond: true },
    undefined,
  ],
  [
    "what was balances is not balances again",
    { answers: [CONSUMED, REFUSED], isRefunded: true, balances: [[0]] },
    undefined,
  ],
])("%s", (_, history, expected) => {
  const legs = (history.answers ?? []).map(() => legOf(1));
  expect(next(legs, history)).toEqual(expected);
});

test("a second pass is worth it when every refused leg has enough after the refund", () => {
  const legs = [legOf(1), legOf(2), legOf(3)];
  const answers = [CONSUMED, REFUSED, REFUSED];
  const again = (balances: number[][] | undefined) =>
    goesAgain(legs, { ...newLegsHistory(legs), answers, balances });
  expect([again([[2000], [3000]]), again([[2000], [2999]]), again(undefined)]).toEqual([
    true,
    false,
    false,
  ]);
});
