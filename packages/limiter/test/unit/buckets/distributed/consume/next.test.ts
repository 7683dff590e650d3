/** The next step of a group, by the known states of its bucket and its outcomes so far. */

import { next } from "@zae-limiter/limiter/buckets/distributed/consume/next.ts";
import type {
  History,
  Situation,
  Step,
} from "@zae-limiter/limiter/buckets/distributed/consume/step.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { describe, expect, test } from "vitest";
import { historyOf, NOW, requestOf, shardOf, situationOf } from "../known.ts";

const DAY_MS = 86_400_000;
/** A limit that the calls do not know. */
const B = {
  tokensMilli: 5000,
  rate: { capacityMilli: 5000, refillMilli: 1, periodMs: 1 },
  totalConsumedMilli: 0,
  remainder: 0,
};
const cause = new RateLimiterUnavailable("throttled", { reason: "throttled", keyRange: true });

/** Describes a step in a few words. */
function wordsOf(step: Step): string {
  switch (step.do) {
    case "answer":
      return step.answers
        .map(({ member, answer }) => {
          const local = answer.kind === "refused" && answer.local ? " locally" : "";
          const left = "balancesMilli" in answer ? ` at ${answer.balancesMilli[0]}` : "";
          return `${(member.amountsMilli[0] ?? 0) / 1000} ${answer.kind}${local}${left}`;
        })
        .join(", ");
    case "write": {
      const { shard, members, atMs, repeats } = step.write;
      const amounts = members.map(({ amountsMilli }) => (amountsMilli[0] ?? 0) / 1000).join("+");
      return `write ${amounts} to ${shard}${repeats ? ` once more for ${atMs - NOW}` : ""}`;
    }
    case "create":
      return `create with ${step.members.length}`;
    case "read":
    case "pass":
    case "create-shard":
    case "probe":
      return `${step.do} ${step.shard}`;
    case "wait":
      return `wait ${step.ms}`;
    default:
      return step.do;
  }
}

function decided(amounts: readonly number[], history: History, situation: Situation): string {
  return next(requestOf(...amounts), history, situation)
    .map(wordsOf)
    .join("; ");
}

const shown = (tokens: number, more: object = {}): History =>
  historyOf({
    last: { of: "shown", shard: 0, bucket: shardOf(tokens), askedMs: NOW, ...more },
  });

describe("a group that begins", () => {
  test.each([
    ["without a state reads the shard", [1], situationOf([]), "read 0"],
    ["with a state writes by it", [1], situationOf([shardOf(5)]), "write 1 to 0"],
    ["shares a write among all that fit", [3, 3, 2], situationOf([shardOf(5)]), "write 3+2 to 0"],
    [
      "creates a bucket that is known to be missing",
      [1],
      situationOf([undefined]),
      "create with 1",
    ],
    [
      "is refused by a state of the last second",
      [6],
      situationOf([shardOf(5)]),
      "6 refused locally at 5000",
    ],
    [
      "reads where the state is older",
      [6],
      situationOf([shardOf(5)], { nowMs: NOW + 1000 }),
      "read 0",
    ],
    [
      "answers those that do not fit before the others go",
      [6, 1],
      situationOf([shardOf(5)]),
      "6 refused locally at 5000",
    ],
    [
      "reads a shard of which nothing is known",
      [1],
      situationOf([shardOf(5, { shardCount: 2 })], { random: () => 0.9 }),
      "read 1",
    ],
  ])("a group that begins %s", (_, amounts, situation, steps) => {
    expect(decided(amounts, historyOf(), situation)).toBe(steps);
  });
});

test("a group that cached states have not refused in this turn does not ask them again", () => {
  const request = { ...requestOf(6), isCleared: true };
  const steps = next(request, historyOf(), situationOf([shardOf(5)]));
  expect(steps.map(wordsOf)).toEqual(["read 0"]);
});

describe("a shard that the store has shown", () => {
  test.each([
    ["decides", [1], shown(5), NOW, "write 1 to 0"],
    ["refuses what it does not have", [6], shown(5), NOW, "6 refused at 5000"],
    ["refuses by the time it was asked", [6], shown(5), NOW + DAY_MS / 10, "6 refused at 5000"],
    ["does not refuse when it is full by now", [6], shown(5), NOW + DAY_MS, "write 6 to 0"],
    ["is created where there is none", [1], shown(5, { bucket: undefined }), NOW, "create with 1"],
    [
      "refuses what even a full one could not hold",
      [11],
      shown(5, { bucket: undefined }),
      NOW,
      "11 refused at 10000",
    ],
    [
      "is created where it is not the first",
      [1],
      shown(5, { shard: 1, bucket: undefined }),
      NOW,
      "create-shard 1",
    ],
    [
      "of several is passed by",
      [6],
      shown(5, { bucket: shardOf(5, { shardCount: 2 }) }),
      NOW,
      "pass 0",
    ],
    [
      "says that the limits are outdated",
      [1],
      shown(5, { bucket: { ...shardOf(5, { configVersion: 9 }), limits: new Map([["b", B]]) } }),
      NOW,
      "1 outdated",
    ],
  ])("a shard that the store has shown %s", (_, amounts, history, nowMs, steps) => {
    expect(decided(amounts, history, situationOf([], { nowMs }))).toBe(steps);
  });
});

describe("a write", () => {
  const write = { shard: 0, atMs: NOW - 5, repeats: false, from: shardOf(7), members: [] };
  const overtaken = { askedMs: NOW - 5, bucket: shardOf(4, { refilledAtMs: NOW - 10 }) };
  const from = shardOf(7, { refilledAtMs: NOW - 10 });

  test("a write that another one has overtaken is sent once more for the same time", () => {
    const history = shown(4, { ...overtaken, overtaken: { ...write, from } });
    expect(decided([1], history, situationOf([]))).toBe("write 1 to 0 once more for -5");
  });

  test("a write that was overtaken twice is planned for now", () => {
    const history = shown(4, { ...overtaken, overtaken: { ...write, from, repeats: true } });
    expect(decided([1], history, situationOf([]))).toBe("write 1 to 0");
  });

  test("a write answers its members in their order", () => {
    const request = requestOf(1, 2, 9);
    const members = request.members.slice(0, 2);
    const last = { of: "written", bucket: shardOf(3), write: { ...write, members } } as never;
    const [step] = next(request, historyOf({ last }), situationOf([]));
    expect(wordsOf(step as Step)).toBe("1 consumed at 5000, 2 consumed at 3000");
  });

  test("a write to a saturated shard is followed by a split, before its members are answered", () => {
    const request = requestOf(1);
    const bucket = shardOf(3, { meterMs: NOW + 1000 });
    const last = { of: "written", bucket, write: { ...write, members: request.members } } as never;
    const steps = next(request, historyOf({ last }), situationOf([]));
    expect(steps.map((step) => step.do)).toEqual(["split", "answer"]);
  });
});

describe("a group that was throttled", () => {
  const throttled = historyOf({ last: { of: "throttled", shard: 0, cause } });

  test("a group that was throttled probes the shard, unless this process just did", () => {
    expect(decided([1], throttled, situationOf([shardOf(5)]))).toBe("probe 0");
    const situation = situationOf([shardOf(5)], { isProbed: () => true });
    expect(decided([1], throttled, situation)).toBe("wait 2");
  });

  test("a group that was throttled is refused only by a state that the store has shown a moment ago", () => {
    const cooled = historyOf({ last: { of: "probed", cause } });
    expect(decided([6], cooled, situationOf([shardOf(5)]))).toBe("6 refused locally at 5000");
    const old = situationOf([shardOf(5)], { nowMs: NOW + 1000 });
    expect(decided([6], cooled, old)).toBe("wait 2");
    expect(decided([1], cooled, situationOf([shardOf(1.1)]))).toBe("wait 2");
  });
});

describe("all shards of a bucket", () => {
  const of = (...tokens: readonly number[]) =>
    new Map(
      tokens.map((each, shard) => [shard, shardOf(each, { shard, shardCount: tokens.length })]),
    );
  const all = (count: number, shards: ReturnType<typeof of>) =>
    historyOf({ last: { of: "all", count, shards } });

  test.each([
    ["give a part each", [2], all(2, of(1, 1)), "spread"],
    ["are left alone where one has enough", [2], all(2, of(1, 3)), "write 2 to 1"],
    ["refuse what they do not have together", [3], all(2, of(1, 1)), "3 refused at 2000"],
    ["are read again when there are more", [2], all(1, of(1, 1)), ""],
  ])("all shards of a bucket %s", (_, amounts, history, steps) => {
    expect(decided(amounts, history, situationOf([]))).toBe(steps);
  });

  test("all shards of a bucket are read when no shard is left to try", () => {
    const two = [shardOf(1, { shardCount: 2 }), shardOf(1, { shard: 1, shardCount: 2 })];
    const tried = historyOf({ tried: new Set([0, 1]), last: { of: "changed" } });
    expect(decided([1.5], tried, situationOf(two))).toBe("read-all");
  });
});

test("a group that nothing has ended for five rounds waits before it goes on", () => {
  const history = { ...shown(5), rounds: 6 };
  expect(decided([1], history, situationOf([], { random: () => 0.5 }))).toBe("wait 2");
  expect(decided([1], { ...history, rested: true }, situationOf([]))).toBe("write 1 to 0");
});
