import type {
  Request,
  Situation,
  Step,
} from "@zae-limiter/limiter/buckets/distributed/consume/step.ts";
import type { SeenBucket } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import {
  nextOfAll,
  type Offer,
  offered,
  spreadOver,
} from "@zae-limiter/limiter/buckets/distributed/shards/all-shards.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { ACQUIRES } from "@zae-limiter/limiter/records/bucket-item.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { describe, expect, test } from "vitest";
import { historyOf, NOW, requestOf, shardOf, situationOf } from "../known.ts";
import { limitOf, written } from "../written.ts";

const DAY_MS = 86_400_000;

/** Shards of one bucket, by what each holds; `undefined`: it is missing. */
function shardsOf(...tokens: readonly (number | undefined)[]): Map<number, SeenBucket> {
  const shards = new Map<number, SeenBucket>();
  tokens.forEach((held, shard) => {
    if (held !== undefined) {
      shards.set(shard, shardOf(held, { shard, shardCount: tokens.length, ttl: undefined }));
    }
  });
  return shards;
}

function next(
  request: Request,
  shards: Map<number, SeenBucket>,
  more: Partial<Situation> = {},
): readonly Step[] {
  const count = 4;
  return nextOfAll(request, historyOf(), { of: "all", count, shards }, situationOf([], more));
}

/** A decision in a few words; `undefined`: begin again. */
function wordOf([step, ...more]: readonly Step[]): string | undefined {
  if (step === undefined) return undefined;
  if (more.length > 0) return [step, ...more].map((one) => one.do).join(", ");
  if (step.do === "write") return `write ${step.write.shard}`;
  if (step.do === "create-shard") return `bring about ${step.shard}`;
  if (step.do === "spread") return `spread over ${step.writes.length}`;
  if (step.do !== "answer") return step.do;
  return step.answers.map(({ answer }) => answer.kind).join(", ");
}

test.each([
  { held: [0, 0, 0, 3], wants: 2, step: "write 3", why: "one has enough" },
  { held: [2, 2, 2, 2], wants: 2, step: "write 0", why: "the first of those that chance picks" },
  { held: [1, 2, 0, 2], wants: 4, step: "spread over 2", why: "two have enough together" },
  { held: [1, 1, 1, 1], wants: 4, step: "spread over 4", why: "all of them are needed" },
  { held: [1, 1, 1, 0.5], wants: 4, step: "refused", why: "all together have too little" },
  { held: [-3, 2, 0, 0], wants: 2, step: "write 1", why: "a debt elsewhere refuses nothing" },
  { held: [0, 0, undefined, 0], wants: 1, step: "bring about 2", why: "one is missing" },
  { held: [undefined, 1, 1, 1], wants: 1, step: undefined, why: "the bucket itself is gone" },
] as const)("shards with $held, asked for $wants: $why", ({ held, wants, step }) => {
  expect(wordOf(next(requestOf(wants), shardsOf(...held), { random: () => 0 }))).toBe(step);
});

test("one shard with enough serves the call, and the random number picks among them", () => {
  const shards = shardsOf(0, 2, 0.5, 2.5);
  const picked = (random: number) => {
    const [step] = next(requestOf(2), shards, { random: () => random });
    return step?.do === "write" ? step.write.shard : step;
  };
  expect([picked(0), picked(0.99)]).toEqual([1, 3]);
});

test("shards of which none has enough give a part each, and together exactly the amount", () => {
  const shards = shardsOf(1, 2, 0.5, 2);
  const [step] = next(requestOf(3.5), shards);
  if (step?.do !== "spread") throw new Error(`expected a spread, got ${step?.do}`);
  const given = step.writes.map(({ part, plan }) => {
    const before = shards.get(part.shard) as SeenBucket;
    const after = limitOf(written(before, plan)).tokensMilli;
    expect(limitOf(before).tokensMilli - after).toBe(part.amountsMilli[0]);
    return part.amountsMilli[0] as number;
  });
  expect(given.reduce((sum, milli) => sum + milli, 0)).toBe(3500);
  expect(given.length).toBe(2);
  // All parts together are one acquire.
  const counted = step.writes.map(({ plan }) => plan.change.add?.[ACQUIRES] ?? 0);
  expect(counted).toEqual([1, 0]);
});

test("members that all shards together cannot serve are refused, with the sum", () => {
  expect(next(requestOf(6), shardsOf(1, 2, 0.5, 2))).toEqual([
    {
      do: "answer",
      answers: [
        {
          member: expect.anything(),
          answer: { kind: "refused", balancesMilli: [5500], local: false },
        },
      ],
    },
  ]);
});

test("the debt of one shard does not refuse what another one has", () => {
  const [step] = next(requestOf(2), shardsOf(-9, 2, 0, 0));
  expect(step).toMatchObject({ do: "write", write: { shard: 1 } });
});

test("tokens that accrue after the group began belong to later calls", () => {
  const shards = shardsOf(1, 0, 0, 0);
  const later = { nowMs: NOW + DAY_MS / 10 };
  expect(next(requestOf(2), shards, later)[0]).toMatchObject({ do: "answer" });
  // Where all shards are full by now, nothing is scarce.
  expect(next(requestOf(2), shards, { nowMs: NOW + DAY_MS })[0]).toMatchObject({ do: "write" });
});

test("a window that opens after the group began cuts what shards can give", () => {
  const limit = Limit.parse("a:10/day").withSchedule([{ when: "9-10", scale: 0.1 }]);
  const shards = shardsOf(2, 2, 0, 0);
  for (const [at, shard] of shards) {
    const stored = { ...limitOf(shard), rate: limit.rate };
    shards.set(at, { ...shard, limits: new Map([["a", stored]]) });
  }
  const asked = requestOf(3);
  const request = { ...asked, config: { ...asked.config, limits: [limit] } };
  // It is eight o'clock, and three tokens are spread.
  expect(wordOf(next(request, shards))).toBe("spread over 2");
  expect(wordOf(next(request, shards, { nowMs: NOW + 3_600_000 }))).toBe("refused");
});

test("shards that came while they were read, or a first one that is gone, are read again", () => {
  const more = shardsOf(1, 1, 1, 1);
  more.set(1, shardOf(1, { shard: 1, shardCount: 8, ttl: undefined }));
  expect(next(requestOf(1), more)).toEqual([]);
  expect(next(requestOf(1), shardsOf(undefined, 1, 1, 1))).toEqual([]);
});

test("a missing shard is made before anything is decided", () => {
  expect(next(requestOf(1), shardsOf(1, undefined, 1, 1))).toEqual([
    { do: "create-shard", shard: 1 },
  ]);
});

test("limits of a call that are older than those of a shard are outdated", () => {
  const request = { ...requestOf(1), config: configOf(["a:20/day"], "resource", 0) };
  expect(next(request, shardsOf(1, 1, 1, 1))[0]).toMatchObject({
    do: "answer",
    answers: [{ answer: { kind: "outdated" } }],
  });
});

test("a refusal plans newer limits to every shard", () => {
  const request = { ...requestOf(15), config: configOf(["a:20/day"], "resource", 2) };
  const [limits, answer] = next(request, shardsOf(1, 1, 1, 1));
  if (limits?.do !== "limits") throw new Error(`expected limits, got ${limits?.do}`);
  expect(limits.plans.map(({ shard }) => shard)).toEqual([0, 1, 2, 3]);
  expect(limits.balancesMilli).toEqual([4000]);
  expect(answer?.do).toBe("answer");
});

describe("a consume across shards", () => {
  const offers = (...balances: readonly (readonly number[])[]): Offer[] =>
    balances.map((balancesMilli, shard) => ({ shard, balancesMilli }));

  test("what shards offer is their sum, debts included", () => {
    expect(offered(offers([5, 1], [-2, 3]), 2)).toEqual([3, 4]);
    expect(offered([], 1)).toEqual([0]);
  });

  test.each<[string, number[], Offer[], [number, number[]][]]>([
    ["the fullest shard alone, if it has enough", [5], offers([3], [6]), [[1, [5]]]],
    [
      "the fullest first, then the others",
      [8],
      offers([3], [6]),
      [
        [1, [6]],
        [0, [2]],
      ],
    ],
    ["no shard in debt", [4], offers([-3], [5]), [[1, [4]]]],
    [
      "each limit where it is",
      [4, 4],
      offers([4, 1], [1, 4]),
      [
        [0, [4, 1]],
        [1, [0, 3]],
      ],
    ],
  ])("a consume is spread over %s", (_, amounts, shards, parts) => {
    const expected = parts.map(([shard, amountsMilli]) => ({ shard, amountsMilli }));
    expect(spreadOver(amounts, shards)).toEqual(expected);
  });

  test("what cannot be refused comes from the first shard, into debt if need be", () => {
    expect(spreadOver([8, 100], offers([3, 0], [6, 0]), [8, 0])).toEqual([
      { shard: 1, amountsMilli: [6, 100] },
      { shard: 0, amountsMilli: [2, 0] },
    ]);
  });
});
