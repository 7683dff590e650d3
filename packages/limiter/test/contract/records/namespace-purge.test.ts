/** The purge of a namespace leaves nothing behind, and touches nothing else. */

import { readFileSync } from "node:fs";
import { Entity } from "@zae-limiter/limiter/domain/entity.ts";
import { NamespaceStateError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { encodeEntity } from "@zae-limiter/limiter/records/entities/entity-item.ts";
import {
  bucketKey,
  entityPartition,
  inNamespace,
  namespaceIdKey,
  resourceConfigKey,
  resourcePartition,
  systemPartition,
} from "@zae-limiter/limiter/records/keys.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { decodeItem } from "@zae-limiter/limiter/storage/attribute-value.ts";
import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { describeStores, newName } from "@zae-limiter/test-support/stores.ts";
import { describe, expect, it } from "vitest";

/** Items as the declarative limits of the Python library write them, under another namespace. */
function provisionerItems(namespaceId: string): Item[] {
  const file = new URL("../../../../../test/fixtures/golden/30-provisioner.json", import.meta.url);
  const text = readFileSync(file, "utf8").replaceAll("LmC1y6UwDVo", namespaceId);
  const { items } = JSON.parse(text) as { items: Record<string, unknown>[] };
  return items.map(decodeItem);
}

describeStores("the purge of a namespace", (store) => {
  it("the purge of a namespace removes all it holds, page by page, and tells how far it is (A201)", async () => {
    const repo = await store.open();
    const [name, otherName] = [newName(), newName()];
    const ids = await repo.namespaces.register(name, otherName);
    const id = ids[name] as string;
    const [doomed, other] = [await repo.namespace(name), await repo.namespace(otherName)];
    for (const scoped of [doomed, other]) {
      await scoped.limits.setSystem(["rpm:1"]);
      await scoped.limits.setResource("gpt-4", ["rpm:1"]);
      await scoped.limits.setEntity("key-1", ["rpm:1"]);
      await scoped.entities.create({ id: "key-1" });
    }
    const many = Array.from({ length: 560 }, (_, number) => `user-${number}`);
    const bucket = bucketKey(id, "key-1", "gpt-4", 0);
    await store.items.writeMany({
      puts: [
        ...many.map((entityId) => encodeEntity(id, new Entity({ id: entityId }))),
        { ...bucket, ...inNamespace(id, "BUCKET#key-1#gpt-4#0") },
      ],
    });
    const kept = await store.itemsOf(other.namespaceId, "GSI4");
    const total = (await store.itemsOf(id, "GSI4")).length;
    await repo.namespaces.delete(name);
    const told: number[] = [];
    await repo.namespaces.purge(id, { onProgress: ({ deleted }) => told.push(deleted) });
    expect(await store.itemsOf(id, "GSI4")).toEqual([]);
    expect(await store.itemsOf(systemPartition(id))).toEqual([]);
    expect(await store.items.get(bucket, { consistent: true })).toBeUndefined();
    expect(told).toEqual([...told].sort((a, b) => a - b));
    expect(told.length).toBeGreaterThan(1);
    expect(told.at(-1)).toBe(total);
    expect(await store.items.get(namespaceIdKey(id), { consistent: true })).toBeUndefined();
    expect(await store.itemsOf(other.namespaceId, "GSI4")).toEqual(kept);
    expect((await other.limits.getSystem()).limits).toHaveLength(1);
    // There is no such namespace any more, which is what a purge wants.
    await repo.namespaces.purge(id);
  });

  it("the purge of a namespace refuses a namespace that is in use, and does not know others (A201)", async () => {
    const repo = await store.open();
    await repo.limits.setSystem(["rpm:1"]);
    const refused = repo.namespaces.purge(repo.namespaceId);
    await expect(refused).rejects.toBeInstanceOf(NamespaceStateError);
    await expect(refused).rejects.toMatchObject({ state: "active" });
    expect((await repo.limits.getSystem()).limits).toHaveLength(1);
    await repo.namespaces.purge("AAAAAAAAAAA");
  });

  it("the purge of a namespace also removes items without the keys of the namespace's index (B24)", async () => {
    const repo = await store.open();
    const name = newName();
    const id = (await repo.namespaces.register(name))[name] as string;
    await store.items.writeMany({ puts: provisionerItems(id) });
    const partitions = [
      systemPartition(id),
      resourcePartition(id, "gpt-4"),
      entityPartition(id, "user-premium"),
    ];
    const left = async () =>
      (await Promise.all(partitions.map((partition) => store.itemsOf(partition)))).map(
        (items) => items.length,
      );
    expect(await left()).toEqual([2, 1, 1]);
    await repo.namespaces.delete(name);
    await repo.namespaces.purge(id);
    expect(await left()).toEqual([0, 0, 0]);
  });

  it("the purge of a namespace also removes such items when only a registry leads to them (B24)", async () => {
    const repo = await store.open();
    const name = newName();
    const id = (await repo.namespaces.register(name))[name] as string;
    await (await repo.namespace(name)).limits.setResource("gpt-4", ["rpm:1"]);
    const key = resourceConfigKey(id, "gpt-4");
    await store.items.update(key, { remove: ["GSI4SK"] });
    await repo.namespaces.delete(name);
    await repo.namespaces.purge(id);
    expect(await store.items.get(key, { consistent: true })).toBeUndefined();
  });

  it("the purge of a namespace goes on where it was cut off", async () => {
    const repo = await store.open();
    const name = newName();
    const id = (await repo.namespaces.register(name))[name] as string;
    const scoped = await repo.namespace(name);
    await scoped.limits.setEntity("key-1", ["rpm:1"]);
    await repo.namespaces.delete(name);
    const cutOff = repo.namespaces.purge(id, {
      onProgress: () => {
        throw new Error("cut off");
      },
    });
    await expect(cutOff).rejects.toThrow("cut off");
    const record = await store.items.get(namespaceIdKey(id), { consistent: true });
    expect(record?.status).toBe("purging");
    const left = await repo.namespaces.purging();
    expect(left.map(({ namespaceId }) => namespaceId)).toContain(id);
    await repo.namespaces.purge(id);
    expect(await store.itemsOf(id, "GSI4")).toEqual([]);
    expect(await store.items.get(namespaceIdKey(id), { consistent: true })).toBeUndefined();
  });

  it("a purge and a recovery at the same time: one wins, and nothing is half done (B32)", async () => {
    const repo = await store.open();
    const other = await store.open({ namespace: repo.namespaceName });
    const name = newName();
    const id = (await repo.namespaces.register(name))[name] as string;
    await (await repo.namespace(name)).limits.setSystem(["rpm:1"]);
    await repo.namespaces.delete(name);
    const [purge, recovery] = await Promise.allSettled([
      repo.namespaces.purge(id),
      other.namespaces.recover(id),
    ]);
    const items = (await store.itemsOf(id, "GSI4")).length;
    const found = await repo.namespaces.get(name);
    if (recovery.status === "fulfilled") {
      expect(purge.status).toBe("rejected");
      expect(found?.namespaceId).toBe(id);
      expect(items).toBeGreaterThan(0);
    } else {
      expect(purge.status).toBe("fulfilled");
      expect(found).toBeUndefined();
      expect(items).toBe(0);
    }
  });
});

describe("a purge that something is written into", () => {
  const bucketOf = (id: string): Item => ({
    ...bucketKey(id, "key-1", "gpt-4", 0),
    ...inNamespace(id, "BUCKET#key-1#gpt-4#0"),
  });

  async function purging(items: MemoryItemStore, lateWrites: number) {
    const repo = await Repository.over(items);
    const id = (await repo.namespaces.register("tenant-a"))["tenant-a"] as string;
    await (await repo.namespace("tenant-a")).limits.setSystem(["rpm:1"]);
    await repo.namespaces.delete("tenant-a");
    let late = 0;
    const purge = repo.namespaces.purge(id, {
      onProgress: () => {
        late += 1;
        if (late <= lateWrites) void items.put(bucketOf(id));
      },
    });
    return { repo, id, purge };
  }

  it("a purge that something is written into looks again until nothing is left", async () => {
    const items = new MemoryItemStore();
    const { id, purge } = await purging(items, 3);
    await purge;
    expect(await items.get(bucketOf(id))).toBeUndefined();
    expect(await items.get(namespaceIdKey(id))).toBeUndefined();
  });

  it("a purge that never ends is an error, and can be repeated", async () => {
    const items = new MemoryItemStore();
    const { id, purge, repo } = await purging(items, 100);
    await expect(purge).rejects.toBeInstanceOf(NamespaceStateError);
    await expect(purge).rejects.toThrow(/still written to/);
    await repo.namespaces.purge(id);
    expect(await items.get(bucketOf(id))).toBeUndefined();
  });

  it("a purge can be repeated after its end, for what a client wrote since", async () => {
    const items = new MemoryItemStore();
    const { id, purge, repo } = await purging(items, 0);
    await purge;
    await items.put(bucketOf(id));
    const told: number[] = [];
    await repo.namespaces.purge(id, { onProgress: ({ deleted }) => told.push(deleted) });
    expect(told).toEqual([1]);
    expect(await items.get(bucketOf(id))).toBeUndefined();
  });
});

describe("two purges at once", () => {
  it("two purges at once both succeed in either order", async () => {
    const items = new MemoryItemStore();
    const first = await Repository.over(items);
    const id = (await first.namespaces.register("tenant-a"))["tenant-a"] as string;
    await first.namespaces.delete("tenant-a");
    // The other one is done when the second has just read that there is something to purge.
    const store = new Proxy<ItemStore>(items, {
      get: (_, operation: keyof ItemStore) => {
        if (operation !== "get") return items[operation].bind(items) as unknown;
        return async (key: Key) => {
          const item = await items.get(key);
          if (key.SK === namespaceIdKey(id).SK) await first.namespaces.purge(id);
          return item;
        };
      },
    });
    const second = await Repository.over(store);
    await second.namespaces.purge(id);
    expect(await items.get(namespaceIdKey(id))).toBeUndefined();
  });
});
