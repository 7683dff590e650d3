/** Entities and the trees they form. */

import { Entity } from "@zae-limiter/limiter/domain/entity.ts";
import {
  EntityExistsError,
  EntityNotFoundError,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import { encodeEntity } from "@zae-limiter/limiter/records/entities/entity-item.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { describe, expect, it } from "vitest";

/** `level-0` at the top, then one below the other. */
async function createChain(repo: Repository, length: number): Promise<void> {
  for (let level = 0; level < length; level += 1) {
    await repo.entities.create({
      id: `level-${level}`,
      ...(level === 0 ? {} : { parentId: `level-${level - 1}`, cascade: true }),
    });
  }
}

describeStores("entities", (store) => {
  it("entities are created once, read back and deleted (A190)", async () => {
    const nowMs = Date.UTC(2030, 0, 2, 3, 4, 5, 678);
    const repo = await store.open({ clock: () => nowMs });
    const created = await repo.entities.create({ id: "key-1", metadata: { tier: "gold" } });
    expect(created).toEqual(
      new Entity({
        id: "key-1",
        name: "key-1",
        metadata: { tier: "gold" },
        createdAt: "2030-01-02T03:04:05Z",
      }),
    );
    expect(created.isParent).toBe(true);
    expect(await repo.entities.get("key-1")).toEqual(created);
    const again = repo.entities.create({ id: "key-1" });
    await expect(again).rejects.toBeInstanceOf(EntityExistsError);
    expect(await repo.entities.get("key-1")).toEqual(created);
    expect(await repo.entities.get("key-2")).toBeUndefined();
    await repo.entities.delete("key-1");
    expect(await repo.entities.get("key-1")).toBeUndefined();
    await repo.entities.create({ id: "key-1", name: "Second life" });
    expect((await repo.entities.get("key-1"))?.name).toBe("Second life");
  });

  it("entities know their children, which may come first and stay when the parent goes (A190)", async () => {
    const repo = await store.open();
    const early = { id: "key-2", parentId: "project-1", cascade: true };
    await repo.entities.create({ ...early, allowMissingParent: true });
    await repo.entities.create({ id: "project-1", name: "Search" });
    await repo.entities.create({ id: "key-1", parentId: "project-1" });
    await repo.entities.create({ id: "project-10" });
    await repo.entities.create({ id: "key-3", parentId: "project-10" });
    const children = await repo.entities.children("project-1");
    expect(children.map(({ id, cascade, parentId }) => [id, cascade, parentId])).toEqual([
      ["key-1", false, "project-1"],
      ["key-2", true, "project-1"],
    ]);
    expect(children.every(({ isChild }) => isChild)).toBe(true);
    expect(await repo.entities.children("key-1")).toEqual([]);
    await repo.entities.delete("project-1");
    expect(await repo.entities.children("project-1")).toHaveLength(2);
    expect((await repo.entities.get("key-1"))?.parentId).toBe("project-1");
  });

  it("list more children than one answer of the store holds (B18)", async () => {
    const repo = await store.open();
    // More than a megabyte, where DynamoDB ends a page, and more rows than sqlite reads at once.
    const metadata = { text: "x".repeat(6000) };
    const ids = Array.from({ length: 210 }, (_, number) => `key-${1000 + number}`);
    const puts = ids.map((id) =>
      encodeEntity(repo.namespaceId, new Entity({ id, parentId: "project-1", metadata })),
    );
    await store.items.writeMany({ puts });
    expect((await repo.entities.children("project-1")).map(({ id }) => id)).toEqual(ids);
  });

  it("entities keep any JSON as metadata, as it was given", async () => {
    const repo = await store.open();
    const metadata: Record<string, JsonValue> = {
      text: "",
      number: -1.5,
      large: 9_007_199_254_740_991,
      yes: true,
      nothing: null,
      list: [1, "a", [], {}, null, [false]],
      nested: { deeper: { deepest: "ü" } },
    };
    const created = await repo.entities.create({ id: "key-1", metadata });
    expect(created.metadata).toEqual(metadata);
    // Later changes by the caller have no effect.
    (metadata.list as JsonValue[]).push("late");
    const read = await repo.entities.get("key-1");
    expect(read?.metadata).toEqual(created.metadata);
    expect((await repo.audit.list("key-1"))[0]?.details).toMatchObject({
      metadata: created.metadata,
    });
  });

  it("entities leave nothing behind when an argument is wrong (A191, B28)", async () => {
    const repo = await store.open();
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const wrong: Record<string, unknown>[] = [
      { id: "" },
      { id: "a#b" },
      { parentId: "" },
      { parentId: "a b" },
      { parentId: "key-1" },
      { principal: "" },
      { principal: "bad#" },
      { principal: null },
      { name: 5 },
      { cascade: "yes" },
      { metadata: "text" },
      { metadata: ["list"] },
      { metadata: new Map() },
      { metadata: { when: new Date() } },
      { metadata: { call: () => 1 } },
      { metadata: { number: Number.NaN } },
      { metadata: { big: 1n } },
      { metadata: circle },
    ];
    for (const fields of wrong) {
      const creation = repo.entities.create({ id: "key-1", ...fields });
      await expect(creation, Object.keys(fields).join()).rejects.toBeInstanceOf(ValidationError);
    }
    await expect(repo.entities.delete("key-1", { principal: "#" })).rejects.toMatchObject({
      field: "principal",
    });
    await expect(repo.entities.get("a#b")).rejects.toMatchObject({ field: "entity_id" });
    await expect(repo.entities.children("")).rejects.toMatchObject({ field: "entity_id" });
    expect(await repo.entities.get("key-1")).toBeUndefined();
    expect(await store.itemsOf(repo.namespaceId, "GSI4")).toEqual([]);
  });

  it("entities are created once when two create the same at once, with one event", async () => {
    const repo = await store.open();
    const other = await store.open({ namespace: repo.namespaceName });
    const outcomes = await Promise.allSettled(
      [repo, other, repo, other].map(({ entities }, index) =>
        entities.create({ id: "key-1", name: `name-${index}` }),
      ),
    );
    const winners = outcomes.filter((outcome) => outcome.status === "fulfilled");
    expect(winners).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === "rejected") expect(outcome.reason).toBeInstanceOf(EntityExistsError);
    }
    expect(await repo.entities.get("key-1")).toEqual(winners[0]?.value);
    const events = await repo.audit.list("key-1");
    expect(events.map(({ details }) => details.name)).toEqual([winners[0]?.value.name]);
  });

  it("entities have at most eight ancestors", async () => {
    const repo = await store.open();
    await createChain(repo, 9);
    const refused = { field: "parent_id", reason: expect.stringContaining("8") };
    const tooDeep = repo.entities.create({ id: "level-9", parentId: "level-8" });
    await expect(tooDeep).rejects.toMatchObject(refused);
    expect(await repo.entities.get("level-9")).toBeUndefined();
    expect(await repo.entities.create({ id: "other", parentId: "level-7" })).toBeDefined();
  });

  it("entities have at most eight ancestors, also when the lowest is created first", async () => {
    const repo = await store.open();
    for (let level = 9; level > 1; level -= 1) {
      const parentId = `level-${level - 1}`;
      await repo.entities.create({ id: `level-${level}`, parentId, allowMissingParent: true });
    }
    const top = { id: "level-1", parentId: "level-0", allowMissingParent: true };
    const tooHigh = repo.entities.create(top);
    await expect(tooHigh).rejects.toMatchObject({ field: "parent_id" });
    // At the top of its own tree it is the eighth.
    await repo.entities.create({ id: "level-1" });
    expect(await repo.entities.children("level-1")).toHaveLength(1);
  });

  it("an entity whose parent does not exist is refused, and nothing is written", async () => {
    const repo = await store.open();
    const wrong = { id: "key-1", parentId: "tenent", cascade: true };
    for (const method of ["create", "ensure"] as const) {
      const refused = repo.entities[method](wrong);
      await expect(refused).rejects.toBeInstanceOf(EntityNotFoundError);
      await expect(refused).rejects.toMatchObject({
        entityId: "tenent",
        message: expect.stringContaining("allowMissingParent"),
      });
    }
    expect(await repo.entities.get("key-1")).toBeUndefined();
    expect(await repo.audit.list("key-1")).toEqual([]);
    const text = { ...wrong, allowMissingParent: "yes" } as never;
    await expect(repo.entities.create(text)).rejects.toMatchObject({ field: "allowMissingParent" });
  });

  it("an entity may wait for its parent where the caller says so", async () => {
    const repo = await store.open();
    const early = { id: "key-1", parentId: "tenant", allowMissingParent: true };
    expect(await repo.entities.ensure(early)).toMatchObject({ parentId: "tenant" });
    // What is stored without its parent stays as it is.
    expect(await repo.entities.ensure({ id: "key-1", parentId: "tenant" })).toBeDefined();
    const again = repo.entities.create({ id: "key-1", parentId: "tenant" });
    await expect(again).rejects.toBeInstanceOf(EntityExistsError);
    await repo.entities.create({ id: "below", parentId: "key-1" });
    await repo.entities.create({ id: "tenant" });
    expect((await repo.entities.children("tenant")).map(({ id }) => id)).toEqual(["key-1"]);
  });

  it("an entity is not created under a parent that is deleted meanwhile", async () => {
    const repo = await store.open();
    for (let round = 0; round < 5; round += 1) {
      await repo.entities.create({ id: "tenant" });
      const [created] = await Promise.allSettled([
        repo.entities.create({ id: "key-1", parentId: "tenant" }),
        repo.entities.delete("tenant"),
      ]);
      const stored = await repo.entities.get("key-1");
      expect(stored !== undefined).toBe(created.status === "fulfilled");
      await repo.entities.delete("key-1");
    }
  });

  it("entities are never their own ancestors", async () => {
    const repo = await store.open();
    const refused = { field: "parent_id", reason: expect.stringContaining("ancestor") };
    const own = repo.entities.create({ id: "a", parentId: "a" });
    await expect(own).rejects.toMatchObject(refused);
    await repo.entities.create({ id: "b", parentId: "a", allowMissingParent: true });
    await repo.entities.create({ id: "c", parentId: "b" });
    const circle = repo.entities.create({ id: "a", parentId: "c" });
    await expect(circle).rejects.toMatchObject(refused);
    expect(await repo.entities.get("a")).toBeUndefined();
  });

  it("entities are never their own ancestors, also when all are created at once", async () => {
    const repo = await store.open();
    const other = await store.open({ namespace: repo.namespaceName });
    const outcomes = await Promise.allSettled([
      repo.entities.create({ id: "a", parentId: "c", allowMissingParent: true }),
      other.entities.create({ id: "b", parentId: "a", allowMissingParent: true }),
      repo.entities.create({ id: "c", parentId: "b", allowMissingParent: true }),
    ]);
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(refused).toHaveLength(1);
    expect(refused[0]?.reason).toMatchObject({ field: "parent_id" });
    const left = await Promise.all(["a", "b", "c"].map((id) => repo.entities.get(id)));
    expect(left.filter((entity) => entity !== undefined)).toHaveLength(2);
  });
});

describe("entities of others", () => {
  it("entities of others in a circle do not hang the creation of a child", async () => {
    const items = new MemoryItemStore();
    const repo = await Repository.over(items);
    // The Python library does not check ancestors.
    for (const [id, parentId] of [
      ["x", "y"],
      ["y", "x"],
    ] as const) {
      await items.put(encodeEntity(repo.namespaceId, new Entity({ id, parentId })));
    }
    const child = repo.entities.create({ id: "z", parentId: "x" });
    await expect(child).rejects.toMatchObject({ field: "parent_id" });
  });
});
