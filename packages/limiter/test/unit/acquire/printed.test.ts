/** Decisions as `console.log` shows them, and warnings of a process without a listener. */

import { once } from "node:events";
import { inspect } from "node:util";
import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import { expect, test } from "vitest";

const request = {
  entityId: "key-1",
  resource: "gpt-4",
  limits: ["rpm:5", "tpm:1000"],
  consume: { rpm: 1, tpm: 500 },
};

test("console.log of a decision shows the lease, what it consumed and its state", async () => {
  const limiter = await RateLimiter.open("memory:");
  const decision = await limiter.tryAcquire(request);
  expect(inspect(decision, { breakLength: Number.POSITIVE_INFINITY })).toBe(
    "{ granted: true, lease: Lease { entityId: 'key-1', resource: 'gpt-4', state: 'open', " +
      "consumed: { rpm: 1, tpm: 500 }, degraded: false } }",
  );
  for (const end of ["commit", "rollback"] as const) {
    const lease = await limiter.acquire({ ...request, entityId: end });
    await lease[end]();
    expect(inspect(lease)).toContain(end === "commit" ? "'committed'" : "'rolled back'");
  }
  await limiter.close();
});

test("a process without a listener is warned once that amounts are missing", async () => {
  const limiter = await RateLimiter.open("memory:");
  const lease = await limiter.acquire(request);
  const heard: Error[] = [];
  const hear = (warning: Error) => heard.push(warning);
  process.on("warning", hear);
  const first = once(process, "warning");
  for (let times = 0; times < 3; times += 1) lease.settle({ tpm: undefined });
  lease.settle({ tpm: -1 });
  await first;
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", hear);
  expect(heard.map(({ message }) => message)).toEqual([
    "settle({ tpm }) of key-1 for gpt-4 got no amount: the estimate stays consumed",
    "settle({ tpm }) of key-1 for gpt-4 got an amount below zero: the lease consumes 0",
  ]);
  expect(heard[0]).toMatchObject({
    code: "ZAEL_AMOUNT_MISSING",
    detail: expect.stringContaining("The amount is undefined"),
  });
  await limiter.close();
});
