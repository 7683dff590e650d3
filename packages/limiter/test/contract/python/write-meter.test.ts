/** The meter of writes on buckets that the Python library uses too. */

import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { expect, it } from "vitest";
import { describeItemStores } from "../limiter/limiter-stores.ts";

const BUCKET = { entityId: "user-1", resource: "gpt-4" };
const ONE = { ...BUCKET, limits: ["rpm:1000"], consume: { rpm: 1 } };
/** A Python client doubles the shards where the stored number is below one write. */
const PYTHON_EXHAUSTED_BELOW = 1000;

describeItemStores("the meter of writes", (store) => {
  it("the meter of writes never consumes from the one that Python clients compare as it is stored", async () => {
    const subject = await store.open();
    for (const waitMs of [0, 10_000, 10_000, 5, 86_400_001, 3]) {
      subject.time.advance(waitMs);
      const lease = await subject.limiter.acquire(ONE);
      lease.adjust({ rpm: 1 });
      await lease.commit();
      expect(await store.item(subject, BUCKET.entityId, BUCKET.resource)).toMatchObject({
        b_wcu_tk: 1_000_000,
        b_wcu_cp: 1_000_000,
        b_wcu_ra: 1_000_000,
        b_wcu_rp: 1000,
      });
    }
  });

  it("the meter of writes fills Python's meter where it is low and would be full by Python's own rule", async () => {
    const subject = await store.open();
    await subject.limiter.acquire(ONE);
    const key = bucketKey(subject.repo.namespaceId, BUCKET.entityId, BUCKET.resource, 0);
    // As earlier versions of this library left it behind.
    await store.place.items?.update(key, { set: { b_wcu_tk: -17_001_000 } });
    subject.time.advance(2000);
    const other = await store.another(subject);
    await other.limiter.acquire(ONE);
    const item = await store.item(subject, BUCKET.entityId, BUCKET.resource);
    expect(Number(item?.b_wcu_tk)).toBeGreaterThanOrEqual(PYTHON_EXHAUSTED_BELOW);
    expect(item).toMatchObject({ shard_count: 1, b_wcu_tk: 1_000_000 });
  });

  it("the meter of writes starts on an item that has none, whatever moved its base time", async () => {
    const subject = await store.open();
    const key = bucketKey(subject.repo.namespaceId, BUCKET.entityId, BUCKET.resource, 0);
    await subject.limiter.acquire(ONE);
    await subject.limiter.acquire(ONE);
    const written = Number((await store.item(subject, BUCKET.entityId, BUCKET.resource))?.wm);
    expect(written).toBe(subject.time.nowMs - 1999);
    // A Python client has settled the bucket a minute later.
    subject.time.advance(60_000);
    await store.place.items?.update(key, { set: { rf: subject.time.nowMs } });
    const other = await store.another(subject);
    await other.limiter.acquire(ONE);
    const item = await store.item(subject, BUCKET.entityId, BUCKET.resource);
    expect(item).toMatchObject({ wm: subject.time.nowMs - 1999, shard_count: 1 });
  });
});
