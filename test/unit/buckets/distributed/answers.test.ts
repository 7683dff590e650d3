import { expect, test } from "vitest";
import {
  areConsumed,
  balancesBefore,
  changedLinks,
  isRefusedAnyway,
} from "../../../../src/buckets/distributed/answers.ts";
import type { Answer } from "../../../../src/buckets/distributed/step.ts";
import type { Leg, Link } from "../../../../src/buckets/leg.ts";
import { UNLINKED } from "../../../../src/buckets/recorded-link.ts";
import { configOf } from "../table.ts";

const PARENT: Link = { cascade: true, parentId: "team" };
const REFUSED: Answer = { kind: "refused", balancesMilli: [1000], local: false };
const OUTDATED: Answer = { kind: "outdated" };

function legOf(resource: string, more: Partial<Leg> = {}): Leg {
  return {
    ...{ entityId: "e", resource, config: configOf(["a:10/day"]), amountsMilli: [3000] },
    ...{ link: UNLINKED, linkIsFresh: true },
    ...more,
  };
}

function consumed(balance: number): Answer {
  return { kind: "consumed", parts: [], link: UNLINKED, balancesMilli: [balance] };
}

test("a call for one resource is not refused before all of its legs have an answer", () => {
  expect(isRefusedAnyway([legOf("r"), legOf("r")], [REFUSED, undefined])).toBe(false);
  expect(isRefusedAnyway([legOf("r"), legOf("s")], [REFUSED, undefined])).toBe(true);
  expect(isRefusedAnyway([legOf("r"), legOf("s")], [consumed(1), undefined])).toBe(false);
});

test.each<[string, (Answer | undefined)[], boolean]>([
  ["all legs consumed", [consumed(1), consumed(2)], true],
  ["a leg refused", [consumed(1), REFUSED], false],
  ["a leg without an answer", [consumed(1), undefined], false],
  ["a leg with outdated limits", [OUTDATED], false],
])("a call with %s is a grant or is not", (_, answers, expected) => {
  expect(areConsumed(answers)).toBe(expected);
});

test("links that are as the legs were made are no change, and one that differs tells all", () => {
  const legs = [legOf("r", { link: PARENT }), legOf("r")];
  expect(changedLinks(legs, [{ link: { ...PARENT } }, { link: UNLINKED }])).toBeUndefined();
  expect(changedLinks(legs, [{ link: PARENT }, { link: PARENT }])).toEqual([PARENT, PARENT]);
});

test.each<[string, Answer | undefined, number[] | undefined]>([
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
