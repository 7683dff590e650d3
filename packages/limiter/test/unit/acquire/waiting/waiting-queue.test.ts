import { Refusal } from "@zae-limiter/limiter/acquire/decision.ts";
import { type Waiter, WaitingQueue } from "@zae-limiter/limiter/acquire/waiting/waiting-queue.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { statusOf } from "@zae-limiter/limiter/domain/limit-status.ts";
import { expect, test } from "vitest";

const NOW = 1_800_000_000_000;
const BUCKET = { entityId: "key-1", resource: "gpt-4" };
const LIMIT = Limit.parse("a:100/hour");

/** A call that waits for two seconds; a token takes 36. */
function waiter(ticket: number, tokens: number): Waiter {
  const amounts = new Map([["a", tokens]]);
  return {
    request: {
      ...BUCKET,
      amounts,
      limits: undefined,
      call: { ...BUCKET, amounts, limits: undefined, totals: false },
    },
    isClosed: () => false,
    until: 2000,
    ticket,
    refusal: undefined,
    failure: undefined,
    judged: false,
    restsUntilMs: undefined,
    givenBefore: new Map(),
    wake: () => {},
  };
}

function refusalOf(requested: number, balance: number): Refusal {
  const check = { ...BUCKET, limit: LIMIT, requested, bypassed: false };
  return new Refusal([statusOf(check, balance * 1000, LIMIT.rate)]);
}

test.each([
  ["is not refused for one that asks and will be refused", 7, undefined],
  ["is refused for one that asks and may be granted", 2, "refused"],
])("a waiter that what is left would do for %s", (_, tokens, expected) => {
  const queue = new WaitingQueue();
  const [asking, refused, behind] = [waiter(1, tokens), waiter(2, 8), waiter(3, 3)];
  for (const each of [asking, refused, behind]) queue.join(each);
  expect(queue.isCalled(asking)).toBe(true);
  queue.call(refused);
  queue.sendBack(refused);
  const refusal = refusalOf(8, 3.3);
  expect(queue.learn(refusal, refusal.statuses, refused, NOW, 0, false)).toBe("leave");
  expect(behind.refusal === undefined ? undefined : "refused").toBe(expected);
});

test("a waiter asks again when a refund during its question suffices, though its turn is too late", () => {
  const queue = new WaitingQueue();
  const [before, asking] = [waiter(1, 8), waiter(2, 8)];
  const refusal = refusalOf(8, 3.3);
  queue.join(before);
  queue.learn(refusal, refusal.statuses, before, NOW, 0, false);
  queue.leave(before);
  queue.join(asking);
  expect(queue.isCalled(asking)).toBe(true);
  const [bucket = ""] = queue.heardOf;
  queue.refund(bucket, new Map([["a", 6]]), NOW, 0);
  expect(queue.learn(refusal, refusal.statuses, asking, NOW, 0, false)).toBe("ask");
});
