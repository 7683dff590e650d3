/** A lease that was kept as JSON is corrected by another client as it would correct itself. */

import {
  type KeptLease,
  keptLeaseOf,
  settleKept,
} from "@zae-limiter/limiter/acquire/lease/kept-lease.ts";
import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import { splitInto } from "@zae-limiter/test-support/force-split.ts";
import { CHILD, family, left, used } from "@zae-limiter/testing/limiter-contract/family.ts";
import { expect, it } from "vitest";
import { describeItemStores, describeLimiterStores, milliOf } from "./limiter-stores.ts";

/** Through JSON, as a store keeps it. */
function kept(lease: Lease): KeptLease {
  return JSON.parse(JSON.stringify(keptLeaseOf(lease))) as KeptLease;
}

describeLimiterStores("a kept lease", (store) => {
  it("a kept lease is settled to less by another client, for the entity and its ancestors", async () => {
    const subject = await store.open();
    await family(subject, "child", "parent");
    await subject.repo.limits.setSystem(["rpm:100", "tpm:1000"]);
    const lease = await subject.limiter.acquire({ ...CHILD, consume: { rpm: 1 } });
    lease.settle({ rpm: 60, tpm: 500 });
    await lease.commit();
    expect(await used(subject, "child", "parent")).toEqual([60, 60]);
    const another = await store.another(subject);
    await settleKept(another.limiter, kept(lease), { rpm: 15 });
    expect(await used(another, "child", "parent")).toEqual([15, 15]);
    expect(await left(another, "child", "parent")).toEqual([85, 85]);
    // A limit that is not named keeps its amount.
    expect(await milliOf(another, "child", "api", "tpm")).toMatchObject({ consumed: 500_000 });
  });

  it("a kept lease is settled to more than there is, and leaves a debt", async () => {
    const subject = await store.open();
    await family(subject, "child", "parent");
    await subject.repo.limits.setSystem(["rpm:100"]);
    const lease = await subject.limiter.acquire({ ...CHILD, consume: { rpm: 100 } });
    await lease.commit();
    await settleKept((await store.another(subject)).limiter, kept(lease), { rpm: 130, other: 7 });
    expect(await left(subject, "child", "parent")).toEqual([-30, -30]);
  });

  it("a kept lease on several resources is settled on each of them", async () => {
    const subject = await store.open();
    await subject.repo.limits.setSystem(["rpm:100"]);
    const also = [{ resource: "total", consume: { rpm: 40 } }];
    const lease = await subject.limiter.acquire({ ...CHILD, consume: { rpm: 40 }, also });
    await lease.commit();
    await settleKept((await store.another(subject)).limiter, kept(lease), { rpm: 9 });
    for (const resource of ["api", "total"]) {
      const milli = await milliOf(subject, "child", resource, "rpm");
      expect(milli).toEqual({ balance: 91_000, consumed: 9000 });
    }
  });

  it("a kept lease that bypassed its limits is settled without touching balances", async () => {
    const subject = await store.open();
    await subject.repo.limits.setSystem(["rpm:100"]);
    await (await subject.limiter.acquire({ ...CHILD, consume: { rpm: 10 } })).commit();
    await subject.repo.limits.bypass({ entityId: "child" });
    const lease = await subject.limiter.acquire({ ...CHILD, consume: { rpm: 500 } });
    await lease.commit();
    await subject.repo.limits.enable({ entityId: "child" });
    await settleKept((await store.another(subject)).limiter, kept(lease), { rpm: 20 });
    const milli = await milliOf(subject, "child", "api", "rpm");
    expect(milli).toEqual({ balance: 90_000, consumed: 30_000 });
  });

  it("settling a kept lease leaves newer limits of its bucket as they are", async () => {
    const subject = await store.open();
    await subject.repo.limits.setEntity("child", ["rpm:100", "old:5/day"], { resource: "api" });
    const lease = await subject.limiter.acquire({ ...CHILD, consume: { rpm: 40, old: 2 } });
    await lease.commit();
    await subject.repo.limits.setEntity("child", ["rpm:50"], { resource: "api" });
    await (await subject.limiter.acquire({ ...CHILD, consume: { rpm: 1 } })).commit();
    const another = await store.another(subject);
    await settleKept(another.limiter, kept(lease), { rpm: 30, old: 1 });
    const [status, ...others] = await another.limiter.status(CHILD);
    expect([status?.limit.capacity, others]).toEqual([50, []]);
    expect(await used(subject, "child")).toEqual([31]);
  });

  it("a kept lease whose entity was deleted creates nothing when it is settled", async () => {
    const subject = await store.open();
    await subject.repo.limits.setSystem(["rpm:100"]);
    await subject.repo.entities.create({ id: "child" });
    const lease = await subject.limiter.acquire({ ...CHILD, consume: { rpm: 40 } });
    await lease.commit();
    await subject.repo.entities.delete("child");
    await settleKept((await store.another(subject)).limiter, kept(lease), { rpm: 60 });
    expect(await used(subject, "child")).toEqual(["-"]);
  });

  it("a refund of a kept lease serves a call that waits in the same process", async () => {
    const subject = await store.open();
    await subject.repo.limits.setSystem(["rpm:10"]);
    const lease = await subject.limiter.acquire({ ...CHILD, consume: { rpm: 10 } });
    await lease.commit();
    const request = { ...CHILD, consume: { rpm: 5 }, maxWaitSeconds: 86_400 };
    const waiting = subject.limiter.tryAcquire(request);
    await settleKept(subject.limiter, kept(lease), { rpm: 2 });
    expect((await waiting).granted).toBe(true);
    expect(await used(subject, "child")).toEqual([7]);
  });

  it("a kept lease with amounts that cannot be is refused, and changes nothing", async () => {
    const subject = await store.open();
    await subject.repo.limits.setSystem(["rpm:100"]);
    const lease = await subject.limiter.acquire({ ...CHILD, consume: { rpm: 40 } });
    await lease.commit();
    const [holding] = kept(lease).holdings;
    if (holding === undefined) throw new Error("the lease holds nothing");
    for (const wrong of [{ heldMilli: [1.5] }, { unsureMilli: [-1] }, { version: -1 }]) {
      const damaged = { ...kept(lease), holdings: [{ ...holding, ...wrong }] };
      await expect(settleKept(subject.limiter, damaged, { rpm: 1 })).rejects.toMatchObject({
        code: "ZAEL_VALIDATION",
      });
    }
    expect(await used(subject, "child")).toEqual([40]);
  });
});

describeItemStores("a kept lease on several shards", (store) => {
  it("a kept lease on several shards is refunded where its tokens came from", async () => {
    const first = await store.open();
    await first.repo.limits.setSystem(["rpm:100"]);
    await first.limiter.acquire({ ...CHILD, consume: {} });
    const { items } = store.place;
    if (items === undefined) throw new Error("buckets are items here");
    const { namespaceId } = first.repo;
    await splitInto(items, { namespaceId, ...CHILD }, 2, first.time.nowMs);
    const subject = await store.another(first);
    const lease = await subject.limiter.acquire({ ...CHILD, consume: { rpm: 80 } });
    await lease.commit();
    expect(kept(lease).holdings).toHaveLength(2);
    await settleKept((await store.another(first)).limiter, kept(lease), { rpm: 0 });
    const whole = await (await store.another(first)).limiter.tryAcquire({
      ...CHILD,
      consume: { rpm: 100 },
    });
    expect(whole.granted).toBe(true);
  });
});
