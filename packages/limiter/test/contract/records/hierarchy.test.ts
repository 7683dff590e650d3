/** Which stored limits apply, and how each level is written, read, listed and removed. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import {
  entityConfigKey,
  systemConfigKey,
  systemPartition,
} from "@zae-limiter/limiter/records/keys.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { Key } from "@zae-limiter/limiter/storage/item.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";

/** The limits that apply, as text, and the level they came from. */
async function resolved(repo: Repository, entityId = "user-1", resource = "gpt-4") {
  const found = await repo.limits.resolve(entityId, resource);
  return found === undefined ? undefined : [found.source, ...found.limits.map(String)];
}

function texts(limits: readonly Limit[]): string[] {
  return limits.map(String);
}

describeStores("the hierarchy of limits", (store) => {
  it("the hierarchy of limits takes the entity's limits before the resource's and the system's (A120)", async () => {
    const repo = await store.open();
    await repo.limits.setSystem(["rpm:10"]);
    await repo.limits.setResource("gpt-4", ["rpm:50"]);
    await repo.limits.setEntity("user-1", ["rpm:100"], { resource: "gpt-4" });
    expect(await resolved(repo)).toEqual(["entity", "rpm:100/min"]);
    expect(await resolved(repo, "user-2")).toEqual(["resource", "rpm:50/min"]);
    expect(await resolved(repo, "user-1", "gpt-3")).toEqual(["system", "rpm:10/min"]);
  });

  it("the hierarchy of limits takes the entity's default before the resource's limits (A121)", async () => {
    const repo = await store.open();
    await repo.limits.setEntity("user-1", ["rpm:100"]);
    await repo.limits.setResource("gpt-4", ["rpm:50"]);
    expect(await resolved(repo)).toEqual(["entity_default", "rpm:100/min"]);
    await repo.limits.setEntity("user-1", ["rpm:7"], { resource: "gpt-4" });
    expect(await resolved(repo)).toEqual(["entity", "rpm:7/min"]);
  });

  it("the hierarchy of limits takes the resource's limits before the system's (A122)", async () => {
    const repo = await store.open();
    await repo.limits.setResource("gpt-4", ["rpm:50"]);
    await repo.limits.setSystem(["rpm:10"]);
    expect(await resolved(repo)).toEqual(["resource", "rpm:50/min"]);
  });

  it("the hierarchy of limits falls back to the system's limits (A123)", async () => {
    const repo = await store.open();
    await repo.limits.setSystem(["rpm:100"]);
    expect(await resolved(repo)).toEqual(["system", "rpm:100/min"]);
  });

  it("the hierarchy of limits names every source in turn as levels are removed (A125)", async () => {
    const repo = await store.open();
    await repo.limits.setSystem(["rpm:1"], { onUnavailable: "allow" });
    await repo.limits.setResource("gpt-4", ["rpm:2"]);
    await repo.limits.setEntity("user-1", ["rpm:3"]);
    await repo.limits.setEntity("user-1", ["rpm:4"], { resource: "gpt-4" });
    const seen = [await repo.limits.resolve("user-1", "gpt-4")];
    await repo.limits.deleteEntity("user-1", { resource: "gpt-4" });
    seen.push(await repo.limits.resolve("user-1", "gpt-4"));
    await repo.limits.deleteEntity("user-1");
    seen.push(await repo.limits.resolve("user-1", "gpt-4"));
    await repo.limits.deleteResource("gpt-4");
    seen.push(await repo.limits.resolve("user-1", "gpt-4"));
    expect(seen.map((found) => found?.source)).toEqual([
      "entity",
      "entity_default",
      "resource",
      "system",
    ]);
    // The mode belongs to the namespace, whichever level the limits came from.
    expect(seen.map((found) => found?.onUnavailable)).toEqual(Array(4).fill("allow"));
    await repo.limits.deleteSystem();
    expect(await repo.limits.resolve("user-1", "gpt-4")).toBeUndefined();
  });

  it("the hierarchy of limits takes the first level as a whole and mixes in nothing", async () => {
    const repo = await store.open();
    await repo.limits.setSystem(["rpm:10", "tpm:1000"]);
    await repo.limits.setEntity("user-1", ["rps:5/sec"], { resource: "gpt-4" });
    expect(await resolved(repo)).toEqual(["entity", "rps:5/sec"]);
  });

  it("the hierarchy of limits passes over a level whose list is empty (A127)", async () => {
    const repo = await store.open();
    await repo.limits.setEntity("user-1", [], { resource: "gpt-4" });
    await repo.limits.setEntity("user-1", []);
    await repo.limits.setResource("gpt-4", []);
    expect(await resolved(repo)).toBeUndefined();
    await repo.limits.setSystem(["rpm:10"]);
    expect(await resolved(repo)).toEqual(["system", "rpm:10/min"]);
    // An empty list is stored all the same, and counted.
    expect(await repo.limits.listEntityResources()).toEqual(["_default_", "gpt-4"]);
    expect(await repo.limits.listResources()).toEqual(["gpt-4"]);
  });

  it("each level returns what was set, and is replaced as a whole (A130)", async () => {
    const repo = await store.open();
    const rpm = Limit.perMinute("rpm", 100, { burst: 150 });
    const custom = Limit.custom({
      name: "slow",
      capacity: 7,
      refillAmount: 3,
      refillPeriodSeconds: 11,
    });
    await repo.limits.setSystem([rpm, custom]);
    await repo.limits.setResource("gpt-4", [rpm, custom]);
    await repo.limits.setEntity("user-1", [rpm, custom]);
    await repo.limits.setEntity("user-1", [rpm, custom], { resource: "gpt-4" });
    const all = async () => [
      (await repo.limits.getSystem()).limits,
      await repo.limits.getResource("gpt-4"),
      await repo.limits.getEntity("user-1"),
      await repo.limits.getEntity("user-1", { resource: "gpt-4" }),
    ];
    for (const limits of await all()) {
      expect(limits).toHaveLength(2);
      expect(limits[0]?.equals(rpm)).toBe(true);
      expect(limits[1]?.equals(custom)).toBe(true);
    }
    await repo.limits.setSystem(["tpm:5"]);
    await repo.limits.setResource("gpt-4", ["tpm:5"]);
    await repo.limits.setEntity("user-1", ["tpm:5"]);
    await repo.limits.setEntity("user-1", ["tpm:5"], { resource: "gpt-4" });
    for (const limits of await all()) expect(texts(limits)).toEqual(["tpm:5/min"]);
    const stored = await store.items.get(systemConfigKey(repo.namespaceId), { consistent: true });
    const attributes = Object.keys(stored ?? {}).filter((name) => name.startsWith("l_"));
    expect(attributes.sort()).toEqual(["l_tpm_cp", "l_tpm_ra", "l_tpm_rp"]);
  });

  it("the hierarchy of limits gives nothing where nothing is stored (A131)", async () => {
    const repo = await store.open();
    expect(await repo.limits.getEntity("user-1")).toEqual([]);
    expect(await repo.limits.getEntity("user-1", { resource: "gpt-4" })).toEqual([]);
    expect(await repo.limits.getResource("gpt-4")).toEqual([]);
    expect(await repo.limits.getSystem()).toEqual({ limits: [] });
    expect(await repo.limits.listResources()).toEqual([]);
    expect(await repo.limits.listEntityResources()).toEqual([]);
    expect(await repo.limits.listEntities("gpt-4")).toEqual({ entityIds: [] });
  });

  it("the setting for outages stays until the limits are deleted (A132)", async () => {
    const repo = await store.open();
    await repo.limits.setSystem(["rpm:10"], { onUnavailable: "allow" });
    expect((await repo.limits.getSystem()).onUnavailable).toBe("allow");
    await repo.limits.setSystem(["rpm:20"]);
    expect((await repo.limits.getSystem()).onUnavailable).toBe("allow");
    await repo.limits.setSystem(["rpm:20"], { onUnavailable: "block" });
    expect((await repo.limits.getSystem()).onUnavailable).toBe("block");
    await repo.limits.deleteSystem();
    expect(await repo.limits.getSystem()).toEqual({ limits: [] });
    expect(await repo.limits.resolve("user-1", "gpt-4")).toBeUndefined();
  });

  it("the audit retention stays through every change of the system's limits (B16)", async () => {
    const repo = await store.open();
    const key = systemConfigKey(repo.namespaceId);
    await repo.limits.setSystem(["rpm:10"]);
    await store.items.update(key, { set: { audit_retention_days: 14 } });
    const days = async () =>
      (await store.items.get(key, { consistent: true }))?.audit_retention_days;
    await repo.limits.setSystem(["tpm:10"], { onUnavailable: "block" });
    expect(await days()).toBe(14);
    await repo.limits.deleteSystem();
    expect(await days()).toBe(14);
  });

  it("the hierarchy of limits lists the resources with limits, sorted, and forgets the deleted (A133)", async () => {
    const repo = await store.open();
    for (const resource of ["zebra", "alpha", "openai/gpt-4"]) {
      await repo.limits.setResource(resource, ["rpm:1"]);
    }
    await repo.limits.setResource("alpha", ["rpm:2"]);
    expect(await repo.limits.listResources()).toEqual(["alpha", "openai/gpt-4", "zebra"]);
    await repo.limits.deleteResource("alpha");
    await repo.limits.deleteResource("never-there");
    expect(await repo.limits.listResources()).toEqual(["openai/gpt-4", "zebra"]);
    await repo.limits.deleteResource("openai/gpt-4");
    await repo.limits.deleteResource("zebra");
    expect(await repo.limits.listResources()).toEqual([]);
  });

  it("the hierarchy of limits counts the entities with limits of their own for each resource (A134)", async () => {
    const repo = await store.open();
    for (const resource of ["zebra", "alpha", "middle"]) {
      await repo.limits.setEntity("user-1", ["rpm:1"], { resource });
    }
    await repo.limits.setEntity("user-2", ["rpm:1"], { resource: "alpha" });
    await repo.limits.setEntity("user-1", ["rpm:2"], { resource: "middle" });
    expect(await repo.limits.listEntityResources()).toEqual(["alpha", "middle", "zebra"]);
    await repo.limits.deleteEntity("user-1", { resource: "alpha" });
    await repo.limits.deleteEntity("user-1", { resource: "middle" });
    await repo.limits.deleteEntity("unknown", { resource: "zebra" });
    expect(await repo.limits.listEntityResources()).toEqual(["alpha", "zebra"]);
    await repo.limits.deleteEntity("user-2", { resource: "alpha" });
    await repo.limits.deleteEntity("user-2", { resource: "alpha" });
    expect(await repo.limits.listEntityResources()).toEqual(["zebra"]);
  });

  it("the hierarchy of limits lists the entities with limits of their own, page by page (A135)", async () => {
    const repo = await store.open();
    for (const id of ["user-3", "user-1", "user-5", "user-2", "user-4"]) {
      await repo.limits.setEntity(id, ["rpm:1"], { resource: "gpt-4" });
    }
    await repo.limits.setEntity("user-9", ["rpm:1"], { resource: "gpt-3" });
    await repo.limits.setEntity("user-8", ["rpm:1"]);
    const all = ["user-1", "user-2", "user-3", "user-4", "user-5"];
    expect(await repo.limits.listEntities("gpt-4")).toEqual({ entityIds: all });
    expect(await repo.limits.listEntities("_default_")).toEqual({ entityIds: ["user-8"] });
    expect(await repo.limits.listEntities("unknown")).toEqual({ entityIds: [] });

    const first = await repo.limits.listEntities("gpt-4", { limit: 2 });
    expect(first.entityIds).toEqual(all.slice(0, 2));
    const second = await repo.limits.listEntities("gpt-4", {
      limit: 2,
      cursor: first.cursor as string,
    });
    expect(second.entityIds).toEqual(all.slice(2, 4));
    const third = await repo.limits.listEntities("gpt-4", {
      limit: 2,
      cursor: second.cursor as string,
    });
    expect(third).toEqual({ entityIds: all.slice(4) });
    // A page that ends with the list says so at once.
    expect(await repo.limits.listEntities("gpt-4", { limit: 5 })).toEqual({ entityIds: all });
  });

  it("the hierarchy of limits refuses a cursor that is not one, or one of another list", async () => {
    const repo = await store.open();
    for (const id of ["user-1", "user-2"]) {
      await repo.limits.setEntity(id, ["rpm:1"], { resource: "gpt-4" });
      await repo.limits.setEntity(id, ["rpm:1"], { resource: "gpt-3" });
    }
    const { cursor } = await repo.limits.listEntities("gpt-4", { limit: 1 });
    const withoutIndex = Buffer.from(JSON.stringify({ PK: "a", SK: "b" })).toString("base64url");
    const refused = expect.objectContaining({ code: "ZAEL_VALIDATION", field: "cursor" });
    for (const bad of ["", "nonsense", "bnVsbA", withoutIndex, cursor as string]) {
      const listed = repo.limits.listEntities("gpt-3", { limit: 1, cursor: bad });
      await expect(listed, bad).rejects.toEqual(refused);
    }
    for (const limit of [0, -1, 1.5, 10_001]) {
      await expect(repo.limits.listEntities("gpt-3", { limit })).rejects.toMatchObject({
        field: "limit",
      });
    }
  });

  it("stored limits that are invalid are named, and can still be replaced and deleted", async () => {
    const repo = await store.open();
    const { limits, namespaceId } = repo;
    const spoil = (key: Key) =>
      store.items.update(key, { set: { l_rpm_cp: 5, on_unavailable: "perhaps" } });
    const unreadable = {
      code: "ZAEL_INFRASTRUCTURE",
      message: expect.stringMatching(/"rpm".*SYSTEM#/),
    };
    await spoil(systemConfigKey(namespaceId));
    await expect(limits.getSystem()).rejects.toMatchObject(unreadable);
    await expect(limits.resolve("user-1", "gpt-4")).rejects.toMatchObject(unreadable);
    await limits.setSystem(["tpm:1"]);
    // An unknown mode counts as absent.
    expect(await limits.getSystem()).toMatchObject({ limits: [{ name: "tpm" }] });
    expect(await limits.getSystem()).not.toHaveProperty("onUnavailable");
    expect((await limits.resolve("user-1", "gpt-4"))?.onUnavailable).toBeUndefined();
    await spoil(systemConfigKey(namespaceId));
    await limits.deleteSystem();
    expect(await limits.getSystem()).toEqual({ limits: [] });
    await spoil(entityConfigKey(namespaceId, "user-1", "gpt-4"));
    await limits.deleteEntity("user-1", { resource: "gpt-4" });
    expect(await limits.getEntity("user-1", { resource: "gpt-4" })).toEqual([]);
  });

  it("the hierarchy of limits writes nothing when an argument is wrong", async () => {
    const repo = await store.open();
    const { limits } = repo;
    const wrong = "no#" as const;
    const refusals = [
      limits.setSystem(["rpm:many"]),
      limits.setSystem(["rpm:1", "rpm:2"]),
      limits.setSystem(["rpm:1"], { onUnavailable: "maybe" as "allow" }),
      limits.setSystem(["rpm:1"], { principal: "" }),
      limits.deleteSystem({ principal: wrong }),
      limits.setResource(wrong, ["rpm:1"]),
      limits.setResource("_default_", ["rpm:1"]),
      limits.setResource("gpt-4", "rpm:1" as unknown as string[]),
      limits.setResource("gpt-4", ["rpm:1"], { principal: wrong }),
      limits.getResource(""),
      limits.deleteResource(wrong),
      limits.setEntity(wrong, ["rpm:1"]),
      limits.setEntity("user-1", ["rpm:1"], { resource: wrong }),
      limits.setEntity("user-1", ["wcu:1"]),
      limits.setEntity("user-1", ["rpm:1"], { principal: wrong }),
      limits.getEntity(wrong),
      limits.getEntity("user-1", { resource: "" }),
      limits.deleteEntity("user-1", { resource: wrong }),
      limits.listEntities(wrong),
      limits.resolve(wrong, "gpt-4"),
      limits.resolve("user-1", "_default_"),
    ];
    const outcomes = await Promise.allSettled(refusals);
    expect(outcomes.map(({ status }) => status)).toEqual(refusals.map(() => "rejected"));
    for (const outcome of outcomes) {
      expect((outcome as PromiseRejectedResult).reason).toMatchObject({
        field: expect.any(String),
      });
    }
    expect(await store.itemsOf(systemPartition(repo.namespaceId))).toEqual([]);
    expect(await store.itemsOf(repo.namespaceId, "GSI4")).toEqual([]);
  });
});
