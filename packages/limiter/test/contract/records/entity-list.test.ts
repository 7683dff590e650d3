/** Entities that are listed, ensured and updated. */

import { Entity } from "@zae-limiter/limiter/domain/entity.ts";
import {
  EntityExistsError,
  EntityNotFoundError,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { encodeEntity } from "@zae-limiter/limiter/records/entities/entity-item.ts";
import { entityPartition, inNamespace } from "@zae-limiter/limiter/records/keys.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { describeStores, type TestStore } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";

/** A snapshot of usage, as far as an index shows it. */
function usageItem(namespaceId: string, entityId: string, number: number): Item {
  const PK = entityPartition(namespaceId, entityId);
  return { PK, SK: `#USAGE#gpt-4#hourly#${1000 + number}`, ...inNamespace(namespaceId, PK) };
}

async function seed(store: TestStore, namespaceId: string, ids: readonly string[]): Promise<void> {
  await store.items.writeMany({
    puts: ids.map((id) => encodeEntity(namespaceId, new Entity({ id, name: id }))),
  });
}

const idsOf = (entities: readonly Entity[]) => entities.map(({ id }) => id);

describeStores("the list of entities", (store) => {
  it("the list of entities has all that were created, in pages, however many other items they have", async () => {
    const repo = await store.open();
    const { namespaceId } = repo;
    const ids = Array.from({ length: 130 }, (_, at) => `key-${String(at).padStart(3, "0")}`);
    await seed(store, namespaceId, ids);
    const usage = ["key-000", "key-007", "only-used"].flatMap((id) =>
      Array.from({ length: 120 }, (_, at) => usageItem(namespaceId, id, at)),
    );
    await store.items.writeMany({ puts: usage });
    const listed: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await repo.entities.list({
        limit: 60,
        ...(cursor === undefined ? {} : { cursor }),
      });
      expect(page.entities.length).toBeLessThanOrEqual(60);
      listed.push(...idsOf(page.entities));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(listed).toEqual(ids);
    expect((await repo.entities.list()).entities).toHaveLength(100);
  });

  it("the list of entities can be limited to ids that begin alike, and shows one namespace", async () => {
    const [repo, other] = [await store.open(), await store.open()];
    await seed(store, repo.namespaceId, ["a", "a-1", "a.b", "a:2", "a@x", "aB", "a_c", "b"]);
    await seed(store, other.namespaceId, ["a-2"]);
    const { entities } = await repo.entities.list({ prefix: "a" });
    expect(idsOf(entities)).toEqual(["a", "a-1", "a.b", "a:2", "a@x", "aB", "a_c"]);
    expect(idsOf((await repo.entities.list({ prefix: "a-" })).entities)).toEqual(["a-1"]);
    expect((await repo.entities.list({ prefix: "c" })).entities).toEqual([]);
    const { cursor } = await repo.entities.list({ limit: 1 });
    const foreign = other.entities.list({ cursor: cursor as string });
    await expect(foreign).rejects.toBeInstanceOf(ValidationError);
    await expect(repo.entities.list({ limit: 0 })).rejects.toBeInstanceOf(ValidationError);
    await expect(repo.entities.list({ prefix: "#" })).rejects.toBeInstanceOf(ValidationError);
  });
});

describeStores("an entity that is ensured", (store) => {
  it("an entity that is ensured is created once, and otherwise returned as it is stored", async () => {
    const repo = await store.open();
    await repo.entities.create({ id: "p" });
    const fields = { id: "key-1", name: "One", parentId: "p", cascade: true, principal: "ops" };
    const all = await Promise.all([1, 2, 3].map(() => repo.entities.ensure(fields)));
    for (const entity of all) expect(entity).toMatchObject({ id: "key-1", name: "One" });
    expect(await repo.entities.ensure({ id: "key-1", name: "Two" })).toMatchObject({ name: "One" });
    expect(await repo.audit.list("key-1")).toHaveLength(1);
  });

  it("an entity that is ensured is refused when it has another parent or cascades otherwise", async () => {
    const repo = await store.open();
    await repo.entities.create({ id: "p" });
    await repo.entities.create({ id: "key-1", parentId: "p" });
    for (const fields of [{ parentId: "q" }, { cascade: true }]) {
      const refused = repo.entities.ensure({ id: "key-1", ...fields });
      await expect(refused).rejects.toBeInstanceOf(EntityExistsError);
    }
    await expect(repo.entities.ensure({ id: "#" })).rejects.toBeInstanceOf(ValidationError);
  });
});

describeStores("an entity that is updated", (store) => {
  it("an entity that is updated has the new name and metadata, and everything else as before", async () => {
    const repo = await store.open();
    await repo.entities.create({ id: "p" });
    const made = await repo.entities.create({
      id: "key-1",
      parentId: "p",
      cascade: true,
      metadata: { tier: "free", seats: 1 },
    });
    const changes = { name: "Key", metadata: { tier: "gold" }, principal: "ops" };
    const updated = await repo.entities.update("key-1", changes);
    expect(updated).toEqual(new Entity({ ...made, name: "Key", metadata: { tier: "gold" } }));
    expect(await repo.entities.get("key-1")).toEqual(updated);
    expect(idsOf(await repo.entities.children("p"))).toEqual(["key-1"]);
    expect((await repo.entities.update("key-1", { name: "Only" })).metadata).toEqual({
      tier: "gold",
    });
    expect(await repo.entities.update("key-1", {})).toMatchObject({ name: "Only" });
    const events = await repo.audit.list("key-1");
    expect(events.map(({ action }) => action)).toEqual([
      "entity_updated",
      "entity_updated",
      "entity_created",
    ]);
    expect(events[1]).toMatchObject({
      principal: "ops",
      details: { name: "Key", metadata: { tier: "gold" } },
    });
  });

  it("an entity that is updated must exist, and be changed to something that can be stored", async () => {
    const repo = await store.open();
    const { entities } = repo;
    for (const changes of [{ name: "x" }, {}]) {
      await expect(entities.update("none", changes)).rejects.toBeInstanceOf(EntityNotFoundError);
    }
    expect(await entities.get("none")).toBeUndefined();
    expect(await repo.audit.list("none")).toEqual([]);
    await entities.create({ id: "key-1" });
    for (const wrong of [{ name: 7 }, { metadata: [] }, { parentId: "p" }]) {
      const refused = entities.update("key-1", wrong as never);
      await expect(refused).rejects.toBeInstanceOf(ValidationError);
    }
  });
});

describeStores("the audit log of a namespace", (store) => {
  it("the audit log of a namespace has the newest events of all subjects first, in pages", async () => {
    let nowMs = Date.UTC(2030, 0, 1);
    const repo = await store.open({ clock: () => nowMs++ });
    const other = await store.open({ clock: () => nowMs++ });
    for (let at = 0; at < 5; at += 1) await repo.entities.create({ id: `key-${at}` });
    await repo.limits.setSystem(["rpm:1"]);
    await other.entities.create({ id: "elsewhere" });
    await repo.entities.delete("key-3");
    const subjects = ["key-3", "$SYSTEM", "key-4", "key-3", "key-2", "key-1", "key-0"];
    const all = await repo.audit.listAll();
    expect(all.map(({ entityId }) => entityId)).toEqual(subjects);
    const first = await repo.audit.listAll({ limit: 2 });
    const rest = await repo.audit.listAll({ after: first[1]?.eventId as string });
    expect([...first, ...rest]).toEqual(all);
    await expect(repo.audit.listAll({ after: "x" })).rejects.toBeInstanceOf(ValidationError);
  });
});
