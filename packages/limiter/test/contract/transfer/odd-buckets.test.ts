/** Buckets that are not alike in all stores, and what becomes of them in a copy. */

import type { WholeBucket } from "@zae-limiter/limiter/buckets/bucket-transfer.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { copyStore } from "@zae-limiter/limiter/transfer/copy-store.ts";
import { splitInto } from "@zae-limiter/test-support/force-split.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { MovedClock } from "./filled-store.ts";
import { balancesOf } from "./same-stores.ts";

let time: MovedClock;
let items: MemoryItemStore;
let table: Repository;
let memory: Repository;

beforeEach(async () => {
  time = new MovedClock();
  const options = { clock: time.clock };
  items = new MemoryItemStore(options);
  table = await overTable(items, options);
  memory = await Repository.open("memory:", options);
});
afterEach(() => Promise.all([table.close(), memory.close()]));

const RATE = { capacityMilli: 60_000, refillMilli: 60_000, periodMs: 60_000 };

/** A bucket whose limits were consumed from at different times. */
function uneven(more: Partial<WholeBucket> = {}): WholeBucket {
  const limit = (name: string, tokensMilli: number, agoMs: number, remainder: number) => ({
    name,
    rate: { ...RATE, periodMs: 59_999 },
    level: { tokensMilli, refilledAtMs: time.nowMs - agoMs, remainder },
    consumedMilli: 5000,
  });
  return {
    entityId: "key-1",
    resource: "api",
    version: 3,
    source: "resource",
    link: { cascade: true, parentId: "team-a" },
    ttl: Math.floor(time.nowMs / 1000) + 900,
    limits: [limit("a", 100, 5000, 7), limit("b", -70_000, 31, 59_998), limit("c", 1, 0, 0)],
    ...more,
  };
}

const transferOf = (repo: Repository) => repo[INTERNALS].buckets.transfer;

test("limits with different base times share one in an item, and hold the same at every time", async () => {
  await transferOf(memory).put([uneven()]);
  const { same } = await copyStore(memory, table);
  expect(same).toBe(true);
  for (let step = 0; step < 50; step += 1) {
    expect(await balancesOf(table, ["key-1"])).toEqual(await balancesOf(memory, ["key-1"]));
    time.nowMs += 1 + step * 37;
  }
});

test("a total beyond 2^53 arrives to the last digit, in both directions", async () => {
  const consumedMilli = 9_007_199_254_740_993n;
  const [limit] = uneven().limits;
  const limits = limit === undefined ? [] : [{ ...limit, consumedMilli }];
  await transferOf(memory).put([uneven({ limits })]);
  await copyStore(memory, table);
  const back = await Repository.open("memory:", { clock: time.clock });
  await copyStore(table, back);
  const balances = await balancesOf(back, ["key-1"]);
  expect(balances["key-1 api a"]?.consumed).toBe(consumedMilli);
  await back.close();
});

test("a quota that was removed moves with its balance, until its period is over", async () => {
  const quota = Limit.quota("units", 40, { every: "day", carry: "rest", carryMax: 5 }).rate;
  const endMs = time.nowMs + 1000;
  const period = { tokensMilli: 7000, endMs, grantedMilli: 46_000, leftMilli: 3000 };
  const paused = [{ name: "units", rate: quota, period }];
  await transferOf(memory).put([uneven({ paused })]);
  expect((await copyStore(memory, table)).same).toBe(true);
  const [arrived] = await transferOf(table).some([uneven()], time.nowMs);
  expect(arrived?.paused).toMatchObject([{ name: "units", period }]);
  const back = await Repository.open("memory:", { clock: time.clock });
  expect((await copyStore(table, back)).same).toBe(true);
  const at = async (ms: number) => (await transferOf(back).some([uneven()], ms))[0]?.paused;
  expect(await at(time.nowMs)).toMatchObject([{ name: "units", period }]);
  expect(await at(endMs)).toEqual([]);
  await back.close();
});

test("shards join the balances of a quota that was removed", async () => {
  const quota = Limit.quota("units", 40, { every: "day" }).rate;
  const endMs = time.nowMs + 1000;
  const period = { tokensMilli: 7000, endMs, grantedMilli: 40_000, leftMilli: 0 };
  await transferOf(table).put([uneven({ paused: [{ name: "units", rate: quota, period }] })]);
  await splitInto(items, { namespaceId: table.namespaceId, ...uneven() }, 4, time.nowMs);
  const [joined] = await transferOf(table).some([uneven()], time.nowMs);
  expect(joined?.paused).toMatchObject([{ name: "units", period }]);
});

test("a bucket whose time to live is over stays behind, like a record", async () => {
  const ttl = Math.floor(time.nowMs / 1000) - 1;
  await transferOf(memory).put([uneven({ ttl })]);
  const { namespaces, same } = await copyStore(memory, table);
  expect(same).toBe(true);
  expect(namespaces[0]?.counts.buckets).toBe(0);
});

test("a limit with a schedule, which only Python enforces, stays behind and is counted", async () => {
  await transferOf(table).put([uneven()]);
  const key = bucketKey(table.namespaceId, "key-1", "api", 0);
  const night = { tk: 5000, cp: 9000, ra: 9000, rp: 60_000, tc: 4000, sched: "22-6" };
  const set = Object.fromEntries(
    Object.entries(night).map(([suffix, value]) => [`b_night_${suffix}`, value]),
  );
  await items.update(key, { set });
  const { namespaces, same } = await copyStore(table, memory);
  expect(same).toBe(true);
  expect(namespaces[0]).toMatchObject({ leftBehind: 1, counts: { buckets: 1 } });
  const names = (await memory.buckets.list("key-1")).map(({ limitName }) => limitName);
  expect(names.sort()).toEqual(["a", "b", "c"]);
});

test("stamps of the Python library move from table to table, and are not kept elsewhere", async () => {
  await transferOf(table).put([uneven({ stamps: { disabled: true, pgen: 4 } })]);
  const other = await overTable(new MemoryItemStore({ clock: time.clock }), { clock: time.clock });
  await copyStore(table, other);
  const [arrived] = await transferOf(other).some([uneven()], time.nowMs);
  expect(arrived?.stamps).toEqual({ disabled: true, pgen: 4 });
  await copyStore(other, memory);
  expect(await balancesOf(memory, ["key-1"])).toEqual(await balancesOf(table, ["key-1"]));
  await other.close();
});
