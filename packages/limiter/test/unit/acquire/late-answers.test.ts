/** A call that consumes just before an edge and is answered after it consumed in the old period. */

import { SimulatedTable } from "@zae-limiter/testing/table/simulated-table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect, test } from "vitest";

const MIDNIGHT_MS = Date.parse("2027-01-16T00:00Z");
const call = { entityId: "key", resource: "api", consume: { req: 3 } };

test("what was consumed before a reset does not come back after it, however late the answer is", async () => {
  const time = new VirtualTime();
  const latency = { medianMs: 40 };
  const process = new SimulatedTable({ time, latency }).process();
  const limiter = await time.until(process.open({ configCacheTtlSeconds: 86_400 }));
  await time.until(limiter.repository.limits.setResource("api", ["req:10/day UTC"]));
  await time.until(limiter.acquire(call));
  await time.pass(MIDNIGHT_MS - time.nowMs - 5);
  const late = await time.until(limiter.acquire(call));
  expect(time.nowMs).toBeGreaterThan(MIDNIGHT_MS);
  expect(late.statuses[0]?.resetsAtMs).toBe(MIDNIGHT_MS);
  const next = await time.until(limiter.acquire(call));
  await time.until(late.rollback());
  expect(await time.until(limiter.available({ entityId: "key", resource: "api" }))).toEqual({
    req: 7,
  });
  await time.until(next.rollback());
  expect(await time.until(limiter.available({ entityId: "key", resource: "api" }))).toEqual({
    req: 10,
  });
  await time.until(limiter.close());
});
