/** Namespaces: from name to id, deleted and recovered, and apart from each other. */

import {
  EntityNotFoundError,
  NamespaceNotFoundError,
  NamespaceStateError,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  namespaceIdKey,
  namespaceKey,
  systemConfigKey,
} from "@zae-limiter/limiter/records/keys.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { describeStores, newName, type TestStore } from "@zae-limiter/test-support/stores.ts";
import { describe, expect, it } from "vitest";
import { Gate } from "./gate.ts";

async function records(store: TestStore, name: string, id: string) {
  return store.items.getMany([namespaceKey(name), namespaceIdKey(id)], { consistent: true });
}

/** Registers one name and returns its id. */
async function register(repo: Repository, name: string): Promise<string> {
  const ids = await repo.namespaces.register(name);
  return ids[name] as string;
}

/** The state in which a refusal found the namespace. */
async function stateOf(refused: Promise<unknown>): Promise<string> {
  const error = await refused.then(
    () => new Error("It was not refused"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof NamespaceStateError)) throw error;
  return error.state;
}

describeStores("namespaces", (store) => {
  it("namespaces lead from a name to an id and back (A200)", async () => {
    const repo = await store.open({ clock: () => Date.UTC(2030, 0, 1) });
    const name = newName();
    const id = await register(repo, name);
    expect(id).toMatch(/^[A-Za-z0-9_][A-Za-z0-9_-]{10}$/);
    const attributes = {
      GSI4PK: "_",
      GSI4SK: "_/SYSTEM#",
      namespace_id: id,
      namespace_name: name,
      status: "active",
      created_at: "2030-01-01T00:00:00Z",
    };
    expect(await records(store, name, id)).toEqual([
      { PK: "_/SYSTEM#", SK: `#NAMESPACE#${name}`, ...attributes },
      { PK: "_/SYSTEM#", SK: `#NSID#${id}`, ...attributes },
    ]);
    expect(await register(repo, name)).toBe(id);
    expect(await repo.namespaces.get(name)).toEqual({
      name,
      namespaceId: id,
      status: "active",
      createdAt: "2030-01-01T00:00:00Z",
    });
    expect(await repo.namespaces.get(newName())).toBeUndefined();
  });

  it("namespaces are registered many at once, or none when one name is wrong (A200)", async () => {
    const repo = await store.open();
    const names = [newName(), newName(), newName()];
    for (const wrong of ["_", "", "a\nb", "x".repeat(257), 5 as unknown as string]) {
      const refused = repo.namespaces.register(...names, wrong);
      await expect(refused).rejects.toBeInstanceOf(ValidationError);
    }
    const listed = await repo.namespaces.list();
    expect(listed.filter(({ name }) => names.includes(name))).toEqual([]);
    const ids = await repo.namespaces.register(...names, names[0] as string);
    expect(Object.keys(ids)).toEqual(names);
    expect(new Set(Object.values(ids)).size).toBe(3);
    expect(await repo.namespaces.register()).toEqual({});
  });

  it("namespaces get one id when two register the same name at once (A200)", async () => {
    const repo = await store.open();
    const other = await store.open({ namespace: repo.namespaceName });
    const name = newName();
    const ids = await Promise.all(
      [repo, other, repo, other, repo].map((registrar) => register(registrar, name)),
    );
    expect(new Set(ids).size).toBe(1);
    const listed = await repo.namespaces.list();
    expect(listed.filter((namespace) => namespace.name === name)).toHaveLength(1);
  });

  it("namespaces are deleted by name in one step, and their data stays (A201)", async () => {
    const repo = await store.open({ clock: () => Date.UTC(2030, 0, 1) });
    const name = newName();
    const id = await register(repo, name);
    const scoped = await repo.namespace(name);
    await scoped.limits.setSystem(["rpm:1"]);
    await repo.namespaces.delete(name);
    const [forward, reverse] = await records(store, name, id);
    expect(forward).toBeUndefined();
    expect(reverse).toMatchObject({ status: "deleted", deleted_at: "2030-01-01T00:00:00Z" });
    expect(await repo.namespaces.get(name)).toBeUndefined();
    expect((await repo.namespaces.list()).map((found) => found.name)).not.toContain(name);
    const orphans = await repo.namespaces.orphans();
    expect(orphans.filter(({ namespaceId }) => namespaceId === id)).toEqual([
      { namespaceId: id, namespace: name, deletedAt: "2030-01-01T00:00:00Z" },
    ]);
    await expect(repo.namespace(name)).rejects.toBeInstanceOf(NamespaceNotFoundError);
    // Once more is what was asked for, and the reserved name is not there for anybody.
    await repo.namespaces.delete(name);
    await repo.namespaces.delete(newName());
    await expect(repo.namespaces.delete("_")).rejects.toBeInstanceOf(ValidationError);
  });

  it("namespaces keep both records or lose none when one is not as expected (B32)", async () => {
    const repo = await store.open();
    const name = newName();
    const id = await register(repo, name);
    await store.items.delete(namespaceIdKey(id));
    expect(await stateOf(repo.namespaces.delete(name))).toBe("unregistered");
    expect((await records(store, name, id))[0]).toBeDefined();
  });

  it("namespaces are recovered by id, as they were (A201)", async () => {
    const repo = await store.open();
    const name = newName();
    const id = await register(repo, name);
    await (await repo.namespace(name)).limits.setSystem(["rpm:7"]);
    const before = await repo.namespaces.get(name);
    expect(await stateOf(repo.namespaces.recover(id))).toBe("active");
    await repo.namespaces.delete(name);
    expect(await repo.namespaces.recover(id)).toBe(name);
    expect(await repo.namespaces.get(name)).toEqual(before);
    expect((await records(store, name, id))[1]).not.toHaveProperty("deleted_at");
    const recovered = await repo.namespace(name);
    expect((await recovered.limits.getSystem()).limits.map(String)).toEqual(["rpm:7/min"]);
    expect(await stateOf(repo.namespaces.recover(id))).toBe("active");
    const unknown = repo.namespaces.recover("AAAAAAAAAAA");
    await expect(unknown).rejects.toBeInstanceOf(EntityNotFoundError);
  });

  it("namespaces are not recovered while they are purged, or when the name is taken (A201)", async () => {
    const repo = await store.open();
    const name = newName();
    const id = await register(repo, name);
    await repo.namespaces.delete(name);
    const newId = await register(repo, name);
    expect(newId).not.toBe(id);
    expect(await stateOf(repo.namespaces.recover(id))).toBe("re-registered");
    expect((await repo.namespaces.get(name))?.namespaceId).toBe(newId);
    await store.items.update(namespaceIdKey(id), { set: { status: "purging" } });
    expect(await stateOf(repo.namespaces.recover(id))).toBe("purging");
    const orphans = await repo.namespaces.orphans();
    expect(orphans.map(({ namespaceId }) => namespaceId)).not.toContain(id);
  });

  it("namespaces keep entities, limits and audit apart (A202)", async () => {
    const repo = await store.open();
    const [nameA, nameB] = [newName(), newName()];
    await repo.namespaces.register(nameA, nameB);
    const a = await repo.namespace(nameA);
    const b = await repo.namespace(nameB);
    expect([a.namespaceName, b.namespaceName]).toEqual([nameA, nameB]);
    await a.entities.create({ id: "user-1", name: "in a" });
    await b.entities.create({ id: "user-1", name: "in b" });
    await a.limits.setSystem(["rpm:1"], { onUnavailable: "allow" });
    await a.limits.setResource("gpt-4", ["rpm:2"]);
    await a.limits.setEntity("user-1", ["rpm:3"]);
    expect((await b.entities.get("user-1"))?.name).toBe("in b");
    expect(await b.limits.resolve("user-1", "gpt-4")).toBeUndefined();
    expect(await b.limits.getSystem()).toEqual({ limits: [] });
    expect(await b.limits.listResources()).toEqual([]);
    expect(await b.limits.listEntityResources()).toEqual([]);
    expect(await b.limits.listEntities("_default_")).toEqual({ entityIds: [] });
    expect(await b.audit.list("user-1")).toHaveLength(1);
    await b.entities.delete("user-1");
    expect((await a.entities.get("user-1"))?.name).toBe("in a");
    expect(await a.limits.resolve("user-1", "gpt-4")).toMatchObject({ source: "entity_default" });
  });

  it("namespaces take no more changes once they are deleted (B32)", async () => {
    const repo = await store.open();
    const name = newName();
    const id = await register(repo, name);
    const scoped = await repo.namespace(name);
    await scoped.limits.setEntity("user-1", ["rpm:1"]);
    await repo.namespaces.delete(name);
    const before = await store.itemsOf(id, "GSI4");
    const refused = [
      () => scoped.limits.setSystem(["rpm:1"]),
      () => scoped.limits.setResource("gpt-4", ["rpm:1"]),
      () => scoped.limits.setEntity("user-1", ["rpm:2"]),
      () => scoped.limits.deleteEntity("user-1"),
      () => scoped.entities.create({ id: "user-1" }),
      () => scoped.entities.delete("user-1"),
    ];
    for (const change of refused) expect(await stateOf(change())).toBe("deleted");
    expect(await store.itemsOf(id, "GSI4")).toEqual(before);
    // Its records can still be read, until it is purged.
    expect(await scoped.limits.getEntity("user-1")).toHaveLength(1);
    await repo.namespaces.recover(id);
    await scoped.limits.setEntity("user-1", ["rpm:2"]);
    await repo.namespaces.delete(name);
    await repo.namespaces.purge(id);
    expect(await stateOf(scoped.entities.create({ id: "user-1" }))).toBe("unregistered");
    expect(await stateOf(scoped.limits.setSystem(["rpm:1"]))).toBe("unregistered");
    expect(await store.itemsOf(id, "GSI4")).toEqual([]);
  });
});

describe("a namespace that is deleted while a change is on its way", () => {
  it("a namespace that is deleted while a change is on its way does not take the change (B32)", async () => {
    const gate = new Gate();
    const repo = await Repository.over(gate.store);
    const id = await register(repo, "tenant-a");
    const scoped = await repo.namespace("tenant-a");
    const held = gate.holdNext();
    const change = stateOf(scoped.limits.setSystem(["rpm:1"]));
    await held.reached;
    await repo.namespaces.delete("tenant-a");
    held.release();
    expect(await change).toBe("deleted");
    expect(await gate.store.get(systemConfigKey(id))).toBeUndefined();
  });
});

describe("the ids of namespaces", () => {
  it("the ids of namespaces never start with a hyphen", async () => {
    // The first draw would give an id of hyphens only.
    const bytes = [...Array(8).fill(0xfb), ...Array(100).fill(0x11)] as number[];
    const random = () => (bytes.shift() ?? 0) / 256;
    const repo = await Repository.over(new MemoryItemStore(), { random });
    expect(repo.namespaceId).toBe("ERERERERERE");
  });

  it("ids of namespaces that always collide end in an error, and not in a loop", async () => {
    for (const constant of [0.5, 0.98]) {
      const opening = Repository.over(new MemoryItemStore(), {
        random: () => constant,
        namespace: "tenant-a",
      });
      await expect(opening).rejects.toThrow(/random/);
    }
  });
});
