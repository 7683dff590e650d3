/** Resets and top-ups of balances, as items: keys, shards, records. The rest is in the contract. */

import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { splitInto } from "@zae-limiter/test-support/force-split.ts";
import { pythonItem } from "@zae-limiter/test-support/golden-items.ts";
import { refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect, it } from "vitest";
import { describeItemStores, describeLimiterStores, type LimiterStore } from "./limiter-stores.ts";

const BUCKET = { entityId: "key-1", resource: "gpt-4" };
const LIMITS = ["rpd:10/day", "tpd:100/day"];

async function opened(store: LimiterStore) {
  const subject = await store.open();
  await subject.repo.limits.setResource(BUCKET.resource, LIMITS);
  return subject;
}

describeLimiterStores("the balances of a bucket", (store) => {
  itUnless(store.slow)(
    "the balances of a missing bucket need nothing, and keys end with their entity",
    async () => {
      const { limiter, repo } = await opened(store);
      const { entityId } = BUCKET;
      expect(await repo.buckets.reset(BUCKET)).toEqual({ ...BUCKET, shards: 0, amounts: {} });
      const order = { ...BUCKET, amounts: { tpd: 5 }, idempotencyKey: "order-1" };
      await repo.entities.create({ id: entityId });
      await limiter.acquire({ ...BUCKET, consume: { tpd: 50 } });
      expect((await repo.buckets.topUp(order)).amounts).toEqual({ tpd: 5 });
      await repo.entities.delete(entityId);
      const left: string[] = [];
      const { items } = store.place;
      if (items !== undefined) {
        const { PK: partition } = bucketKey(repo.namespaceId, entityId, BUCKET.resource, 0);
        for await (const { SK } of items.query({ partition, consistent: true })) left.push(SK);
      }
      expect(left).toEqual([]);
      await limiter.acquire({ ...BUCKET, consume: { tpd: 50 } });
      expect((await repo.buckets.topUp(order)).amounts).toEqual({ tpd: 5 });
    },
  );
});

describeItemStores("the balances of a bucket with shards", (store) => {
  const itemsOf = () => {
    const { items } = store.place;
    if (items === undefined) throw new Error("Buckets are no items here");
    return items;
  };

  it("the balances of a bucket with shards are topped up by room, to the milli, and filled all at once", async () => {
    const subject = await opened(store);
    const { limiter, repo, time } = subject;
    const { namespaceId } = repo;
    await limiter.acquire({ ...BUCKET, consume: { tpd: 90 } });
    await splitInto(itemsOf(), { namespaceId, ...BUCKET }, 4, time.clock());
    const fresh = await store.another(subject);
    const added = await repo.buckets.topUp({ ...BUCKET, amounts: { tpd: 33 } });
    expect(added).toEqual({ ...BUCKET, shards: 4, amounts: { tpd: 33 } });
    expect((await fresh.limiter.available(BUCKET)).tpd).toBe(43);
    await repo.buckets.reset(BUCKET);
    expect((await fresh.limiter.available(BUCKET)).tpd).toBe(100);
    await fresh.limiter.acquire({ ...BUCKET, consume: { tpd: 100 } });
    await refusalOf(fresh.limiter.acquire({ ...BUCKET, consume: { tpd: 1 } }));
  });

  it("limits are filled so that a client that knows no remainders finds them full", async () => {
    const subject = await opened(store);
    const { limiter, repo, time } = subject;
    const { PK, SK } = bucketKey(repo.namespaceId, BUCKET.entityId, BUCKET.resource, 0);
    const filled = async () => {
      const item = await itemsOf().get({ PK, SK }, { consistent: true });
      // As Python computes it: 100 tokens are 100,000 milli a day.
      const accrued = ((time.clock() - Number(item?.rf)) * 100_000) / 86_400_000;
      return Number(item?.b_tpd_tk) + Math.floor(accrued);
    };
    await limiter.acquire({ ...BUCKET, consume: { tpd: 90 } });
    for (const [b_tpd_rr, waitMs] of [
      [86_399_999, 400],
      [80_000_000, 500],
      [1, 864],
    ] as const) {
      time.advance(waitMs);
      await itemsOf().update({ PK, SK }, { set: { b_tpd_rr, b_tpd_tk: -1 } });
      await repo.buckets.reset(BUCKET);
      expect(await filled()).toBe(100_000);
      const fresh = await store.another(subject);
      await fresh.limiter.acquire({ ...BUCKET, consume: { tpd: 100 } });
      await refusalOf(fresh.limiter.acquire({ ...BUCKET, consume: { tpd: 1 } }));
    }
  });

  itUnless(store.slow)("the balances of shards are recorded as Python does", async () => {
    const subject = await opened(store);
    const { limiter, repo } = subject;
    await repo.limits.setResource("session", ["session:10000/hour"]);
    const bucket = { entityId: "u1", resource: "session" };
    await limiter.acquire({ ...bucket, consume: { session: 6000 } });
    await repo.buckets.topUp({
      ...bucket,
      amounts: { session: 5000 },
      idempotencyKey: "order-1",
    });
    const golden = pythonItem("59-operation-record", repo.namespaceId);
    const item = await itemsOf().get(golden, { consistent: true });
    const { writer, ttl, ...same } = golden;
    expect(item).toMatchObject(same);
    expect(Object.keys(item ?? {}).sort()).toEqual(Object.keys(golden).sort());
  });
});
