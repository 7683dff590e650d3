/** Leases that outlive their bucket: what was used beyond the estimate is not lost. */

import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { describeUnless } from "@zae-limiter/test-support/unless.ts";
import { expect, it } from "vitest";
import { describeLimiterStores, milliOf, type Subject } from "./limiter-stores.ts";

const TARGET = { entityId: "user-1", resource: "gpt-4" };
const LIMITS = ["rpm:60", "tpm:10000"];

describeLimiterStores("a lease that outlives its bucket", (store) => {
  const variants = describeUnless(store.slow);

  /** Lets the bucket's time pass, and the store remove it. */
  async function expire({ repo, time }: Subject, ...entityIds: string[]): Promise<void> {
    time.advance(3_602_000);
    const { items } = store.place;
    if (!store.distributed || items === undefined) return;
    for (const entityId of entityIds) {
      await items.delete(bucketKey(repo.namespaceId, entityId, TARGET.resource, 0));
    }
  }

  it("a lease that outlives its bucket consumes what it used beyond its estimate, and usage counts it", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(LIMITS);
    const lease = await limiter.acquire({ ...TARGET, consume: { rpm: 1, tpm: 500 } });
    await expire(subject, "user-1");
    lease.adjust({ tpm: 999_500 });
    await lease.commit();
    expect(lease.consumed).toEqual({ rpm: 1, tpm: 1_000_000 });
    expect(await limiter.available(TARGET)).toEqual({ rpm: 60, tpm: -989_500 });
    expect(await milliOf(subject, "user-1", "gpt-4", "tpm")).toEqual({
      balance: -989_500_000,
      consumed: 999_500_000,
    });
    if (store.distributed) return;
    const { total } = await repo.usage.summary({ entityId: "user-1", window: "daily" });
    expect(total).toEqual({ rpm: 1, tpm: 1_000_000 });
  });

  variants("with parents", () => {
    it("a lease that outlives its bucket consumes from the parent's bucket too", async () => {
      const subject = await store.open();
      const { limiter, repo } = subject;
      await repo.limits.setSystem(LIMITS);
      await repo.entities.create({ id: "org" });
      await repo.entities.create({ id: "user-1", parentId: "org", cascade: true });
      const lease = await limiter.acquire({ ...TARGET, consume: { tpm: 100 } });
      await expire(subject, "user-1", "org");
      lease.adjust({ tpm: 20_000 });
      await lease.commit();
      for (const entityId of ["user-1", "org"]) {
        const found = await milliOf(subject, entityId, "gpt-4", "tpm");
        expect([entityId, found?.balance]).toEqual([entityId, -10_000_000]);
      }
      // The link to the parent is in the new bucket as well.
      const refused = await limiter.tryAcquire({ ...TARGET, consume: { tpm: 1 } });
      expect(refused.granted).toBe(false);
      if (!refused.granted) expect(refused.statuses.length).toBe(4);
    });
  });

  it("a lease that outlives its bucket creates no bucket to refund to", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(LIMITS);
    const lease = await limiter.acquire({ ...TARGET, consume: { rpm: 1, tpm: 500 } });
    const other = await limiter.acquire({ ...TARGET, consume: { rpm: 1, tpm: 500 } });
    await expire(subject, "user-1");
    lease.adjust({ tpm: -400 });
    await lease.commit();
    await other.rollback();
    const states = await repo.buckets.list("user-1");
    if (store.distributed) expect(states).toEqual([]);
    expect(await limiter.available(TARGET)).toEqual({ rpm: 60, tpm: 10_000 });
  });

  variants("in a namespace that goes", () => {
    it("a lease that outlives its bucket creates no bucket of a namespace that was deleted", async () => {
      const subject = await store.open();
      const { limiter, repo, time } = subject;
      await repo.limits.setSystem(LIMITS);
      const lease = await limiter.acquire({ ...TARGET, consume: { tpm: 500 } });
      await expire(subject, "user-1");
      await repo.namespaces.delete(repo.namespaceName);
      lease.adjust({ tpm: 20_000 });
      await lease.commit().catch(() => undefined);
      time.advance(1000);
      const live = (await repo.buckets.list("user-1")).filter(({ tokens }) => tokens < 0);
      expect(live).toEqual([]);
    });
  });
});
