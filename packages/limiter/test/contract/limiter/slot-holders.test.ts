/** Slots of dead processes in bucket items: which calls give them back, and at what price. */

import type { StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import { refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { expect, it } from "vitest";
import { describeItemStores } from "./limiter-stores.ts";

const CALL = { entityId: "hot", resource: "api" };
const ONE = { ...CALL, consume: { parallel: 1 } };
/** The expiry of a record, and by how much clocks may differ. */
const OVER_MS = 66_000;

describeItemStores("slots of dead processes", (store) => {
  async function opened(limit: string) {
    const calls: StoreCall[] = [];
    const subject = await store.open({
      onCall: (call) => void calls.push(call),
      configCacheTtlSeconds: 1e9,
      virtualTimer: true,
    });
    await subject.repo.limits.setSystem([limit]);
    const dead = await store.another(subject, { virtualTimer: true });
    return { ...subject, dead, calls };
  }

  it("a call that is refused for slots gives back those of the dead, and gets one", async () => {
    const { limiter, dead, time } = await opened("parallel:2 concurrent");
    await dead.limiter.acquire({ ...CALL, consume: { parallel: 2 } });
    await refusalOf(limiter.acquire(ONE));
    await dead.repo.close();
    await time.pass(OVER_MS - 1000);
    await refusalOf(limiter.acquire(ONE));
    await time.pass(2000);
    const lease = await limiter.acquire(ONE);
    expect(await limiter.available(CALL)).toEqual({ parallel: 1 });
    await lease.commit();
    expect(await limiter.available(CALL)).toEqual({ parallel: 2 });
  });

  it("a call that overdraws soft slots gives back those of the dead, and of no others", async () => {
    const { limiter, dead, time } = await opened("parallel:2 concurrent soft");
    const alive = await limiter.acquire(ONE);
    await dead.limiter.acquire({ ...CALL, consume: { parallel: 5 } });
    await dead.repo.close();
    await time.pass(45_000);
    // A call waits for the renewal of its process, which virtual time does not.
    await (await limiter.acquire({ ...ONE, entityId: "other" })).commit();
    await time.pass(OVER_MS - 46_000);
    await limiter.acquire(ONE);
    expect(await limiter.available(CALL)).toEqual({ parallel: -5 });
    await time.pass(2000);
    const last = await limiter.acquire(ONE);
    expect(last.overdrawn).toEqual(["parallel"]);
    expect(await limiter.available(CALL)).toEqual({ parallel: -1 });
    await alive.commit();
    await last.commit();
    expect(await limiter.available(CALL)).toEqual({ parallel: 1 });
  });

  it("calls that overdraw soft slots of the living read no more than a record a minute", async () => {
    const { limiter, dead, time, calls } = await opened("parallel:1 concurrent soft");
    await dead.limiter.acquire({ ...CALL, consume: { parallel: 5 } });
    await limiter.acquire(ONE);
    calls.splice(0);
    for (let call = 0; call < 140; call += 1) {
      await time.pass(500);
      await limiter.acquire(ONE);
    }
    const reads = calls.filter(({ operation }) => /get/i.test(operation)).length;
    expect(reads).toBeGreaterThan(0);
    expect(reads).toBeLessThanOrEqual(2);
  });

  it("a call that waits for a slot of the living asks by reads, between 50 ms and a second", async () => {
    const { limiter, dead: other, time, calls } = await opened("parallel:1 concurrent");
    const held = await other.limiter.acquire(ONE);
    const waiting = limiter.acquire({ ...ONE, maxWaitSeconds: 600 });
    await time.pass(2000);
    calls.splice(0);
    await time.pass(20_000);
    expect(calls.map(({ operation }) => operation).filter((name) => !/get/i.test(name))).toEqual(
      [],
    );
    expect(calls.length).toBeGreaterThanOrEqual(20);
    expect(calls.length).toBeLessThanOrEqual(410);
    await held.commit();
    await (await time.until(waiting)).commit();
  });
});
