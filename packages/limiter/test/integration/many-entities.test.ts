/** A hundred thousand entities with limits of their own: nothing may cost work for each of them. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Entity } from "@zae-limiter/limiter/domain/entity.ts";
import { encodeEntity } from "@zae-limiter/limiter/records/entities/entity-item.ts";
import {
  entityConfigKey,
  entityConfigPartition,
  entityConfigRegistryKey,
  inNamespace,
  systemConfigKey,
} from "@zae-limiter/limiter/records/keys.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { openSqlite } from "@zae-limiter/limiter/storage/sqlite/connection.ts";
import { CallCounter } from "@zae-limiter/test-support/stores.ts";
import { afterAll, beforeAll, expect, it } from "vitest";

const COUNT = 100_000;
const SEEDED_AT_ONCE = 5000;
const PAGE = 1000;

const directory = mkdtempSync(join(tmpdir(), "zae-limiter-"));
const url = `sqlite:${join(directory, "limits.db")}`;

/** Sorts like its number. */
function idOf(number: number): string {
  return `user-${String(number).padStart(6, "0")}`;
}

function configOf(namespaceId: string, entityId: string): Item {
  const key = entityConfigKey(namespaceId, entityId, "gpt-4");
  return {
    ...key,
    ...inNamespace(namespaceId, key.PK),
    GSI3PK: entityConfigPartition(namespaceId, "gpt-4"),
    GSI3SK: entityId,
    entity_id: entityId,
    resource: "gpt-4",
    config_version: 1,
    l_rpm_cp: 100,
    l_rpm_ra: 100,
    l_rpm_rp: 60,
  };
}

/** Writes the items that `COUNT` calls of `create` and `setEntity` leave, without audit. */
async function seed(items: ItemStore, namespaceId: string): Promise<void> {
  for (let first = 0; first < COUNT; first += SEEDED_AT_ONCE) {
    const ids = Array.from({ length: SEEDED_AT_ONCE }, (_, index) => idOf(first + index));
    const entities = ids.map((id) => encodeEntity(namespaceId, new Entity({ id })));
    const configs = ids.map((id) => configOf(namespaceId, id));
    await items.writeMany({ puts: [...entities, ...configs] });
  }
  const registry = entityConfigRegistryKey(namespaceId);
  const system = systemConfigKey(namespaceId);
  await items.writeMany({
    puts: [
      { ...registry, ...inNamespace(namespaceId, registry.PK), "gpt-4": COUNT },
      { ...system, ...inNamespace(namespaceId, system.PK), config_version: COUNT },
    ],
  });
}

/** Bytes in use when all garbage is gone. */
function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}

beforeAll(async () => {
  const repo = await Repository.open(url);
  const { store } = await openSqlite({ path: join(directory, "limits.db") });
  await seed(store, repo.namespaceId);
  await store.close();
  await repo.close();
}, 180_000);
afterAll(() => rmSync(directory, { recursive: true }));

/** The requests of opening one store and closing it again. */
async function opening(address: string): Promise<string[]> {
  const counter = new CallCounter();
  const repo = await Repository.open(address, { onCall: counter.onCall });
  await repo.close();
  return counter.calls.map(({ operation }) => operation);
}

it("opening takes the same requests as for a store without any", async () => {
  const empty = `sqlite:${join(directory, "empty.db")}`;
  await opening(empty);
  const requests = await opening(url);
  expect(requests).toEqual(await opening(empty));
  expect(requests.length).toBeLessThan(10);
});

it("resolving takes one request, and none when it was done before", async () => {
  const counter = new CallCounter();
  const repo = await Repository.open(url, { onCall: counter.onCall });
  const resolve = (number: number) => () => repo.limits.resolve(idOf(number), "gpt-4");
  expect(await counter.during(resolve(77_777))).toBe(1);
  expect(await counter.during(resolve(77_777))).toBe(0);
  expect(await counter.during(resolve(99_999))).toBe(1);
  expect(repo.limits.cacheStats().size).toBe(6);
  expect((await repo.limits.resolve(idOf(0), "gpt-4"))?.source).toBe("entity");
  await repo.close();
});

it("changing one takes a handful of requests, and leaves the others alone", async () => {
  const counter = new CallCounter();
  const repo = await Repository.open(url, { onCall: counter.onCall });
  const id = idOf(50_000);
  const set = () => repo.limits.setEntity(id, ["rpm:7"], { resource: "gpt-4" });
  expect(await counter.during(set)).toBeLessThan(10);
  expect((await repo.limits.resolve(id, "gpt-4"))?.limits.map(String)).toEqual(["rpm:7/min"]);
  const other = await repo.limits.resolve(idOf(50_001), "gpt-4");
  expect(other?.limits.map(String)).toEqual(["rpm:100/min"]);
  await repo.entities.create({ id: "one-more" });
  await repo.limits.setEntity("one-more", ["rpm:1"], { resource: "gpt-4" });
  expect(await counter.during(() => repo.entities.delete("one-more"))).toBeLessThan(15);
  expect(await repo.limits.listEntityResources()).toEqual(["gpt-4"]);
  await repo.close();
});

it("listing gives all of them once, in order, a page at a time and in bounded room", async () => {
  const counter = new CallCounter();
  const repo = await Repository.open(url, { onCall: counter.onCall });
  const before = heapBytes();
  let [pages, seen] = [0, 0];
  let cursor: string | undefined;
  do {
    const options = cursor === undefined ? { limit: PAGE } : { limit: PAGE, cursor };
    const calls = counter.calls.length;
    const page = await repo.limits.listEntities("gpt-4", options);
    expect(counter.calls.length - calls).toBe(1);
    expect(page.entityIds).toHaveLength(PAGE);
    for (const id of page.entityIds) {
      if (id !== idOf(seen)) throw new Error(`${id} came where ${idOf(seen)} was due`);
      seen += 1;
    }
    cursor = page.cursor;
    pages += 1;
  } while (cursor !== undefined);
  expect([pages, seen]).toEqual([COUNT / PAGE, COUNT]);
  // All the items are some thirty megabytes, and their ids alone five.
  expect(heapBytes() - before).toBeLessThan(4_000_000);
  await repo.close();
});
