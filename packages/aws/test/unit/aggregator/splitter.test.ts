/** Shards made by the aggregator, with the buckets' own means. */

import { Aggregator } from "@zae-limiter/aws/aggregator/aggregator.ts";
import { splitterOver } from "@zae-limiter/aws/aggregator/splitter.ts";
import { changeOf, type StreamChange } from "@zae-limiter/aws/aggregator/stream-change.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { describe, expect, test } from "vitest";

const START = Date.parse("2027-01-01T12:00:00Z");

/** A bucket on a store that several processes could share, and an aggregator. */
async function world(limits: readonly string[] = ["rpm:100000"]) {
  const time = { nowMs: START };
  const clock = () => time.nowMs;
  const store = new MemoryItemStore({ clock });
  const repo = await overTable(store, { clock });
  await repo.limits.setSystem([...limits]);
  const limiter = new RateLimiter(repo);
  const log = () => undefined;
  const splitter = splitterOver({ store, clock, log });
  const aggregator = new Aggregator({ store, clock, log, splitter });
  const use = (consume: Record<string, number>) =>
    limiter.acquire({ entityId: "key-1", resource: "gpt-4", consume });
  const shards = async () => {
    const found: Item[] = [];
    const partition = `${repo.namespaceId}/ENTITY#key-1`;
    for await (const key of store.query({ index: "GSI3", partition })) {
      found.push((await store.get(key)) as Item);
    }
    return found;
  };
  const total = (items: readonly Item[], name: string) =>
    items.reduce((sum, item) => sum + (item[name] as number), 0);
  return { time, store, repo, aggregator, use, shards, total };
}

/** Returns the changes so far. */
async function changesIn(store: MemoryItemStore): Promise<StreamChange[]> {
  const stop = new AbortController();
  const found: StreamChange[] = [];
  const feed = store.changes({ from: "oldest", signal: stop.signal })[Symbol.asyncIterator]();
  setImmediate(() => stop.abort());
  for (let next = await feed.next(); next.done !== true; next = await feed.next()) {
    found.push(changeOf(next.value, ""));
  }
  return found;
}

/** The last change of a bucket, so often that it must be split. */
function busy(changes: readonly StreamChange[], writes: number): StreamChange[] {
  const last = changes.findLast(({ key }) => key.SK === "#STATE") as StreamChange;
  return Array.from({ length: writes }, () => last);
}

describe("shards", () => {
  test("shards writes close to what an item can take split it, from 1 to 2 to 4, at most to 64 (op 80)", async () => {
    const { time, store, aggregator, use, shards, total } = await world();
    await use({ rpm: 10 });
    for (const count of [2, 4, 8, 16, 32, 64, 64]) {
      time.nowMs += 10_000;
      await use({ rpm: 1 });
      const changes = await changesIn(store);
      const shard0 = changes.findLast(({ key }) => key.PK.endsWith("#0")) as StreamChange;
      const { counters, failedIds } = await aggregator.process(busy([shard0], 900));
      expect(failedIds).toEqual([]);
      expect(counters.splits).toBe(count === 64 && (await shards()).length >= 64 ? 0 : 1);
      // What the split itself did to the first shard makes the others follow.
      await aggregator.process((await changesIn(store)).slice(changes.length));
      expect((await shards()).map(({ shard_count }) => shard_count)).toContain(count);
      if (count === 64) break;
    }
    const items = await shards();
    expect(items).toHaveLength(64);
    expect(total(items, "b_rpm_tc")).toBe(16_000);
  });

  test("all pairs follow when the first has split, also when a batch holds nothing else (op 81)", async () => {
    const { time, store, aggregator, use, shards } = await world();
    await use({ rpm: 1 });
    for (const count of [2, 4]) {
      time.nowMs += 10_000;
      const before = await changesIn(store);
      const shard0 = before.findLast(({ key }) => key.PK.endsWith("#0")) as StreamChange;
      await aggregator.process(busy([shard0], 900));
      const split = (await changesIn(store)).slice(before.length);
      const grown = split.filter(({ key }) => key.PK.endsWith("#0"));
      const { counters } = await aggregator.process(grown);
      expect(counters).toMatchObject({ snapshots: 0, splits: count / 2 - 1 });
      expect((await shards()).map(({ shard_count }) => shard_count)).toEqual(
        Array.from({ length: count }, () => count),
      );
      // Once more changes nothing.
      expect((await aggregator.process(grown)).counters.splits).toBe(0);
    }
  });

  test("a split mints nothing and loses nothing; its new shard has consumed nothing (op 82)", async () => {
    const { time, store, repo, aggregator, use, shards, total } = await world(["rpm:100000"]);
    for (let times = 0; times < 10; times += 1) await use({ rpm: 10_000 });
    time.nowMs += 6000;
    const changes = await changesIn(store);
    await aggregator.process([...changes, ...busy(changes, 900)]);
    await aggregator.process((await changesIn(store)).slice(changes.length));
    const items = await shards();
    expect(items.map(({ b_rpm_tk, b_rpm_tc }) => [b_rpm_tk, b_rpm_tc])).toEqual([
      [5_000_000, 100_000_000],
      [5_000_000, 0],
    ]);
    expect(total(items, "b_rpm_tk")).toBe(10_000_000);
    const { total: used } = await repo.usage.summary({ entityId: "key-1", window: "daily" });
    expect(used).toEqual({ rpm: 100_000 });
  });

  test("a bucket that could not hold its largest request any more stays whole", async () => {
    const { time, store, aggregator, use, shards } = await world(["rpm:100"]);
    await use({ rpm: 80 });
    time.nowMs += 60_000;
    await use({ rpm: 1 });
    const changes = await changesIn(store);
    const all = [...changes, ...busy(changes, 900)];
    expect((await aggregator.process(all)).counters.splits).toBe(0);
    expect(await shards()).toHaveLength(1);
  });

  test("usage of a sharded bucket is counted once per change, and acquires across shards once", async () => {
    const { time, store, repo, aggregator, use, shards, total } = await world(["rpm:1000"]);
    await use({ rpm: 100 });
    time.nowMs += 10_000;
    const before = await changesIn(store);
    await aggregator.process([...before, ...busy(before, 900)]);
    expect(await shards()).toHaveLength(2);
    time.nowMs += 10_000;
    // More than a half holds: both shards give a part.
    await use({ rpm: 900 });
    const lease = await use({ rpm: 20 });
    await lease.rollback();
    await aggregator.process((await changesIn(store)).slice(before.length));
    const items = await shards();
    expect(items.filter(({ b_rpm_tc }) => (b_rpm_tc as number) > 0)).toHaveLength(2);
    const { snapshots } = await repo.usage.snapshots({ entityId: "key-1", window: "daily" });
    expect(snapshots).toMatchObject([
      { counters: { rpm: total(items, "b_rpm_tc") / 1000 }, totalEvents: 3 },
    ]);
    expect(snapshots[0]?.counters.rpm).toBe(1000);
  });
});

test("an acquire that an ancestor refuses counts as none, though it consumed for a moment", async () => {
  const { store, repo, aggregator, use } = await world(["rpm:100"]);
  await repo.entities.create({ id: "org" });
  await repo.entities.create({ id: "key-1", parentId: "org", cascade: true });
  await repo.limits.setEntity("org", ["rpm:3"]);
  await use({ rpm: 2 });
  // The parent has enough by what was seen last, so both are charged at once.
  const results = await Promise.allSettled([use({ rpm: 1 }), use({ rpm: 1 }), use({ rpm: 1 })]);
  const granted = results.filter(({ status }) => status === "fulfilled").length;
  expect(granted).toBe(1);
  await aggregator.process(await changesIn(store));
  for (const entityId of ["key-1", "org"]) {
    const { snapshots } = await repo.usage.snapshots({ entityId, window: "daily" });
    expect(snapshots).toMatchObject([{ counters: { rpm: 3 }, totalEvents: 2 }]);
  }
});
