import type { CheckedRequest } from "@zae-limiter/limiter/acquire/acquire-request.ts";
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
    request: { ...BUCKET, amounts, limits: undefined, also: [] } as unknown as CheckedRequest,
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
  expect(queue.learn(refusalOf(8, 3.3), refused, NOW, 0, false)).toBe("leave");
  expect(behind.refusal === undefined ? undefined : "refused").toBe(expected);
});
