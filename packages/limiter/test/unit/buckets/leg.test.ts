import { type Leg, refundOf, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";

const LEG: Leg = {
  ...{ entityId: "e", resource: "r", config: configOf(["a:10/min", "b:10/min"]) },
  ...{ amountsMilli: [3000, 0], link: UNLINKED, linkIsFresh: true },
};

test("a refund returns what each shard gave, and makes one acquire void", () => {
  const parts = [
    { shard: 2, amountsMilli: [2000, 0] },
    { shard: 5, amountsMilli: [1000, 0] },
  ];
  const refunds = refundOf(LEG, parts);
  expect(refunds.map(({ shard, acquires }) => [shard, acquires])).toEqual([
    [2, -1],
    [5, 0],
  ]);
  expect(refunds.map(({ deltasMilli: [milli = 0] }) => milli)).toEqual([-2000, -1000]);
  expect(refunds.every(({ config }) => config === LEG.config)).toBe(true);
});

test("a refund of a consume of nothing makes no acquire void", () => {
  expect(refundOf(LEG, [{ shard: 0, amountsMilli: [0, 0] }])[0]?.acquires).toBe(0);
});
