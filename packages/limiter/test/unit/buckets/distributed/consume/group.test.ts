import { Deadline } from "@zae-limiter/limiter/base/time.ts";
import {
  ConsumeGroup,
  newHistory,
  WaitingConsume,
} from "@zae-limiter/limiter/buckets/distributed/consume/group.ts";
import type {
  ConsumeAnswer,
  StepOutcome,
} from "@zae-limiter/limiter/buckets/distributed/consume/step.ts";
import { UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect, test } from "vitest";
import { NOW, shardOf } from "../known.ts";

const CONFIG = configOf(["a:10/day"]);
const REFUSED: ConsumeAnswer = { kind: "refused", balancesMilli: [0], local: false };
const CONSUMED: ConsumeAnswer = {
  ...{ kind: "consumed", link: UNLINKED, balancesMilli: [0] },
  parts: [{ shard: 1, amountsMilli: [2000] }],
};

function waiting(tokens: number, timeoutMs = 1000) {
  const { timer } = new VirtualTime();
  const ends: unknown[] = [];
  const leg = {
    ...{ entityId: "e", resource: "r", config: CONFIG, amountsMilli: [tokens * 1000] },
    ...{ link: UNLINKED, linkIsFresh: true },
  };
  const end = (result: unknown) => ends.push(result);
  return { waiter: new WaitingConsume(leg, new Deadline(timer, timeoutMs), end, end), ends };
}

function written(members: readonly WaitingConsume[]): StepOutcome {
  const bucket = shardOf(4, { shard: 1, shardCount: 2 });
  const write = { members, atMs: NOW } as unknown as Extract<
    StepOutcome,
    { of: "written" }
  >["write"];
  return { of: "written", write, bucket };
}

test("a group has the bucket and the limits of its members, and the latest deadline", () => {
  const members = [waiting(1, 100), waiting(2, 900), waiting(3, 300)].map(({ waiter }) => waiter);
  const group = new ConsumeGroup(members, NOW);
  expect([group.name.entityId, group.config, group.members.length]).toEqual(["e", CONFIG, 3]);
  expect(group.deadline.atMs).toBe(900);
  expect(() => new ConsumeGroup([], NOW)).toThrow(/has a member/);
});

test("a member is answered once, and leaves the group", () => {
  const [one, other] = [waiting(1), waiting(2)];
  const group = new ConsumeGroup([one.waiter, other.waiter], NOW);
  expect(group.answer([{ member: one.waiter, answer: REFUSED }])).toEqual([]);
  expect([one.ends, other.ends, group.members]).toEqual([[REFUSED], [], [other.waiter]]);
  expect(() => one.waiter.answer(REFUSED)).toThrow(/answered once/);
});

test("what was consumed for a member whose time was over is returned as an orphan", () => {
  const { waiter, ends } = waiting(2);
  const group = new ConsumeGroup([waiter], NOW);
  waiter.expire();
  expect(group.answer([{ member: waiter, answer: CONSUMED }])).toEqual([
    { leg: waiter.leg, parts: [{ shard: 1, amountsMilli: [2000] }] },
  ]);
  expect(ends).toEqual([expect.any(RateLimiterUnavailable)]);
});

test.each([
  [false, true],
  [true, false],
])("a consume whose write was sent: %s, and whose time is over, wrote nothing: %s", (...row) => {
  const { waiter, ends } = waiting(2);
  [waiter.isSent] = row;
  waiter.expire();
  expect(ends).toMatchObject([{ reason: "timeout", nothingWritten: row[1] }]);
});

test("what the last write consumed for members that have all ended is abandoned", () => {
  const { waiter } = waiting(2);
  const group = new ConsumeGroup([waiter], NOW);
  group.record(written([waiter]));
  waiter.expire();
  group.dropEnded();
  expect(group.abandoned).toEqual([
    { leg: waiter.leg, parts: [{ shard: 1, amountsMilli: [2000] }] },
  ]);
});

test("after an answer the others are decided by the state that the write has left", () => {
  const [one, other] = [waiting(1), waiting(2)];
  const group = new ConsumeGroup([one.waiter, other.waiter], NOW);
  group.record(written([one.waiter]));
  group.answer([{ member: one.waiter, answer: CONSUMED }]);
  expect(group.history).toMatchObject({
    rounds: 0,
    last: { of: "shown", shard: 1, askedMs: NOW },
  });
});

test("shards that had too little are remembered until all shards were read", () => {
  const group = new ConsumeGroup([waiting(1).waiter], NOW);
  group.skip(3);
  group.skip(5);
  expect([[...group.history.tried], group.history.rounds]).toEqual([[3, 5], 2]);
  group.recordRest();
  expect(group.history.rested).toBe(true);
  group.record({ of: "all", count: 8, shards: new Map() });
  expect([group.history.tried.size, group.history.rested]).toEqual([0, false]);
});

test("a group that starts over takes newcomers along and forgets what it tried", () => {
  const group = new ConsumeGroup([waiting(1, 100).waiter], NOW);
  group.skip(3);
  group.startOver([waiting(2, 700).waiter], NOW + 9);
  expect(group.members).toHaveLength(2);
  expect(group.history).toMatchObject({ sinceMs: NOW + 9, rounds: 0, last: undefined });
  expect([group.deadline.atMs, group.isRetry]).toEqual([700, true]);
});

test("a failure says to each member whether something may have been written for it", () => {
  const [sent, unsent] = [waiting(1), waiting(2)];
  sent.waiter.isSent = true;
  const error = new RateLimiterUnavailable("down", { reason: "timeout", nothingWritten: false });
  new ConsumeGroup([sent.waiter, unsent.waiter], NOW).fail(error);
  expect(sent.ends).toEqual([error]);
  expect(unsent.ends).toMatchObject([{ nothingWritten: true, reason: "timeout", cause: error }]);
});

test("a history begins without an outcome, a round or a shard that was tried", () => {
  const history = newHistory(NOW);
  expect(history).toMatchObject({ sinceMs: NOW, rounds: 0, rested: false, last: undefined });
  expect(history.tried.size).toBe(0);
});

test.each<[string, Partial<WaitingConsume>, boolean]>([
  ["all members were just checked", { isCleared: true }, true],
  ["a member was not checked", { isCleared: false }, false],
  ["a member has waited since", { isCleared: true, hasWaited: true }, false],
])("a group is cleared of local refusals or not when %s", (_, more, expected) => {
  const [one, other] = [waiting(1).waiter, waiting(2).waiter];
  one.isCleared = true;
  Object.assign(other, more);
  const group = new ConsumeGroup([one, other], NOW);
  expect(group.isCleared).toBe(expected);
  group.record({ of: "changed" });
  expect(group.isCleared).toBe(false);
});
