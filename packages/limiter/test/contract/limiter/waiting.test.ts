/** Thousands of waiters, and waiters on a store that fails. The rest is in the contract. */

import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { lines } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { describe, expect } from "vitest";
import { Faults } from "./faults.ts";
import { describeItemStores, milliOf } from "./limiter-stores.ts";

const USER = { entityId: "user-1", resource: "gpt-4" };
/** 10 a second, so that waits are short. */
const RPS = { ...USER, limits: ["rps:10/sec"] };
const DRAIN = { ...RPS, consume: { rps: 10 } };

describe("thousands of waiters", () => {
  describeItemStores("make few calls that fail", (store) => {
    itUnless(store.name !== "items" && "the test holds every request, which needs items in memory")(
      "two thousand waiters in one queue make few calls, and are served in order",
      async () => {
        const faults = new Faults();
        const subject = await store.open({ virtualTimer: true, faults });
        const { limiter, time } = subject;
        const request = { ...USER, limits: ["rps:100/sec"], consume: { rps: 1 } };
        await limiter.acquire({ ...request, consume: { rps: 100 } });
        faults.requests.splice(0);
        const startMs = time.nowMs;
        const served: number[] = [];
        const all = Array.from({ length: 2000 }, async (_, place) => {
          const lease = await limiter.acquire({ ...request, maxWaitSeconds: 60 });
          served.push(place);
          return lease;
        });
        await time.until(Promise.all(all));
        expect(served).toEqual(Array.from({ length: 2000 }, (_, place) => place));
        // As fast as the limit allows, one write each, and hardly one refused.
        expect(time.nowMs - startMs).toBeLessThan(20_000 * 1.15);
        expect(faults.requests.length).toBeLessThan(2000 * 1.05);
        expect(await milliOf(subject, "user-1", "gpt-4", "rps")).toMatchObject({
          consumed: 2_100_000,
        });
      },
    );

    itUnless(store.name !== "items" && "the test holds every request, which needs items in memory")(
      "two thousand calls of which most come too late make few requests",
      async () => {
        const faults = new Faults();
        const { limiter, time } = await store.open({ virtualTimer: true, faults });
        const request = {
          ...USER,
          limits: ["rps:100/sec"],
          consume: { rps: 1 },
          maxWaitSeconds: 2,
        };
        await limiter.acquire({ ...request, consume: { rps: 100 } });
        faults.requests.splice(0);
        const startMs = time.nowMs;
        const refusedAt: number[] = [];
        const all = Array.from({ length: 2000 }, async () => {
          const decision = await limiter.tryAcquire(request);
          if (!decision.granted) refusedAt.push(time.nowMs - startMs);
          return decision;
        });
        const decisions = await time.until(Promise.all(all));
        const granted = decisions.filter((decision) => decision.granted).length;
        expect(granted).toBeGreaterThan(170);
        expect(granted).toBeLessThanOrEqual(200);
        expect(faults.requests.length).toBeLessThan(granted * 1.05 + 10);
        // At once, not when their time is over.
        expect(refusedAt.filter((atMs) => atMs > 50).length).toBeLessThan(40);
      },
    );
  });
});

describeItemStores("a line while the store fails", (store) => {
  itUnless(store.name !== "items" && "the test holds every request, which needs items in memory")(
    "a queue hands the failure of the store to each waiter once",
    async () => {
      const faults = new Faults();
      const { limiter, time } = await store.open({ virtualTimer: true, faults });
      await limiter.acquire(DRAIN);
      const ask = (own: RateLimiter, onUnavailable: "allow" | "block") =>
        own.acquire({ ...RPS, consume: { rps: 5 }, maxWaitSeconds: 10, onUnavailable });
      const waits = [ask(limiter, "block"), ask(limiter, "allow"), ask(limiter, "block")];
      await time.settle();
      faults.rule = () => "throttled";
      const outcomes = await time.until(Promise.allSettled(waits));
      expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "rejected"]);
      faults.rule = () => undefined;
      const lease = await time.until(ask(limiter, "block"));
      expect(lines(lease.statuses)).toHaveLength(1);
    },
  );
});
