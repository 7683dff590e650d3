import type { ShardWrite } from "@zae-limiter/limiter/buckets/distributed/consume/step.ts";
import {
  acquiresOf,
  askedAt,
  balancesAfterEach,
  fitting,
  isFullNow,
  planFor,
  repeatsOvertaken,
  writeStep,
} from "@zae-limiter/limiter/buckets/distributed/plan/consume-plan.ts";
import type { SeenBucket } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { WritePlan } from "@zae-limiter/limiter/buckets/distributed/plan/write-plan.ts";
import { sumOf } from "@zae-limiter/limiter/buckets/leg.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { describe, expect, test } from "vitest";
import { NOW, RULES, requestOf, shardOf } from "../known.ts";
import { itemOf, limitOf, written, writtenItem } from "../written.ts";

const CONTEXT = { nowMs: NOW, rules: RULES };
const trustFull = () => true;

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
  const { plan, going } = planFor(requestOf(...asked), bucket, CONTEXT, trustFull);
  expect(going.map(({ amountsMilli: [milli = 0] }) => milli / 1000)).toEqual(expected);
  if (plan.kind !== "write") throw new Error("nothing is planned");
  expect(limitOf(written(bucket, plan.plan)).tokensMilli).toBe(left * 1000);
});

test("members of which none fits are all refused, and so is a single one", () => {
  expect(planFor(requestOf(3, 4), shardOf(2), CONTEXT, trustFull)).toMatchObject({
    plan: { kind: "refused", balancesMilli: [2000] },
    going: [],
  });
  const alone = planFor(requestOf(3), shardOf(2), CONTEXT, trustFull);
  expect([alone.plan.kind, alone.going.length]).toEqual(["refused", 1]);
});

test("a shared write counts an acquire for each member that consumes", () => {
  const bucket = shardOf(9);
  const { plan } = planFor(requestOf(1, 2, 0), bucket, CONTEXT, trustFull);
  if (plan.kind !== "write") throw new Error("nothing is planned");
  const [before, after] = [itemOf(bucket), writtenItem(itemOf(bucket), plan.plan)];
  const added = Object.keys(after ?? {}).filter((name) => !Object.hasOwn(before, name));
  expect(added.map((name) => after?.[name])).toContain(2);
});

test("a write step says from which state and for which members it was planned", () => {
  const bucket = shardOf(9, { shard: 1, shardCount: 2 });
  const request = requestOf(1);
  const { plan } = planFor(request, bucket, CONTEXT, trustFull);
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

describe("members of a group", () => {
  const CONFIG = {
    limits: [Limit.parse("a:1"), Limit.parse("b:1")],
    source: "system",
    version: 1,
  } as const;

  const parts = (...amounts: readonly (readonly number[])[]) =>
    amounts.map((amountsMilli) => ({ amountsMilli }));

  describe("of consumes that share a write", () => {
    test.each([
      ["all fit", [[3], [2]], [5], [[3], [2]]],
      ["a later one of the same size never overtakes", [[3], [3]], [5], [[3]]],
      ["a smaller one behind one that does not fit goes", [[6], [3]], [5], [[3]]],
      ["none fits", [[6], [7]], [5], []],
      [
        "every limit counts",
        [
          [1, 9],
          [1, 1],
        ],
        [5, 5],
        [[1, 1]],
      ],
      ["what asks for nothing fits in a debt", [[0], [1]], [-1], [[0]]],
    ])("a write is shared by order and size: %s", (_, amounts, balances, fit) => {
      const found = fitting(parts(...amounts), balances, CONFIG);
      expect(found.map(({ amountsMilli }) => amountsMilli)).toEqual(fit);
    });

    test("the amounts add up, and each that consumes counts as an acquire", () => {
      const some = parts([1, 2], [0, 0], [3, 0]);
      expect(sumOf(some)).toEqual([4, 2]);
      expect(acquiresOf(some)).toBe(2);
    });

    test("each sees what the ones before it have left", () => {
      expect(balancesAfterEach(parts([1], [2], [3]), [4], CONFIG)).toEqual([[9], [7], [4]]);
    });
  });
});

describe("a write that failed", () => {
  test.each([
    ["the time of the request", 5, 0, 10, 5],
    ["the base time, where it is later", 5, 8, 10, 8],
    ["now at the latest", 5, 20, 10, 10],
  ])("a failed write is judged by %s", (_, askedMs, baseMs, nowMs, expected) => {
    const bucket = { ...shardOf(1), refilledAtMs: baseMs };
    expect(askedAt(askedMs, bucket, nowMs)).toBe(expected);
  });

  test("a bucket that had too little is full a day later, and not at once", () => {
    const at = (nowMs: number) => isFullNow(requestOf(1), shardOf(0), { nowMs, rules: RULES });
    expect(at(NOW)).toBe(false);
    expect(at(NOW + 2 * 86_400_000)).toBe(true);
  });

  describe("a write that another one has overtaken", () => {
    const now = shardOf(4);
    const planned = (...full: readonly boolean[]) => ({
      kind: "write" as const,
      plan: new WritePlan(),
      guesses: full.map((isFull) => ({ limit: "a", full: isFull, lookedFull: isFull })),
    });
    const overtaken = (from: Partial<SeenBucket> = {}, repeats = false) =>
      ({ shard: 0, from: { ...now, ...from }, repeats }) as ShardWrite;

    test.each<[string, ShardWrite | undefined, ReturnType<typeof planned>, boolean]>([
      ["goes once more where the bucket is below full", overtaken(), planned(false), true],
      ["goes once more only where all limits are", overtaken(), planned(false, true), false],
      ["is planned again where the bucket is full", overtaken(), planned(true), false],
      ["is planned again where nothing was guessed", overtaken(), planned(), false],
      ["is planned again the second time", overtaken({}, true), planned(false), false],
      [
        "is planned again after a rebase",
        overtaken({ refilledAtMs: NOW - 1 }),
        planned(false),
        false,
      ],
      [
        "is planned again after a rebase at the same time",
        overtaken({ rebases: 1 }),
        planned(false),
        false,
      ],
      ["is planned again after a split", overtaken({ shardCount: 2 }), planned(false), false],
      ["is none: a read is not repeated", undefined, planned(false), false],
    ])("a write that another one has overtaken %s", (_, write, plan, expected) => {
      expect(repeatsOvertaken(write, now, plan as never)).toBe(expected);
    });
  });
});
