/** Limits that the Python library changes: it counts no versions, and sets the counter back. */

import { refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { CallCounter } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";
import { describeItemStores, type LimiterStore, type Subject } from "../limiter/limiter-stores.ts";

const BUCKET = { entityId: "user-1", resource: "gpt-4" };
const ONE = { ...BUCKET, consume: { rpm: 1 } };
/** How long limits are cached. */
const CACHE_MS = 60_001;

/** As the Python library does it: the item is replaced, and nothing is counted. */
async function setByPython(store: LimiterStore, { repo }: Subject, rpm: number): Promise<void> {
  const PK = `${repo.namespaceId}/RESOURCE#${BUCKET.resource}`;
  const set = { l_rpm_cp: rpm, l_rpm_ra: rpm, l_rpm_rp: 60, resource: BUCKET.resource };
  await store.place.items?.put({ PK, SK: "#CONFIG", config_version: 1, ...set });
}

async function capacity(store: LimiterStore, subject: Subject): Promise<unknown> {
  return (await store.item(subject, BUCKET.entityId, BUCKET.resource))?.b_rpm_cp;
}

describeItemStores("limits that the Python library changes", (store) => {
  it("limits that the Python library changes reach a live bucket when the cached ones are over", async () => {
    const subject = await store.open();
    const { limiter, time } = subject;
    await setByPython(store, subject, 100);
    await limiter.acquire(ONE);
    await setByPython(store, subject, 10);
    time.advance(CACHE_MS);
    const granted = await Promise.all(
      Array.from({ length: 20 }, () => limiter.tryAcquire(ONE).then((one) => one.granted)),
    );
    expect(granted.filter(Boolean)).toHaveLength(10);
    expect(await capacity(store, subject)).toBe(10_000);
    await setByPython(store, subject, 50);
    time.advance(CACHE_MS);
    await limiter.acquire(ONE);
    expect(await capacity(store, subject)).toBe(50_000);
  });

  it("limits that Python changes are not undone by a client that still has the older ones", async () => {
    const stale = await store.open();
    await stale.repo.limits.setSystem(["rpm:5"]);
    await setByPython(store, stale, 100);
    await stale.limiter.acquire(ONE);
    await setByPython(store, stale, 10);
    const fresh = await store.another(stale);
    await fresh.limiter.acquire(ONE);
    expect(await capacity(store, stale)).toBe(10_000);
    for (let call = 0; call < 3; call += 1) {
      await stale.limiter.acquire(ONE);
      await fresh.limiter.acquire(ONE);
      expect(await capacity(store, stale)).toBe(10_000);
    }
    const all = stale.limiter.acquire({ ...BUCKET, consume: { rpm: 11 } });
    expect((await refusalOf(all)).statuses[0]).toMatchObject({ limit: { capacity: 10 } });
  });

  it("limits that Python changes cost one call per warm acquire, also with a counter that is behind", async () => {
    const subject = await store.open();
    const { repo, time } = subject;
    for (let change = 0; change < 5; change += 1) await repo.limits.setSystem(["rpm:7"]);
    await repo.limits.setResource(BUCKET.resource, ["rpm:100"]);
    await subject.limiter.acquire(ONE);
    const system = { PK: `${repo.namespaceId}/SYSTEM#`, SK: "#CONFIG" };
    await store.place.items?.update(system, { set: { config_version: 1 } });
    time.advance(CACHE_MS);
    const counter = new CallCounter();
    const other = await store.another(subject, { onCall: counter.onCall });
    for (const limits of [100, 40]) {
      await setByPython(store, subject, limits);
      time.advance(CACHE_MS);
      await other.limiter.acquire(ONE);
      await other.limiter.acquire(ONE);
      for (let call = 0; call < 3; call += 1) {
        expect(await counter.during(() => other.limiter.acquire(ONE))).toBe(1);
      }
      expect(await capacity(store, subject)).toBe(limits * 1000);
    }
  });
});
