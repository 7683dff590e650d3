/** Shards that the Python library announces by raising `shard_count`, without making them. */

import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { pythonItems } from "@zae-limiter/test-support/golden-items.ts";
import { CallCounter } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";
import { describeItemStores, type LimiterStore, type Subject } from "../limiter/limiter-stores.ts";

const BUCKET = { entityId: "user-1", resource: "gpt-4" };
const ONE = { ...BUCKET, consume: { rpd: 1 } };
/** Enough for 32 shards to hold whole tokens. A slow engine meets no more than two shards. */
const TOKENS = 100;
const TOKENS_SLOW = 20;
/** To read what is there, to put the number of shards right, and to consume. */
const CALLS_MAX = 15;
/** To make one of the shards, with what it gets from the shard it descends from. */
const CALLS_PER_SHARD = 6;

const tokensOf = ({ slow }: LimiterStore) => (slow ? TOKENS_SLOW : TOKENS);
const limitsOf = (store: LimiterStore) => [`rpd:${tokensOf(store)}/day`];

function keyOf({ repo }: Subject, shard = 0) {
  return bucketKey(repo.namespaceId, BUCKET.entityId, BUCKET.resource, shard);
}

function itemsOf({ place }: LimiterStore) {
  if (place.items === undefined) throw new Error("Buckets are no items here");
  return place.items;
}

async function shardsOf(store: LimiterStore, subject: Subject): Promise<Item[]> {
  const keys = Array.from({ length: 64 }, (_, shard) => keyOf(subject, shard));
  const items = await itemsOf(store).getMany(keys, { consistent: true });
  return items.filter((item) => item !== undefined);
}

function sum(items: readonly Item[], attribute: string): number {
  return items.reduce((total, item) => total + Number(item[attribute] ?? 0), 0);
}

/** Acquires one at a time until one is refused. */
async function granted({ limiter }: Subject, most = 130): Promise<number> {
  for (let count = 0; count < most; count += 1) {
    if (!(await limiter.tryAcquire(ONE)).granted) return count;
  }
  return most;
}

describeItemStores("shards that the Python library announces", (store) => {
  it.for([2, 32, 2048])(
    "%d of them, none made: every token that is stored can be acquired, and none twice",
    async (announced, { skip }) => {
      skip(
        store.slow !== false && announced === 32,
        "thirty shards take this engine half a minute",
      );
      const subject = await store.open();
      await subject.repo.limits.setResource(BUCKET.resource, limitsOf(store));
      await subject.limiter.acquire(ONE);
      await itemsOf(store).update(keyOf(subject), { set: { shard_count: announced } });
      const counter = new CallCounter();
      const other = await store.another(subject, { onCall: counter.onCall });
      expect((await other.limiter.tryAcquire(ONE)).granted).toBe(true);
      const made = announced > 64 ? 0 : announced;
      expect(counter.calls.length).toBeLessThanOrEqual(CALLS_MAX + made * CALLS_PER_SHARD);
      expect(await granted(other)).toBe(tokensOf(store) - 2);
      const shards = await shardsOf(store, subject);
      expect(sum(shards, "b_rpd_tc")).toBe(tokensOf(store) * 1000);
      expect(sum(shards, "b_rpd_tk")).toBe(0);
      const count = announced > 64 ? 1 : announced;
      expect(shards.map(({ shard_count }) => shard_count)).toEqual(Array(count).fill(count));
    },
  );

  it("a bucket keeps to the shards that exist where Python has made some of too many", async () => {
    const subject = await store.open();
    await subject.repo.limits.setResource(BUCKET.resource, limitsOf(store));
    await subject.limiter.acquire(ONE);
    const first = (await itemsOf(store).get(keyOf(subject), { consistent: true })) as Item;
    const half = tokensOf(store) * 500;
    const made = { ...first, ...keyOf(subject, 1), shard_count: 256, b_rpd_tk: half };
    await itemsOf(store).put({ ...made, b_rpd_tc: 0 });
    const left = { shard_count: 256, b_rpd_tk: half - 1000 };
    await itemsOf(store).update(keyOf(subject), { set: left });
    const other = await store.another(subject);
    expect(await granted(other)).toBe(tokensOf(store) - 1);
    const shards = await shardsOf(store, subject);
    expect(shards.map(({ shard_count }) => shard_count)).toEqual([2, 2]);
  });

  it("announced shards are made while a client that knows of one shard goes on", async () => {
    const subject = await store.open();
    await subject.repo.limits.setResource(BUCKET.resource, limitsOf(store));
    await subject.limiter.acquire(ONE);
    await itemsOf(store).update(keyOf(subject), { set: { shard_count: 2 } });
    expect(await granted(subject)).toBe(tokensOf(store) - 1);
  });

  it("announced shards of a bucket with quotas are made, and hold its allowances together", async () => {
    const subject = await store.open();
    const { namespaceId } = subject.repo;
    const [zero, one] = pythonItems("65-buckets-sharded-quota", namespaceId) as [Item, Item];
    await itemsOf(store).put(zero);
    const limits = ["rpm:1000", "day:1000/day UTC", "ses:1000/session:2sec"];
    await subject.repo.limits.setResource("q", limits);
    const call = { entityId: "hot", resource: "q", consume: { rpm: 1 } };
    for (let count = 0; count < 12; count += 1) await subject.limiter.acquire(call);
    const found = await itemsOf(store).getMany([zero, one], { consistent: true });
    expect(sum(found as Item[], "b_rpm_tc")).toBe(1000 + 12_000);
    const target = { entityId: "hot", resource: "q" };
    expect(await subject.limiter.available(target)).toMatchObject({ day: 1000, ses: 1000 });
  });
});
