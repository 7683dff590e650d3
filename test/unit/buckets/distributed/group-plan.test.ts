import { expect, test } from "vitest";
import { planFor, writeStep } from "../../../../src/buckets/distributed/group-plan.ts";
import { NOW, requestOf, shardOf } from "./known.ts";
import { itemOf, limitOf, written, writtenItem } from "./written.ts";

const CONTEXT = { nowMs: NOW, ttlMultiplier: 7, trustFull: () => true };

test.each([
  // what the bucket has, what each member asks for; the members that go, and what is left
  [10, [1, 2, 3], [1, 2, 3], 4],
  [6, [1, 2, 3], [1, 2, 3], 0],
  [5, [1, 2, 3], [1, 2], 2],
  [2, [3, 1, 1], [1, 1], 0],
  [5, [9, 1], [1], 4],
])("with %d tokens in the bucket, members that ask for %j consume %j", (...row) => {
  const [tokens, asked, expected, left] = row;
  const bucket = shardOf(tokens);
  const { plan, going } = planFor(requestOf(...asked), bucket, CONTEXT);
  expect(going.map(({ amountsMilli: [milli = 0] }) => milli / 1000)).toEqual(expected);
  if (plan.kind !== "write") throw new Error("nothing is planned");
  expect(limitOf(written(bucket, plan.plan)).tokensMilli).toBe(left * 1000);
});

test("members of which none fits are all refused, and so is a single one", () => {
  expect(planFor(requestOf(3, 4), shardOf(2), CONTEXT)).toMatchObject({
    plan: { kind: "refused", balancesMilli: [2000] },
    going: [],
  });
  const alone = planFor(requestOf(3), shardOf(2), CONTEXT);
  expect([alone.plan.kind, alone.going.length]).toEqual(["refused", 1]);
});

test("a shared write counts an acquire for each member that consumes", () => {
  const bucket = shardOf(9);
  const { plan } = planFor(requestOf(1, 2, 0), bucket, CONTEXT);
  if (plan.kind !== "write") throw new Error("nothing is planned");
  const [before, after] = [itemOf(bucket), writtenItem(itemOf(bucket), plan.plan)];
  const added = Object.keys(after ?? {}).filter((name) => !Object.hasOwn(before, name));
  expect(added.map((name) => after?.[name])).toContain(2);
});

test("a write step says from which state and for which members it was planned", () => {
  const bucket = shardOf(9, { shard: 1, shardCount: 2 });
  const request = requestOf(1);
  const { plan } = planFor(request, bucket, CONTEXT);
  if (plan.kind !== "write") throw new Error("nothing is planned");
  const how = { atMs: NOW, teaches: [], repeats: true };
  expect(writeStep(bucket, plan, request.members, how)).toEqual({
    do: "write",
    write: {
      ...{ shard: 1, members: request.members, from: bucket, plan: plan.plan },
      ...{ guesses: plan.guesses, ...how },
    },
  });
});
