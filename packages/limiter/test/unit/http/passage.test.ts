/** Tests of the lease of a request whose client has gone while its handler is at work. */

import { LeaseExpiredError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Outcome } from "@zae-limiter/limiter/http/options.ts";
import {
  addPassage,
  Passage,
  type PassageRules,
  turnBackAll,
} from "@zae-limiter/limiter/http/passage.ts";
import { RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect, test } from "vitest";

const TARGET = { entityId: "key-1", resource: "http" };
const BUCKET = { ...TARGET, limits: ["tpd:1000/day"] };

/** A request that has consumed 100 tokens. */
async function passing(refunds = false) {
  const time = new VirtualTime(1_800_000_000_000);
  const repository = await Repository.open("memory:", { clock: time.clock, timer: time.timer });
  const limiter = new RateLimiter(repository);
  const lease = await limiter.acquire({ ...BUCKET, consume: { tpd: 100 } });
  const outcomes: Outcome[] = [];
  const failures: unknown[] = [];
  const rules: PassageRules = {
    timer: time.timer,
    refundWhen: (outcome) => {
      outcomes.push(outcome);
      return refunds;
    },
    refundsErrors: false,
    endFailed: (_, error) => failures.push(error),
  };
  const passage = new Passage(lease, TARGET, rules);
  const left = async () => (await limiter.available(BUCKET)).tpd;
  return { failures, lease, left, outcomes, passage, rules, time };
}

test("a handler that never ends its response loses the lease after a minute", async () => {
  const { lease, left, outcomes, passage, time } = await passing();
  lease.settle({ tpd: 300 });
  void passage.hangUp(200);
  await time.pass(59_000);
  expect(await left()).toBe(700);
  lease.settle({ tpd: 500 });
  await time.pass(1000);
  expect(outcomes).toEqual([{ status: 200, aborted: true }]);
  expect(await left()).toBe(500);
  expect(() => lease.settle({ tpd: 1 })).toThrow(LeaseExpiredError);
});

test("a client that hangs up is refunded after a minute too, where refundWhen says so", async () => {
  const { left, passage, time } = await passing(true);
  void passage.hangUp(200);
  await time.pass(60_000);
  expect(await left()).toBe(1000);
});

test("a handler that ends in time ends the lease once, and leaves no timer", async () => {
  const { lease, outcomes, passage, time } = await passing();
  const hungUp = passage.hangUp(200);
  await time.settle();
  lease.settle({ tpd: 7 });
  await passage.end({ status: 200, aborted: true }, false);
  await hungUp;
  expect(outcomes).toHaveLength(1);
});

test("a handler that ended its lease itself before its client hung up is no failure", async () => {
  const { failures, lease, passage, time } = await passing();
  await lease.commit();
  void passage.hangUp(200);
  await time.pass(60_000);
  expect(failures).toEqual([]);
});

test("a handler that throws is refunded where errors are, whatever refundWhen says", async () => {
  const { lease, left, passage, rules } = await passing();
  expect(await left()).toBe(900);
  await new Passage(lease, TARGET, { ...rules, refundsErrors: true }).end(
    { status: 200, aborted: false },
    true,
  );
  expect(await left()).toBe(1000);
  await passage.turnBack();
});

test("a refusal by a third middleware refunds the first and the second", async () => {
  const [first, second] = [await passing(), await passing()];
  const request = {};
  addPassage(request, first.passage);
  addPassage(request, second.passage);
  await turnBackAll(request);
  expect([await first.left(), await second.left()]).toEqual([1000, 1000]);
});
