/** Calls that wait for a quota to reset: they are granted at the edge, in their order. */

import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { SimulatedTable } from "@zae-limiter/testing/table/simulated-table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STORES } from "./both-stores.ts";

const MIDNIGHT_MS = Date.parse("2027-01-16T00:00Z");
/** Waiters of a process wake at most so long after the edge. */
const JITTER_MS = 100;
const CALL = { entityId: "key", resource: "api" };

for (const [name, open] of Object.entries(STORES)) {
  describe(`on ${name}`, () => {
    let time: VirtualTime;
    let limiter: RateLimiter;

    beforeEach(async () => {
      time = new VirtualTime();
      limiter = await time.until(open(time));
      await time.until(limiter.repository.limits.setSystem(["req:10/day UTC"]));
      await time.pass(MIDNIGHT_MS - time.nowMs - 50_000);
      await time.until(limiter.acquire({ ...CALL, consume: { req: 10 } }));
    });
    afterEach(() => time.until(limiter.close()));

    /** Notes when each of these calls is granted, or that it is refused. */
    function waiting(amounts: readonly number[], maxWaitSeconds: number): (string | number)[] {
      const ended: (string | number)[] = [];
      for (const [at, req] of amounts.entries()) {
        void limiter.acquire({ ...CALL, consume: { req }, maxWaitSeconds }).then(
          () => ended.push(at, time.nowMs - MIDNIGHT_MS),
          () => ended.push(`${at} refused`),
        );
      }
      return ended;
    }

    test("waiters of a spent quota are granted at its edge, as many as fit", async () => {
      const ended = waiting([4, 3, 3, 5], 60);
      await time.pass(49_900);
      expect(ended).toEqual([]);
      await time.pass(1000);
      const [first, firstMs, second, , third] = ended;
      expect([first, second, third]).toEqual([0, 1, 2]);
      expect(firstMs).toBeGreaterThan(0);
      expect(firstMs).toBeLessThan(JITTER_MS + 500);
      // The next edge is too late for the last one, so it leaves.
      expect(ended.slice(6)).toEqual(["3 refused"]);
    });

    test("calls that cannot wait until the edge are refused at once, also behind others", async () => {
      const patient = waiting([4], 60);
      await time.pass(1000);
      const ended = waiting([1, 2], 30);
      await time.pass(2500);
      expect(ended).toEqual(["0 refused", "1 refused"]);
      expect(patient).toEqual([]);
    });

    test("a top-up wakes waiters of a spent quota before its edge", async () => {
      const ended = waiting([4, 3], 60);
      await time.pass(5000);
      await time.until(limiter.repository.buckets.topUp({ ...CALL, amounts: { req: 7 } }));
      await time.pass(1000);
      expect(ended.filter((_, at) => at % 2 === 0)).toEqual([0, 1]);
      expect(Number(ended[1])).toBeLessThan(-40_000);
    });
  });
}

test("processes that wait for the same edge do not ask in the same millisecond", async () => {
  const time = new VirtualTime();
  const table = new SimulatedTable({ time, seed: 1 });
  const limiters: RateLimiter[] = [];
  for (let at = 0; at < 20; at += 1) limiters.push(await time.until(table.process().open()));
  const [first] = limiters as [RateLimiter];
  await time.until(first.repository.limits.setSystem(["req:10000/day UTC"]));
  await time.pass(MIDNIGHT_MS - time.nowMs - 10_000);
  await time.until(first.acquire({ ...CALL, consume: { req: 10_000 } }));
  const granted: number[] = [];
  for (const limiter of limiters) {
    void limiter
      .acquire({ ...CALL, consume: { req: 1 }, maxWaitSeconds: 60 })
      .then(() => granted.push(time.nowMs - MIDNIGHT_MS));
  }
  await time.pass(15_000);
  expect(granted).toHaveLength(20);
  expect(Math.min(...granted)).toBeGreaterThan(0);
  expect(Math.max(...granted)).toBeLessThan(JITTER_MS + 1000);
  expect(Math.max(...granted) - Math.min(...granted)).toBeGreaterThan(JITTER_MS / 2);
  for (const limiter of limiters) await time.until(limiter.close());
});
