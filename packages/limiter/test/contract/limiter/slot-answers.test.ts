/** Slots that leases give back while the store is away, or where its answers get lost. */

import type { StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect, it } from "vitest";
import { breakable } from "./breakable.ts";
import { type Fault, Faults } from "./faults.ts";
import { describeLimiterStores, describeTables } from "./limiter-stores.ts";

const PLACE = { entityId: "key", resource: "api" };
const CALL = { ...PLACE, consume: { parallel: 1, tpd: 100 } };
const SOON = { timeout: 20_000, interval: 5 };
/** As many as three leases make that give up after four each. */
const ATTEMPTS = 12;

describeLimiterStores("slots over an outage", (store) => {
  itUnless(store.name === "memory" && "memory is never away")(
    "what leases give back in a long outage comes back after it",
    async () => {
      let failed = 0;
      const onCall = ({ outcome }: StoreCall) => {
        if (outcome !== "ok") failed += 1;
      };
      // A locked file is waited for; other stores fail at once.
      const timeoutMs = store.name === "sqlite" ? 500 : 2000;
      const options = { timeoutMs, virtualTimer: true, slotExpirySeconds: 600, onCall };
      await using broken = await breakable(store, "reset", options);
      const { limiter, repo, time } = broken.subject;
      await repo.limits.setSystem(["parallel:3 concurrent", "tpd:1000/day"]);
      const call = { ...CALL, onUnavailable: "block" } as const;
      const [committed, settled, undone] = [
        await limiter.acquire(call),
        await limiter.acquire(call),
        await limiter.acquire(call),
      ];
      await broken.fail();
      settled.settle({ tpd: 150 });
      const ended = Promise.allSettled([committed.commit(), settled.commit(), undone.rollback()]);
      await expect.poll(() => time.pass(500).then(() => failed), SOON).toBeGreaterThan(ATTEMPTS);
      await time.until(ended);
      await broken.repair();
      const free = async () => {
        await time.pass(500);
        return (await limiter.available(PLACE).catch(() => undefined))?.["parallel"];
      };
      await expect.poll(free, SOON).toBe(3);
    },
  );
});

describeTables("slots over lost answers", (store) => {
  async function opened() {
    const faults = new Faults();
    const subject = await store.open({ faults });
    await subject.repo.limits.setSystem(["parallel:2 concurrent", "tpd:1000/day"]);
    const [lease, other] = [
      await subject.limiter.acquire(CALL),
      await subject.limiter.acquire(CALL),
    ];
    const next = (fault: Fault) => faults.next(fault, ({ operation }) => operation === "transact");
    const free = () => subject.limiter.available(PLACE);
    return { lease, other, next, free };
  }

  it.each(["lost", "hang", "throttled"] as const)(
    "a commit gives its slot back once, and no other one: %s",
    async (fault) => {
      const { lease, other, next, free } = await opened();
      next(fault);
      await lease.commit();
      await expect.poll(free, SOON).toEqual({ parallel: 1, tpd: 800 });
      await other.commit();
      expect(await free()).toEqual({ parallel: 2, tpd: 800 });
    },
  );

  it.each(["lost", "hang", "throttled"] as const)(
    "a settle gives its slot back with its tokens, once: %s",
    async (fault) => {
      const { lease, next, free } = await opened();
      lease.settle({ tpd: 150 });
      next(fault);
      await lease.commit();
      await expect.poll(free, SOON).toEqual({ parallel: 1, tpd: 750 });
    },
  );

  it.each(["lost", "hang", "throttled"] as const)(
    "a rollback gives all back, once: %s",
    async (fault) => {
      const { lease, next, free } = await opened();
      next(fault);
      await lease.rollback();
      await expect.poll(free, SOON).toEqual({ parallel: 1, tpd: 900 });
    },
  );
});
