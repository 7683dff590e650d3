/** A table that is slow, refuses a part of what it is asked, or is closed while it is used. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import { ITEM_TABLE, type ItemTable } from "@zae-limiter/limiter/storage/item-table.ts";
import { expect, test } from "vitest";

const OWN_STORE = new URL("../../../../examples/own-store/map-table.js", import.meta.url).href;
const { MapTable } = (await import(/* @vite-ignore */ OWN_STORE)) as {
  MapTable: new () => ItemTable;
};

/** The methods of a table, to replace some of them. */
function methodsOf(table: ItemTable): ItemTable {
  return {
    [ITEM_TABLE]: true,
    read: table.read.bind(table),
    commit: table.commit.bind(table),
    page: table.page.bind(table),
    log: table.log.bind(table),
    close: table.close.bind(table),
  };
}

const REQUEST = { entityId: "key-1", resource: "api", consume: { rpd: 1 } };

test("an error of a sweep does not reach the acquire that was granted before it", async () => {
  const table = methodsOf(new MapTable());
  const pages: string[] = [];
  const refusing: ItemTable = {
    ...table,
    page: async (range, options) => {
      pages.push(range.partition);
      if (range.partition.endsWith("#EXPIRING")) throw new Error("no right to read the index");
      return table.page(range, options);
    },
  };
  const limiter = new RateLimiter(await Repository.over(refusing));
  await limiter.repository.limits.setSystem(["rpd:1000/day"]);
  for (let number = 0; number < 200; number += 1) await limiter.acquire(REQUEST);
  expect(pages.some((partition) => partition.endsWith("#EXPIRING"))).toBe(true);
  const { entityId, resource } = REQUEST;
  expect(await limiter.available({ entityId, resource })).toEqual({ rpd: 800 });
  await limiter.close();
});

test("buckets of many resources are listed and removed with a few requests each", async () => {
  const calls: StoreCall[] = [];
  const repo = await Repository.over(new MapTable(), { onCall: (call) => calls.push(call) });
  const limiter = new RateLimiter(repo);
  await repo.limits.setSystem(["rpd:1000/day"]);
  for (let number = 0; number < 60; number += 1) {
    await limiter.acquire({ ...REQUEST, resource: `api-${number}` });
  }
  const { buckets } = repo[INTERNALS];
  calls.splice(0);
  const listed = [];
  for await (const { resource } of buckets.listAll()) listed.push(resource);
  expect(new Set(listed).size).toBe(60);
  // For each resource: find it, a page of its rows, their cells, and the page that ends the list.
  expect(calls).toHaveLength(4 * 60 + 1);
  calls.splice(0);
  await buckets.deleteAll();
  // For 25 rows at a time: a page, their cells, and a commit.
  expect(calls).toHaveLength(3 * 3);
  for await (const { resource } of buckets.listAll()) expect(resource).toBe("none is left");
  await limiter.close();
});

test("acquires of one bucket take turns in a process, with two requests each", async () => {
  const calls: StoreCall[] = [];
  const repo = await Repository.over(new MapTable(), { onCall: (call) => calls.push(call) });
  const limiter = new RateLimiter(repo);
  await repo.limits.setSystem(["rpd:1000/day"]);
  await limiter.acquire(REQUEST);
  calls.splice(0);
  await Promise.all(Array.from({ length: 60 }, () => limiter.acquire(REQUEST)));
  expect(calls).toHaveLength(2 * 60);
  expect(calls.some(({ outcome }) => outcome === "condition")).toBe(false);
  await limiter.close();
});

test("usage of the busiest entities is kept where steps run again", async () => {
  const clock = () => 1_900_000_000_000;
  const repo = await Repository.over(new MapTable(), { clock, usage: { maxEntities: 2 } });
  const limiter = new RateLimiter(repo);
  await repo.limits.setSystem(["rpd:1000/day"]);
  for (let number = 0; number < 8; number += 1) {
    const request = { ...REQUEST, entityId: `key-${number}` };
    for (let times = 0; times <= number; times += 1) await limiter.acquire(request);
  }
  const { total } = await repo.usage.summary({ resource: "api" });
  expect(total).toEqual({ rpd: 36 });
  const busy = await repo.usage.summary({ entityId: "key-7" });
  expect(busy.total).toEqual({ rpd: 8 });
  const { snapshots } = await repo.usage.snapshots({ resource: "api", window: "hourly" });
  const entities = new Set(snapshots.map(({ entityId }) => entityId));
  expect([...entities].sort()).toEqual(["_other_", "key-6", "key-7"]);
  await limiter.close();
});

test("closing waits for the requests under way, and feeds end without an error", async () => {
  const table = methodsOf(new MapTable());
  let underWay = 0;
  let atClose = -1;
  const counted =
    <Rest extends unknown[], Answer>(call: (...rest: Rest) => Promise<Answer>) =>
    async (...rest: Rest): Promise<Answer> => {
      underWay += 1;
      await new Promise((resolve) => setImmediate(resolve));
      try {
        return await call(...rest);
      } finally {
        underWay -= 1;
      }
    };
  const slow: ItemTable = {
    [ITEM_TABLE]: true,
    read: counted(table.read),
    commit: counted(table.commit),
    page: counted(table.page),
    log: counted(table.log),
    close: async () => {
      atClose = underWay;
    },
  };
  const repo = await Repository.over(slow);
  const feed = repo[INTERNALS].records.store.changes({ from: "oldest" });
  const read = (async () => {
    const seen = [];
    for await (const { position } of feed) seen.push(position);
    return seen;
  })();
  const limiter = new RateLimiter(repo);
  await repo.limits.setSystem(["rpd:1000/day"]);
  const granted = limiter.acquire(REQUEST).catch((error: unknown) => error);
  await new Promise((resolve) => setImmediate(resolve));
  await limiter.close();
  expect(atClose).toBe(0);
  expect((await read).length).toBeGreaterThan(0);
  await granted;
});
