/**
 * Items that are in an index without belonging there. IAM protects the leading key of a write and
 * no index key, so the item's own key decides about what a listing shows.
 */

import type { LimiterWarning } from "@zae-limiter/limiter/acquire/events.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { forgedItems, KEYS_OF_THE_FORGER } from "@zae-limiter/test-support/forged-items.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { describe, expect, it } from "vitest";

const RESOURCE = "gpt-4";

/** Everything of the victim that is read through an index. */
async function listings({ entities, limits, buckets, usage }: Repository) {
  return {
    children: (await entities.children("org")).map(({ id }) => id),
    entities: (await limits.listEntities(RESOURCE)).entityIds,
    buckets: (await buckets.list("org")).map(({ resource, tokens }) => [resource, tokens]),
    capacity: (await buckets.capacity(RESOURCE, "rpm")).entities.map(({ entityId }) => entityId),
    usage: await usage.summary({ resource: RESOURCE }),
    snapshots: (await usage.snapshots({ resource: RESOURCE })).snapshots.length,
  };
}

describeStores("foreign items in the indexes", (store) => {
  async function victim() {
    const repo = await store.open({ configCacheTtlSeconds: 0 });
    await repo.entities.create({ id: "org" });
    await repo.entities.create({ id: "key-1", parentId: "org" });
    await repo.limits.setEntity("org", ["rpm:100"], { resource: RESOURCE });
    const warnings: LimiterWarning[] = [];
    const limiter = new RateLimiter(repo, { onWarning: (warning) => warnings.push(warning) });
    const lease = await limiter.acquire({
      entityId: "org",
      resource: RESOURCE,
      consume: { rpm: 1 },
    });
    await lease.commit();
    return { repo, limiter, warnings };
  }

  describe.each(KEYS_OF_THE_FORGER)("put under $name", ({ keyOf }) => {
    it("foreign items change no listing of another namespace, and are counted in a warning", async () => {
      const { repo, warnings } = await victim();
      const before = await listings(repo);
      expect(before).toMatchObject({ children: ["key-1"], entities: ["org"] });
      expect(warnings).toEqual([]);
      const other = await store.open();
      const forged = forgedItems(repo.namespaceId, other.namespaceId, keyOf);
      await store.items.writeMany({ puts: forged });
      expect(await listings(repo)).toEqual(before);
      const kinds = new Set(warnings.map(({ kind }) => kind));
      expect([...kinds]).toEqual(["foreign_items"]);
      expect(warnings[0]).toMatchObject({
        index: "GSI1",
        partition: `${repo.namespaceId}/PARENT#org`,
        dropped: 1,
        example: { PK: expect.stringContaining(`${other.namespaceId}/`) },
      });
    });
  });

  it("foreign items in the indexes do not deepen the tree that a new entity is checked against", async () => {
    const { repo } = await victim();
    const other = await store.open();
    const [byEntity] = KEYS_OF_THE_FORGER;
    const [child] = forgedItems(repo.namespaceId, other.namespaceId, byEntity.keyOf);
    const parent = `${repo.namespaceId}/PARENT#loop`;
    await store.items.writeMany({
      puts: [{ ...child, GSI1PK: parent, entity_id: "loop", PK: child?.PK ?? "", SK: "#META" }],
    });
    await repo.entities.create({ id: "loop", parentId: "org" });
    expect(await repo.entities.get("loop")).toMatchObject({ parentId: "org" });
  });

  it("foreign items of one's own namespace are dropped when they are no record of that kind", async () => {
    const { repo } = await victim();
    const before = await listings(repo);
    const [, byBucket] = KEYS_OF_THE_FORGER;
    const own = forgedItems(repo.namespaceId, repo.namespaceId, byBucket.keyOf);
    await store.items.writeMany({ puts: own });
    expect(await listings(repo)).toEqual(before);
  });

  it("foreign items in the indexes leave a page as long as it was asked to be", async () => {
    const { repo } = await victim();
    const other = await store.open();
    const ids = ["a", "c", "e"];
    for (const id of ids) await repo.limits.setEntity(id, ["rpm:5"], { resource: RESOURCE });
    const puts = ["b", "bb", "d", "dd", "f"].map((id) => ({
      PK: `${other.namespaceId}/BUCKET#${id}#${RESOURCE}#0`,
      SK: "#STATE",
      GSI3PK: `${repo.namespaceId}/ENTITY_CONFIG#${RESOURCE}`,
      GSI3SK: id,
    }));
    await store.items.writeMany({ puts });
    const first = await repo.limits.listEntities(RESOURCE, { limit: 3 });
    expect(first.entityIds).toEqual(["a", "c", "e"]);
    const { cursor = "" } = first;
    const second = await repo.limits.listEntities(RESOURCE, { limit: 3, cursor });
    expect(second).toEqual({ entityIds: ["org"] });
  });

  it("foreign items in the indexes survive the purge of the namespace whose index keys they have", async () => {
    const repo = await store.open();
    const doomed = await store.open();
    const key = { PK: `${repo.namespaceId}/ENTITY#key-1`, SK: "#META" };
    const claim = { GSI4PK: doomed.namespaceId, GSI4SK: key.PK };
    await store.items.writeMany({ puts: [{ ...key, ...claim, entity_id: "key-1" }] });
    await repo.namespaces.delete(doomed.namespaceName);
    await repo.namespaces.purge(doomed.namespaceId);
    expect(await store.items.get(key, { consistent: true })).toBeDefined();
  });
});
