/** The stamps of a bucket's owner, as the Python library writes them. */

import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { entityKey } from "@zae-limiter/limiter/records/keys.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { pythonItem } from "@zae-limiter/test-support/golden-items.ts";
import { expect, it } from "vitest";
import { describeItemStores } from "./limiter-stores.ts";

const LIMITS = ["rpd:100/day"];

describeItemStores("stamps of the owner", (store) => {
  const items = () => {
    const { items: found } = store.place;
    if (found === undefined) throw new Error("Buckets are no items here");
    return found;
  };

  it("stamps of the owner are those of the Python library: generation and incarnation of the record", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    const { namespaceId } = repo;
    const golden = pythonItem("53-entity-meta-pgen-pinc", namespaceId);
    await items().put(golden);
    for (const id of ["org-a", "org-b"]) await repo.entities.create({ id });
    await repo.limits.setResource("casc", LIMITS);
    await repo.limits.setCascade({ resource: "casc" }, true);
    const call = { entityId: "user-1", resource: "casc", consume: { rpd: 1 } };
    await limiter.acquire(call);
    const { pgen, pinc } = golden;
    const owned = { cascade: true, parent_id: "org-a", pgen, pinc };
    expect(await store.item(subject, "user-1", "casc")).toMatchObject(owned);
    await repo.entities.setParent("user-1", "org-b");
    expect(await items().get(entityKey(namespaceId, "user-1"))).toEqual(
      pythonItem("55-entity-meta-after-move", namespaceId),
    );
    expect(await store.item(subject, "user-1", "casc")).toMatchObject({
      ...owned,
      parent_id: "org-b",
      pgen: Number(pgen) + 1,
    });
    await repo.entities.setParent("user-1", null);
    const after = (await items().get(entityKey(namespaceId, "user-1"))) as Item;
    expect(after).toEqual(pythonItem("57-entity-meta-after-move-to-no-parent", namespaceId));
    const bucket = await store.item(subject, "user-1", "casc");
    expect(bucket).toMatchObject({ cascade: false, pgen: Number(pgen) + 2 });
    expect(bucket).not.toHaveProperty("parent_id");
    expect((await repo.version())?.clientMinVersion).toBe("0.17.0");
  });

  it("a change of parent that is refused asks nothing of Python clients, and neither does one that changes nothing", async () => {
    const { repo } = await store.open();
    const before = await repo.version();
    await repo.entities.create({ id: "org-a" });
    await repo.entities.create({ id: "user-1", parentId: "org-a" });
    await expect(repo.entities.setParent("user-x", "org-a")).rejects.toThrow('"user-x" not found');
    await expect(repo.entities.setParent("user-1", "org-x")).rejects.toThrow('"org-x" not found');
    await expect(repo.entities.setParent("org-a", "user-1")).rejects.toThrow(ValidationError);
    await repo.entities.setParent("user-1", "org-a");
    expect(await repo.version()).toEqual(before);
  });

  it("stamps of the owner of a policy are the config items of the Python library", async () => {
    const { repo } = await store.open();
    await repo.limits.setCascade({ entityId: "e1", resource: "r" }, true);
    const golden = pythonItem("74-config-entity-cascade", repo.namespaceId);
    expect(await items().get(golden, { consistent: true })).toEqual(golden);
  });
});
