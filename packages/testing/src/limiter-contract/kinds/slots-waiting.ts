/** Waiting for slots: in order, woken by a release here, asking for those of other processes. */

import { refusalOf } from "../outcomes.ts";
import type { StoreUnderTest, Subject } from "../subject.ts";

const R = "gpt-4";
const CALL = { entityId: "key-1", resource: R, consume: { parallel: 1 } };
const SLOTLESS = "the store holds no slots";

export function slotsWaitingContract(store: StoreUnderTest): void {
  const { expect, testUnless } = store.cases;
  const test = testUnless(store.slots ? undefined : SLOTLESS);

  async function opened(slots: number): Promise<Subject> {
    const subject = await store.open({ virtualTimer: true });
    await subject.repo.limits.setResource(R, [`parallel:${slots} concurrent`]);
    return subject;
  }

  test("a call waits until a slot comes back in this process, and needs no time for it", async () => {
    const { limiter, time } = await opened(1);
    const held = await limiter.acquire(CALL);
    const order: string[] = [];
    const waiting = ["first", "second"].map(async (name) => {
      const lease = await limiter.acquire({ ...CALL, maxWaitSeconds: 600 });
      order.push(name);
      return lease;
    });
    await time.settle();
    expect(order).toEqual([]);
    const beforeMs = time.nowMs;
    await held.commit();
    const first = await time.until(waiting[0] as (typeof waiting)[0]);
    expect(order).toEqual(["first"]);
    first.release({ parallel: 1 });
    const second = await time.until(waiting[1] as (typeof waiting)[0]);
    expect(order).toEqual(["first", "second"]);
    expect(time.nowMs - beforeMs).toBeLessThan(50);
    await first.commit();
    await second.commit();
    expect((await limiter.available(CALL_PLACE)).parallel).toBe(1);
  });

  test("a call that waits for a slot of another process asks within a second", async () => {
    const subject = await opened(1);
    const other = await store.another(subject, { virtualTimer: true });
    const held = await other.limiter.acquire(CALL);
    const waiting = subject.limiter.acquire({ ...CALL, maxWaitSeconds: 600 });
    await subject.time.pass(5000);
    await held.commit();
    const freeMs = subject.time.nowMs;
    const lease = await subject.time.until(waiting);
    expect(subject.time.nowMs - freeMs).toBeLessThanOrEqual(1000);
    await lease.commit();
  });

  test("a wait for a slot ends in time, and takes none", async () => {
    const { limiter, time } = await opened(1);
    const held = await limiter.acquire(CALL);
    const beforeMs = time.nowMs;
    const refusal = await time.until(refusalOf(limiter.acquire({ ...CALL, maxWaitSeconds: 0.3 })));
    expect(refusal.violations[0]).toMatchObject({ limitName: "parallel", estimated: true });
    expect(time.nowMs - beforeMs).toBe(300);
    await held.commit();
    expect((await limiter.available(CALL_PLACE)).parallel).toBe(1);
  });

  test("a wait for a slot and for tokens ends in time, however long slots are held", async () => {
    const { limiter, repo, time } = await opened(1);
    await repo.limits.setResource(R, ["parallel:1 concurrent", "rpm:60/min:1"]);
    for (let call = 0; call < 5; call += 1) {
      const lease = await limiter.acquire(CALL);
      await time.pass(8000);
      await lease.commit();
    }
    const both = { ...CALL, consume: { parallel: 1, rpm: 1 } };
    const held = await limiter.acquire(both);
    const beforeMs = time.nowMs;
    const refusal = await time.until(refusalOf(limiter.acquire({ ...both, maxWaitSeconds: 3 })));
    expect(refusal.violations[0]).toMatchObject({ limitName: "parallel", estimated: true });
    expect(time.nowMs - beforeMs).toBe(3000);
    await held.commit();
  });

  test("the wait for a slot is estimated by how long slots were held", async () => {
    const { limiter, time } = await opened(1);
    for (let call = 0; call < 5; call += 1) {
      const lease = await limiter.acquire(CALL);
      await time.pass(8000);
      await lease.commit();
    }
    const held = await limiter.acquire(CALL);
    const refusal = await refusalOf(limiter.acquire(CALL));
    expect(refusal.retryAfterSeconds).toBeGreaterThan(6);
    expect(refusal.retryAfterSeconds).toBeLessThan(10);
    await held.commit();
  });
}

const CALL_PLACE = { entityId: "key-1", resource: R };
