import { expect, test } from "vitest";
import { balances, changedLinks, fits } from "../../../../src/buckets/embedded/embedded-legs.ts";
import type { BucketConfig, Leg, Link } from "../../../../src/buckets/leg.ts";
import { UNLINKED } from "../../../../src/buckets/link.ts";
import { Limit } from "../../../../src/domain/limit.ts";
import { configOf } from "../table.ts";
import { bucketWith, limitWith, NOW } from "./bucket-of.ts";

const PARENT: Link = { cascade: true, parentId: "team" };

function legOf(config: BucketConfig, amountsMilli: readonly number[], link = UNLINKED): Leg {
  return { entityId: "e", resource: "r", config, amountsMilli, link, linkIsFresh: true };
}

test("a limit that the bucket does not have yet is full", () => {
  const leg = legOf(configOf(["a:10/min", "new:7/min"]), [0, 0]);
  expect(balances(bucketWith([limitWith(4000)]), leg, NOW + 6000)).toEqual([5000, 7000]);
});

test.each([
  [[4000], [4000], true],
  [[4001], [4000], false],
  [[0], [-500], true],
])("a leg of %j milli-tokens fits into %j: %s", (amounts, held, expected) => {
  expect(fits(legOf(configOf(["a:10/min"]), amounts), held)).toBe(expected);
});

test("a soft limit and a bypass refuse nothing", () => {
  const soft = { ...configOf(["a:10/min"]), limits: [Limit.perMinute("a", 10, { soft: true })] };
  expect(fits(legOf(soft, [9000]), [0])).toBe(true);
  expect(fits(legOf({ ...configOf(["a:10/min"]), bypass: true }, [9000]), [0])).toBe(true);
});

test("links of buckets that differ from those of the legs are told, all of them", () => {
  const config = configOf(["a:10/min"]);
  const bucket = bucketWith([limitWith(1)], { link: PARENT });
  expect(changedLinks([legOf(config, [0], PARENT)], [bucket])).toBeUndefined();
  expect(changedLinks([legOf(config, [0])], [bucket])).toEqual([PARENT]);
});

test("a level that says whether acquires cascade counts more than the bucket", () => {
  const config = { ...configOf(["a:10/min"]), cascade: false };
  const bucket = bucketWith([limitWith(1)], { link: PARENT });
  expect(changedLinks([legOf(config, [0], PARENT)], [bucket])).toEqual([
    { cascade: false, parentId: "team" },
  ]);
});
