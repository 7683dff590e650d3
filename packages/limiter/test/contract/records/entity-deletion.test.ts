/** B18 B29: deleting an entity removes all that is its own, and nothing else. */

import { encodeBucket } from "@zae-limiter/limiter/records/bucket-item.ts";
import {
  auditPartition,
  entityConfigKey,
  entityConfigPartition,
  entityConfigRegistryKey,
  entityPartition,
  inNamespace,
} from "@zae-limiter/limiter/records/keys.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore, Query } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { describe, expect, it } from "vitest";

function usageItem(namespaceId: string, entityId: string, number: number): Item {
  const PK = entityPartition(namespaceId, entityId);
  return {
    PK,
    SK: `#USAGE#gpt-4#hourly#${1000 + number}`,
    ...inNamespace(namespaceId, PK),
    entity_id: entityId,
    resource: "gpt-4",
    // Large, so that a few hundred are more than DynamoDB hands out at once.
    padding: "x".repeat(6000),
  };
}

function configItem(namespaceId: string, entityId: string, resource: string): Item {
  const key = entityConfigKey(namespaceId, entityId, resource);
  return {
    ...key,
    ...inNamespace(namespaceId, key.PK),
    GSI3PK: entityConfigPartition(namespaceId, resource),
    GSI3SK: entityId,
    entity_id: entityId,
    resource,
    config_version: 1,
    l_rpm_cp: 1,
    l_rpm_ra: 1,
    l_rpm_rp: 60,
  };
}

function bucketItem(namespaceId: string, entityId: string, shard: number): Item {
  return encodeBucket(namespaceId, {
    entityId,
    resource: "gpt-4",
    shard,
    shardCount: 64,
    refilledAtMs: Date.now(),
    cascade: false,
    parentId: undefined,
    ttl: undefined,
    configVersion: 1,
    configSource: "system",
    limits: new Map(),
    writes: undefined,
    meterMs: undefined,
  });
}

describeStores("the deletion of an entity", (store) => {
  it("the deletion of an entity removes more usage than one answer holds, and says how much", async () => {
    const repo = await store.open();
    const { namespaceId } = repo;
    await repo.entities.create({ id: "user-1" });
    await repo.entities.create({ id: "user-10" });
    const usage = Array.from({ length: 210 }, (_, number) => number);
    await store.items.writeMany({
      puts: [
        ...usage.map((number) => usageItem(namespaceId, "user-1", number)),
        usageItem(namespaceId, "user-10", 0),
      ],
    });
    await repo.entities.delete("user-1", { principal: "ops" });
    expect(await store.itemsOf(entityPartition(namespaceId, "user-1"))).toEqual([]);
    expect(await store.itemsOf(entityPartition(namespaceId, "user-10"))).toHaveLength(2);
    const [event] = await repo.audit.list("user-1");
    expect(event).toMatchObject({
      action: "entity_deleted",
      principal: "ops",
      details: { records_deleted: 211 },
    });
  });

  it("the deletion of an entity removes limits with their counts, more than fit into one transaction", async () => {
    const repo = await store.open();
    const { namespaceId } = repo;
    const resources = Array.from({ length: 110 }, (_, number) => `model-${number}`);
    const registryKey = entityConfigRegistryKey(namespaceId);
    await repo.limits.setEntity("user-2", ["rpm:5"], { resource: "model-7" });
    await store.items.writeMany({
      puts: resources.map((resource) => configItem(namespaceId, "user-1", resource)),
    });
    await store.items.update(registryKey, {
      add: Object.fromEntries(resources.map((resource) => [resource, 1])),
    });
    await repo.limits.resolve("user-1", "model-9");
    await repo.entities.delete("user-1");
    expect(await store.itemsOf(entityPartition(namespaceId, "user-1"))).toEqual([]);
    expect(await repo.limits.listEntityResources()).toEqual(["model-7"]);
    const registry = await store.items.get(registryKey, { consistent: true });
    expect(Object.entries(registry ?? {}).filter(([name]) => name.startsWith("model-"))).toEqual([
      ["model-7", 1],
    ]);
    expect((await repo.limits.listEntities("model-7")).entityIds).toEqual(["user-2"]);
    expect(await repo.limits.resolve("user-1", "model-9")).toBeUndefined();
    expect((await repo.audit.list("user-1"))[0]?.details).toEqual({ records_deleted: 110 });
  });

  // Embedded stores keep buckets in a table of their own, not as items.
  const itWithBucketItems = store.embedded ? undefined : it;
  itWithBucketItems?.(
    "the deletion of an entity removes the items of all shards of its buckets",
    async () => {
      const repo = await store.open();
      const { namespaceId } = repo;
      const shards = Array.from({ length: 60 }, (_, shard) => shard);
      await store.items.writeMany({
        puts: [
          ...shards.map((shard) => bucketItem(namespaceId, "user-1", shard)),
          bucketItem(namespaceId, "user-10", 0),
        ],
      });
      await repo.entities.delete("user-1");
      expect(await store.itemsOf(entityPartition(namespaceId, "user-1"), "GSI3")).toEqual([]);
      expect(await store.itemsOf(entityPartition(namespaceId, "user-10"), "GSI3")).toHaveLength(1);
      expect((await repo.audit.list("user-1"))[0]?.details).toEqual({ records_deleted: 60 });
    },
  );

  it("the deletion of an entity writes nothing and no event when there is nothing to delete (A190)", async () => {
    const repo = await store.open();
    await repo.entities.delete("user-1");
    expect(await repo.audit.list("user-1")).toEqual([]);
    await repo.entities.create({ id: "user-1" });
    await repo.entities.delete("user-1");
    await repo.entities.delete("user-1");
    const events = await repo.audit.list("user-1");
    expect(events.map(({ action }) => action)).toEqual(["entity_deleted", "entity_created"]);
  });

  it("the deletion of an entity removes the limits of an entity that was never created", async () => {
    const repo = await store.open();
    await repo.limits.setEntity("user-1", ["rpm:1"]);
    await repo.entities.delete("user-1");
    expect(await repo.limits.getEntity("user-1")).toEqual([]);
    expect(await repo.limits.listEntityResources()).toEqual([]);
    const events = await repo.audit.list("user-1");
    expect(events.map(({ action }) => action)).toEqual(["entity_deleted", "limits_set"]);
  });

  it("the deletion of an entity happens once when two delete at once, and the audit log stays", async () => {
    const repo = await store.open();
    const other = await store.open({ namespace: repo.namespaceName });
    await repo.entities.create({ id: "user-1" });
    await Promise.all([repo.entities.delete("user-1"), other.entities.delete("user-1")]);
    const events = await repo.audit.list("user-1");
    expect(events.map(({ action }) => action)).toEqual(["entity_deleted", "entity_created"]);
    expect(await store.itemsOf(auditPartition(repo.namespaceId, "user-1"))).toHaveLength(2);
  });
});

/** A memory in which something happens just before the query that `isNext` waits for. */
function interrupted(
  items: MemoryItemStore,
  isNext: (query: Query) => boolean,
  interruption: () => Promise<void>,
): ItemStore {
  let happened = false;
  return new Proxy<ItemStore>(items, {
    get: (_, operation: keyof ItemStore) => {
      if (operation !== "query") return items[operation].bind(items) as unknown;
      return async function* (query: Query) {
        if (!happened && isNext(query)) {
          happened = true;
          await interruption();
        }
        yield* items.query(query);
      };
    },
  });
}

describe("the deletion of an entity that is disturbed", () => {
  it("a disturbed deletion keeps the counts right when another client sets limits meanwhile", async () => {
    const items = new MemoryItemStore();
    const other = await Repository.over(items);
    // The limits come after those of the entity were deleted, and before its usage is.
    const store = interrupted(
      items,
      ({ index, sort }) => index === undefined && (sort === undefined || !isOfConfigs(sort)),
      () => other.limits.setEntity("user-1", ["rpm:2"], { resource: "gpt-4" }),
    );
    const repo = await Repository.over(store);
    await repo.entities.create({ id: "user-1" });
    await repo.limits.setEntity("user-1", ["rpm:1"]);
    await repo.entities.delete("user-1");
    // They are as if set after the deletion: there, and counted.
    expect(await repo.limits.getEntity("user-1", { resource: "gpt-4" })).toHaveLength(1);
    expect(await repo.limits.listEntityResources()).toEqual(["gpt-4"]);
    await repo.limits.deleteEntity("user-1", { resource: "gpt-4" });
    expect(await repo.limits.listEntityResources()).toEqual([]);
  });

  it("the deletion of an entity that is disturbed can be repeated after it was cut off", async () => {
    const items = new MemoryItemStore();
    const store = interrupted(
      items,
      ({ index, sort }) => index === undefined && (sort === undefined || !isOfConfigs(sort)),
      () => Promise.reject(new Error("cut off")),
    );
    const repo = await Repository.over(store);
    const { namespaceId } = repo;
    await repo.entities.create({ id: "user-1" });
    await repo.limits.setEntity("user-1", ["rpm:1"]);
    await items.put(usageItem(namespaceId, "user-1", 1));
    await expect(repo.entities.delete("user-1")).rejects.toThrow("cut off");
    expect(await repo.entities.get("user-1")).toBeDefined();
    await repo.entities.delete("user-1");
    const left: Item[] = [];
    for await (const item of items.query({ partition: entityPartition(namespaceId, "user-1") })) {
      left.push(item);
    }
    expect(left).toEqual([]);
    expect(await repo.limits.listEntityResources()).toEqual([]);
    expect((await repo.audit.list("user-1"))[0]?.action).toBe("entity_deleted");
  });
});

function isOfConfigs(sort: NonNullable<Query["sort"]>): boolean {
  return "beginsWith" in sort && sort.beginsWith === "#CONFIG#";
}
