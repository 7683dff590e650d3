/** Shards that are merged again, where buckets are items: what is kept, and what clients notice. */

import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { halveShards } from "@zae-limiter/test-support/force-merge.ts";
import { splitInto } from "@zae-limiter/test-support/force-split.ts";
import { expect, it } from "vitest";
import { describeItemStores, type LimiterStore, type Subject } from "./limiter-stores.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };
const ONE = { ...USER, consume: { rpm: 1 } };
const MINUTE = 60_000;

describeItemStores("shards that are merged", (store) => {
  it("shards that are merged leave one that has what both had, and nothing of the other", async () => {
    const subject = await opened(store, ["rpm:100", "tpm:1000"], 2);
    const items = itemsOf(store);
    const [first, second] = keysOf(subject, 2);
    // 40 and a debt of 10; 45,000 and 30 have been consumed in total.
    await items.update(first, { set: { b_rpm_tk: 40_000, b_rpm_tc: 45_000, b_tpm_tk: 7 } });
    await items.update(second, {
      set: { b_rpm_tk: -10_000, b_rpm_tc: 30, b_tpm_tk: 11, ac: 3 },
    });
    expect(await halve(store, subject)).toBe(true);
    const [kept, stub] = await shardsOf(store, subject, 2);
    expect(kept).toMatchObject({
      shard_count: 1,
      b_rpm_tk: 30_000,
      b_rpm_tc: 45_030,
      b_tpm_tk: 18,
      ac: 4,
      mg: 1,
    });
    // It expires again, and needs no record of what many shards would need.
    expect(Number(kept?.["ttl"]) * 1000).toBeGreaterThan(subject.time.nowMs);
    expect(kept).not.toHaveProperty("nd");
    expect(Object.keys(stub ?? {}).sort()).toEqual(["PK", "SK", "ttl"]);
    expect(await subject.limiter.available(USER)).toEqual({ rpm: 30, tpm: 0 });
    const listed = await subject.repo.buckets.list("user-1");
    expect(listed.map(({ shard, limitName }) => `${shard} ${limitName}`).sort()).toEqual([
      "0 rpm",
      "0 tpm",
    ]);
  });

  it("shards are not merged when one of them is written to meanwhile, and then as it is", async () => {
    const subject = await opened(store, ["rpm:100"], 2);
    const [, second] = keysOf(subject, 2);
    const items = itemsOf(store);
    let writes = 0;
    const busy = new Proxy(items, {
      get: (target, name: keyof typeof items) =>
        name === "transact"
          ? async (...args: Parameters<typeof items.transact>) => {
              writes += 1;
              if (writes <= 2)
                await items.update(second, { add: { b_rpm_tk: -1000, b_rpm_tc: 1000 } });
              return items.transact(...args);
            }
          : (target[name]?.bind(target) as unknown),
    });
    expect(await halveShards(busy, target(subject), subject.time.nowMs)).toBe(true);
    expect(writes).toBe(3);
    const [kept] = await shardsOf(store, subject, 1);
    expect(kept).toMatchObject({ shard_count: 1, b_rpm_tk: 97_000, b_rpm_tc: 3000 });
  });

  it("merged shards cost a client that counts them two requests, and grant no token twice", async () => {
    const subject = await opened(store, ["rpm:40"], 4);
    const others = [await store.another(subject), await store.another(subject)];
    const clients = [subject, ...others];
    let granted = 1;
    const burst = async (calls: number) => {
      for (let call = 0; call < calls; call += 1) {
        const { limiter } = clients[call % clients.length] as Subject;
        if ((await limiter.tryAcquire(ONE)).granted) granted += 1;
      }
    };
    await burst(12);
    expect(await halve(store, subject)).toBe(true);
    await burst(6);
    expect(await halve(store, subject)).toBe(true);
    await burst(30);
    expect(granted).toBe(40);
    const shards = await shardsOf(store, subject, 4);
    expect(shards.map((item) => item?.["shard_count"])).toEqual([
      1,
      undefined,
      undefined,
      undefined,
    ]);
    expect(shards[0]).toMatchObject({ b_rpm_tc: 40_000, b_rpm_tk: expect.any(Number) });
  });

  it("shards that are merged take refunds and corrections of leases on the shard that is gone", async () => {
    const subject = await opened(store, ["rpm:100"], 2);
    const { limiter } = subject;
    // More than a shard holds, so each lease has a part of both.
    const leases = [
      await limiter.acquire({ ...USER, consume: { rpm: 60 } }),
      await limiter.acquire({ ...USER, consume: { rpm: 30 } }),
    ] as const;
    expect(await halve(store, subject)).toBe(true);
    await leases[0].rollback();
    expect((await shardsOf(store, subject, 1))[0]).toMatchObject({ b_rpm_tc: 31_000 });
    leases[1].adjust({ rpm: 20 });
    await leases[1].commit();
    const [kept, stub] = await shardsOf(store, subject, 2);
    expect(kept).toMatchObject({ b_rpm_tc: 51_000, b_rpm_tk: 49_000 });
    expect(stub).not.toHaveProperty("rf");
  });

  it("shards that are merged are split again with the limits and the tokens that there are", async () => {
    const subject = await opened(store, ["rpm:100"], 2);
    await halve(store, subject);
    await splitInto(itemsOf(store), target(subject), 2, subject.time.nowMs);
    for (let call = 0; call < 20; call += 1) await subject.limiter.acquire(ONE);
    const shards = await shardsOf(store, subject, 2);
    expect(shards.map((item) => item?.["shard_count"])).toEqual([2, 2]);
    expect(sum(shards, "b_rpm_tc")).toBe(21_000);
    expect(sum(shards, "b_rpm_tk")).toBe(79_000);
    expect(await subject.limiter.available(USER)).toEqual({ rpm: 79 });
  });

  it("shards that an hour has not needed are merged down to one by a client that notices", async () => {
    const subject = await opened(store, ["rpm:1000"], 4);
    const use = async (minutes: number) => {
      for (let minute = 0; minute < minutes; minute += 5) {
        subject.time.advance(5 * MINUTE);
        for (let call = 0; call < 8; call += 1) await subject.limiter.acquire(ONE);
      }
      return (await shardsOf(store, subject, 1))[0]?.["shard_count"];
    };
    expect(await use(5)).toBe(4);
    // Two were not enough when there came to be four: for an hour there are two at least.
    await expect.poll(() => use(10), { timeout: 10_000, interval: 5 }).toBe(2);
    expect(await use(20)).toBe(2);
    await expect.poll(() => use(10), { timeout: 10_000, interval: 5 }).toBe(1);
    // All but the eight of the last minute: the refill of no shard is lost.
    expect(await subject.limiter.available(USER)).toEqual({ rpm: 992 });
  });

  it("shards stay where the Python library may use the table", async () => {
    const subject = await opened(store, ["rpm:100"], 2);
    const [first] = keysOf(subject, 2);
    await itemsOf(store).update(first, { add: { b_wcu_tk: -1000 } });
    expect(await halve(store, subject)).toBe(false);
    expect((await shardsOf(store, subject, 2)).map((item) => item?.["shard_count"])).toEqual([
      2, 2,
    ]);
  });

  it("shards that are gone do not come back with a count that a client read before", async () => {
    const subject = await opened(store, ["rpm:100"], 4);
    // Shard 1 has taken in shard 3, and the first one still counts four.
    const items = itemsOf(store);
    const cut = new Proxy(items, {
      get: (target, name: keyof typeof items) =>
        name === "transact"
          ? (...args: Parameters<typeof items.transact>) => {
              const [write] = args[0];
              const key = write !== undefined && "update" in write ? write.update.PK : "";
              if (key.endsWith("#0")) throw new Error("cut off");
              return items.transact(...args);
            }
          : (target[name]?.bind(target) as unknown),
    });
    await expect(halveShards(cut, target(subject), subject.time.nowMs)).rejects.toThrow("cut off");
    const other = await store.another(subject);
    for (let call = 0; call < 20; call += 1) await other.limiter.acquire(ONE);
    const shards = await shardsOf(store, subject, 4);
    expect(shards.map((item) => item?.["shard_count"])).toEqual([4, 2, 4, undefined]);
    expect(sum(shards, "b_rpm_tc")).toBe(21_000);
    // The next client that notices goes on where the first one stopped.
    expect(await halve(store, subject)).toBe(true);
    const after = await shardsOf(store, subject, 4);
    expect(after.map((item) => item?.["shard_count"])).toEqual([2, 2, undefined, undefined]);
    expect(sum(after, "b_rpm_tc")).toBe(21_000);
    expect(sum(after, "b_rpm_tk")).toBe(79_000);
  });
});

/** A bucket of `count` shards, from which one has been consumed. */
async function opened(store: LimiterStore, limits: string[], count: number): Promise<Subject> {
  const subject = await store.open();
  await subject.repo.limits.setSystem(limits);
  await subject.limiter.acquire(ONE);
  await splitInto(itemsOf(store), target(subject), count, subject.time.nowMs);
  return subject;
}

function halve(store: LimiterStore, subject: Subject): Promise<boolean> {
  return halveShards(itemsOf(store), target(subject), subject.time.nowMs);
}

function target({ repo: { namespaceId } }: Subject) {
  return { namespaceId, ...USER };
}

function keysOf(subject: Subject, count: number) {
  const { namespaceId } = subject.repo;
  return Array.from({ length: count }, (_, shard) =>
    bucketKey(namespaceId, USER.entityId, RESOURCE, shard),
  ) as [ReturnType<typeof bucketKey>, ReturnType<typeof bucketKey>];
}

async function shardsOf(store: LimiterStore, subject: Subject, count: number) {
  return itemsOf(store).getMany(keysOf(subject, count), { consistent: true });
}

function sum(items: readonly (Item | undefined)[], name: string): number {
  return items.reduce((total, item) => total + Number(item?.[name] ?? 0), 0);
}

function itemsOf(store: LimiterStore) {
  const { items } = store.place;
  if (items === undefined) throw new Error(`Buckets are no items in ${store.name}`);
  return items;
}
