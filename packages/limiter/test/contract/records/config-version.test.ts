/**
 * The counter of changes of a namespace's limits, and the registry of entities with limits, exact.
 */

import { configVersion } from "@zae-limiter/limiter/records/config/config-change.ts";
import { entityConfigRegistryKey, systemConfigKey } from "@zae-limiter/limiter/records/keys.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { describeStores, type TestStore } from "@zae-limiter/test-support/stores.ts";
import { describe, expect, it } from "vitest";
import { Gate } from "./gate.ts";

function read(store: TestStore, repo: Repository) {
  const at = (key: { PK: string; SK: string }) => store.items.get(key, { consistent: true });
  return {
    version: async () => configVersion(await at(systemConfigKey(repo.namespaceId))),
    registry: async () => {
      const item = (await at(entityConfigRegistryKey(repo.namespaceId))) ?? {};
      const counts = Object.entries(item).filter(([, value]) => typeof value === "number");
      return Object.fromEntries(counts);
    },
  };
}

describeStores("the version of a namespace's limits", (store) => {
  it("the version of a namespace's limits counts every change, and only changes", async () => {
    const repo = await store.open();
    const { limits, entities } = repo;
    const { version } = read(store, repo);
    const steps: [by: number, step: () => Promise<unknown>][] = [
      [1, () => limits.setSystem(["rpm:1"])],
      [0, () => limits.setSystem(["rpm:1"])],
      [0, () => limits.ensureSystem(["rpm:2"])],
      [1, () => limits.setResource("gpt-4", ["rpm:1"])],
      [1, () => limits.setResource("gpt-4", ["rpm:2"])],
      [0, () => limits.setResource("gpt-4", ["rpm:2"])],
      [0, () => limits.ensureResource("gpt-4", ["rpm:3"])],
      [1, () => limits.ensureResource("gpt-5", ["rpm:3"])],
      [1, () => limits.deleteResource("gpt-5")],
      [1, () => limits.setEntity("user-1", ["rpm:1"])],
      [0, () => limits.setEntity("user-1", ["rpm:1"])],
      [0, () => limits.ensureEntity("user-1", ["rpm:3"])],
      [1, () => limits.setEntity("user-1", ["rpm:1"], { resource: "gpt-4" })],
      [1, () => limits.setEntity("user-1", ["rpm:2"], { resource: "gpt-4" })],
      [1, () => limits.setEntity("user-2", ["rpm:2"], { resource: "gpt-4" })],
      [0, () => limits.resolve("user-1", "gpt-4")],
      [0, () => entities.create({ id: "user-1" })],
      [1, () => limits.deleteEntity("user-2", { resource: "gpt-4" })],
      [0, () => limits.deleteEntity("user-2", { resource: "gpt-4" })],
      [1, () => entities.delete("user-1")],
      [0, () => entities.delete("user-1")],
      [1, () => limits.deleteResource("gpt-4")],
      [0, () => limits.deleteResource("gpt-4")],
      [1, () => limits.deleteSystem()],
      [0, () => limits.deleteSystem()],
      [1, () => limits.setSystem(["rpm:1"])],
    ];
    let expected = 0;
    for (const [index, [by, step]] of steps.entries()) {
      await step();
      expected += by;
      expect(await version(), `after step ${index}`).toBe(expected);
    }
  });

  it("the version of a namespace's limits is what resolved limits are dated by", async () => {
    const repo = await store.open();
    await repo.limits.setSystem(["rpm:1"]);
    await repo.limits.setResource("gpt-4", ["rpm:1"]);
    expect((await repo.limits.resolve("user-1", "gpt-4"))?.version).toBe(2);
    await repo.limits.setEntity("user-1", ["rpm:2"]);
    const after = (await repo.limits.resolve("user-1", "gpt-4"))?.version;
    // The new limits are dated by a version that is not older than what they replace.
    expect(after).toBeGreaterThanOrEqual(2);
    repo.limits.invalidateCache();
    expect((await repo.limits.resolve("user-1", "gpt-4"))?.version).toBe(3);
  });

  it("the version of limits is that of the oldest level that was read for them", async () => {
    const repo = await store.open();
    await repo.limits.setEntity("user-1", ["rpm:1"]);
    const other = await store.open({ namespace: repo.namespaceName });
    other.limits.invalidateCache();
    // The second call reads one level itself, as of no known version, and shares the others.
    const [first, second] = await Promise.all([
      other.limits.resolve("user-1", "gpt-4"),
      other.limits.resolve("user-1", "gpt-5"),
    ]);
    expect(first?.version).toBe(1);
    expect(second).toMatchObject({ source: "entity_default", version: 0 });
  });

  it("twenty changes at once by two processes lose no version and no reference count", async () => {
    const repo = await store.open();
    const other = await store.open({ namespace: repo.namespaceName });
    const { version, registry } = read(store, repo);
    const ids = Array.from({ length: 20 }, (_, number) => `user-${number}`);
    const set = (id: string, index: number, limit = "rpm:1") =>
      (index % 2 === 0 ? repo : other).limits.setEntity(id, [limit], { resource: "gpt-4" });
    await Promise.all(ids.map((id, index) => set(id, index)));
    expect(await version()).toBe(20);
    expect(await registry()).toEqual({ "gpt-4": 20 });
    const { entityIds } = await repo.limits.listEntities("gpt-4");
    expect(entityIds).toEqual([...ids].sort());
    // Both processes overwrite, delete and delete again, all at once.
    await Promise.all([
      ...ids.slice(0, 5).map((id) => repo.limits.deleteEntity(id, { resource: "gpt-4" })),
      ...ids.slice(0, 5).map((id) => other.limits.deleteEntity(id, { resource: "gpt-4" })),
      ...ids.slice(5, 10).map((id, index) => set(id, index, "rpm:2")),
    ]);
    expect(await version()).toBe(30);
    expect(await registry()).toEqual({ "gpt-4": 15 });
  });

  it("reference counts stay right when one entity's limits come and go at once", async () => {
    const repo = await store.open();
    const other = await store.open({ namespace: repo.namespaceName });
    const { registry } = read(store, repo);
    const target = { resource: "gpt-4" };
    await Promise.all([
      repo.limits.setEntity("user-1", ["rpm:1"], target),
      other.limits.setEntity("user-1", ["rpm:2"], target),
      repo.limits.deleteEntity("user-1", target),
      other.limits.deleteEntity("user-1", target),
      other.limits.setEntity("user-1", ["rpm:3"], target),
    ]);
    const present = (await repo.limits.getEntity("user-1", target)).length;
    expect(await registry()).toEqual(present === 0 ? {} : { "gpt-4": 1 });
    await repo.limits.deleteEntity("user-1", target);
    expect(await registry()).toEqual({});
    expect(await repo.limits.listEntityResources()).toEqual([]);
  });
});

describe("many changes at once by one process", () => {
  it("many changes at once by one process all succeed", async () => {
    const items = new MemoryItemStore();
    const repo = await Repository.over(items);
    const scoped = await repo.namespace("default");
    const count = 300;
    const set = (_: unknown, number: number) =>
      (number % 2 === 0 ? repo : scoped).limits.setEntity(`user-${number}`, ["rpm:1"]);
    await Promise.all(Array.from({ length: count }, set));
    const system = await items.get(systemConfigKey(repo.namespaceId));
    expect(configVersion(system)).toBe(count);
    const registry = await items.get(entityConfigRegistryKey(repo.namespaceId));
    expect(registry?._default_).toBe(count);
  });

  it("many changes at once by one process leave alone what others count meanwhile", async () => {
    const gate = new Gate();
    const repo = await Repository.over(gate.store);
    const key = entityConfigRegistryKey(repo.namespaceId);
    await repo.limits.setEntity("user-1", ["rpm:1"]);
    const held = gate.holdNext();
    const deletion = repo.limits.deleteEntity("user-1");
    await held.reached;
    // The Python library counts without a version.
    await gate.store.update(key, { add: { _default_: 1 } });
    held.release();
    await deletion;
    expect((await gate.store.get(key))?._default_).toBe(1);
  });

  it("many changes at once by one process go on after one that failed", async () => {
    const repo = await Repository.over(new MemoryItemStore());
    const outcomes = await Promise.allSettled([
      repo.limits.setEntity("user-1", ["rpm:1"]),
      repo.limits.setEntity("user-2", ["rpm:1"], { principal: "#" }),
      repo.limits.setEntity("user-3", ["rpm:1"]),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect((await repo.limits.listEntities("_default_")).entityIds).toEqual(["user-1", "user-3"]);
  });
});
