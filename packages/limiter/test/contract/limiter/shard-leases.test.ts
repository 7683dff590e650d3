/**
 * Leases on a bucket of two shards, of which the first is empty: everything happens on the other.
 */

import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { splitInto } from "@zae-limiter/test-support/force-split.ts";
import { CHILD, family, RESOURCE, used } from "@zae-limiter/testing/limiter-contract/family.ts";
import { expect, it } from "vitest";
import { describeItemStores, type LimiterStore, type Subject } from "./limiter-stores.ts";

const TOKENS = { rpm: 10, tpm: 100 };

describeItemStores("a lease on the shard that had enough", (store) => {
  /** Shard 0 has nothing left, shard 1 has its whole share; the limiter knows of neither. */
  async function drained(): Promise<Subject> {
    const first = await store.open();
    await family(first, "child", "parent");
    await first.repo.limits.setSystem(["rpm:100", "tpm:1000"]);
    await first.limiter.acquire({ ...CHILD, consume: {} });
    const { items } = store.place;
    if (items === undefined) throw new Error("buckets are items here");
    const { namespaceId } = first.repo;
    const target = { namespaceId, entityId: "child", resource: RESOURCE };
    await splitInto(items, target, 2, first.time.nowMs);
    const key = bucketKey(namespaceId, "child", RESOURCE, 0);
    await items.update(key, { set: { b_rpm_tk: 0 } });
    return store.another(first);
  }

  it("a lease on the shard that had enough consumes from the parent too (A115)", async () => {
    const subject = await drained();
    for (let call = 1; call <= 4; call += 1) {
      await subject.limiter.acquire({ ...CHILD, consume: { rpm: 10 } });
      expect(await shards(store, subject)).toEqual([
        [0, 0],
        [50 - 10 * call, 10 * call],
      ]);
      expect(await used(subject, "parent")).toEqual([10 * call]);
    }
  });

  it("a lease on the shard that had enough is adjusted, committed and refunded there (A091)", async () => {
    const subject = await drained();
    const { limiter } = subject;
    const adjusted = await limiter.acquire({ ...CHILD, consume: TOKENS });
    adjusted.adjust({ rpm: 5, tpm: -40 });
    await adjusted.flush();
    expect(await shards(store, subject)).toEqual([
      [0, 0],
      [35, 15],
    ]);
    adjusted.adjust({ rpm: -3 });
    await adjusted.commit();
    expect(await shards(store, subject)).toEqual([
      [0, 0],
      [38, 12],
    ]);
    expect(adjusted.consumed).toEqual({ rpm: 12, tpm: 60 });
    const returned = await limiter.acquire({ ...CHILD, consume: TOKENS });
    await returned.consume({ rpm: 20 });
    returned.adjust({ rpm: 1 });
    await returned.flush();
    await returned.rollback();
    expect(await shards(store, subject)).toEqual([
      [0, 0],
      [38, 12],
    ]);
    expect(await used(subject, "parent")).toEqual([12]);
  });
});

/** Tokens of `rpm` that each shard of the child has left, and that were consumed from it. */
async function shards({ place }: LimiterStore, { repo }: Subject): Promise<unknown[]> {
  const keys = [0, 1].map((shard) => bucketKey(repo.namespaceId, "child", RESOURCE, shard));
  const items = await place.items?.getMany(keys, { consistent: true });
  return (items ?? []).map((item) => [
    Number(item?.b_rpm_tk) / 1000,
    Number(item?.b_rpm_tc) / 1000,
  ]);
}
