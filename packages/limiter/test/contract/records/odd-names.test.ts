/**
 * B36: names that are also attribute names, or members of every JavaScript object, are only names.
 */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { entityConfigRegistryKey } from "@zae-limiter/limiter/records/keys.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";

/** Names that providers give models; the last one is as long as a resource may be. */
const MODELS = [
  "123",
  "01-ai/yi-34b",
  "@cf/meta/llama-3.1-8b-instruct",
  "anthropic.claude-3-5-sonnet-20241022-v2:0",
  "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-3-7-sonnet-v1:0",
  "claude-3-5-sonnet@20240620",
  "deepseek/deepseek-r1:free",
  "ft:gpt-4o-mini-2024-07-18:my-org::AbC123",
  "llama3.1:8b",
  `m${":".repeat(255)}`,
];

const RESOURCES = [
  ...MODELS,
  "GSI1PK",
  "GSI3SK",
  "GSI4PK",
  "GSI4SK",
  "LSI1SK",
  "PK",
  "SK",
  "config_version",
  "constructor",
  "entity_id",
  "hasOwnProperty",
  "resources",
  "toString",
  "ttl",
  "wcu",
];

const LIMITS = [
  "PK",
  "a.b-c",
  "constructor",
  "gpt-3.5",
  "hasOwnProperty",
  "l_x_cp",
  "toString",
  "ttl",
  "x",
  "x_cp",
  "x_cp_cp",
  "x_ra",
  "x_tk",
];

describeStores("odd names", (store) => {
  it("odd names of resources work for the limits of entities", async () => {
    const repo = await store.open();
    const resources = [...new Set([...store.variants(RESOURCES, 5), "PK", "constructor"])];
    const { limits } = repo;
    for (const resource of resources) await limits.setEntity("user-1", ["rpm:1"], { resource });
    await limits.setEntity("user-2", ["rpm:2"], { resource: "PK" });
    expect(await limits.listEntityResources()).toEqual([...resources].sort());
    for (const resource of resources) {
      const [limit] = await limits.getEntity("user-1", { resource });
      expect(limit?.capacity, resource).toBe(1);
      expect((await limits.resolve("user-1", resource))?.source, resource).toBe("entity");
      const expected = resource === "PK" ? ["user-1", "user-2"] : ["user-1"];
      expect((await limits.listEntities(resource)).entityIds, resource).toEqual(expected);
    }
    await limits.deleteEntity("user-1", { resource: "constructor" });
    await limits.deleteEntity("user-1", { resource: "PK" });
    const left = resources.filter((resource) => resource !== "constructor");
    expect(await limits.listEntityResources()).toEqual([...left].sort());
    await repo.entities.delete("user-1");
    expect(await limits.listEntityResources()).toEqual(["PK"]);
    // Nothing is left but the keys and the one count.
    const key = entityConfigRegistryKey(repo.namespaceId);
    const registry = await store.items.get(key, { consistent: true });
    expect(registry).toEqual({
      ...key,
      GSI4PK: repo.namespaceId,
      GSI4SK: key.PK,
      "#PK": 1,
    });
  });

  it("odd names of resources work for the limits of resources", async () => {
    const { limits } = await store.open();
    const resources = [...new Set([...store.variants(RESOURCES, 5), "toString"])];
    for (const resource of resources) await limits.setResource(resource, ["rpm:1"]);
    expect(await limits.listResources()).toEqual([...resources].sort());
    expect((await limits.resolve("user-1", "toString"))?.source).toBe("resource");
    expect(await limits.getResource("valueOf")).toEqual([]);
    for (const resource of resources) await limits.deleteResource(resource);
    expect(await limits.listResources()).toEqual([]);
    expect(await limits.resolve("user-1", "toString")).toBeUndefined();
  });

  it("odd names of models are resources that calls consume from and that are found again", async () => {
    const repo = await store.open();
    const limiter = new RateLimiter(repo);
    const longest = "k".repeat(256);
    await repo.limits.setSystem(["rpm:10"]);
    for (const [at, resource] of store.variants(MODELS, 4).entries()) {
      const lease = await limiter.acquire({ entityId: longest, resource, consume: { rpm: at } });
      await lease.commit();
      const [status] = await limiter.status({ entityId: longest, resource });
      expect(status?.available, resource).toBe(10 - at);
      const buckets = await repo.buckets.list(longest, { resource });
      expect(
        buckets.map((bucket) => bucket.resource),
        resource,
      ).toEqual([resource]);
    }
  });

  it("odd names of limits work at every level", async () => {
    const { limits } = await store.open();
    const all = LIMITS.map((name, index) => `${name}:${index + 1}`);
    const expected = all.map((text) => `${text}/min`);
    const resolved = async () => (await limits.resolve("user-1", "gpt-4"))?.limits.map(String);
    await limits.setSystem(all);
    expect((await limits.getSystem()).limits.map(String)).toEqual(expected);
    expect(await resolved()).toEqual(expected);
    await limits.setSystem(["constructor:9"]);
    expect((await limits.getSystem()).limits.map(String)).toEqual(["constructor:9/min"]);
    await limits.deleteSystem();
    expect(await limits.getSystem()).toEqual({ limits: [] });
    await limits.setResource("gpt-4", all);
    expect((await limits.getResource("gpt-4")).map(String)).toEqual(expected);
    expect(await resolved()).toEqual(expected);
    await limits.deleteResource("gpt-4");
    await limits.setEntity("user-1", all);
    expect((await limits.getEntity("user-1")).map(String)).toEqual(expected);
    expect(await resolved()).toEqual(expected);
    await limits.deleteEntity("user-1");
    expect(await resolved()).toBeUndefined();
  });

  it("odd names of entities, namespaces and metadata work", async () => {
    const repo = await store.open();
    const longest = "x".repeat(256);
    const metadata = JSON.parse('{"__proto__":{"admin":true},"constructor":1}') as object;
    for (const id of ["constructor", "0", "a:b@c.d-e_f", longest]) {
      await repo.entities.create({ id, metadata: metadata as Record<string, never> });
      const entity = await repo.entities.get(id);
      expect(entity?.id).toBe(id);
      expect(JSON.stringify(entity?.metadata)).toContain('"__proto__":{"admin":true}');
      expect({ ...entity?.metadata }).not.toHaveProperty("admin");
      expect(await repo.audit.list(id)).toHaveLength(1);
      await repo.limits.setEntity(id, ["rpm:1"]);
    }
    expect((await repo.limits.listEntities("_default_")).entityIds).toContain(longest);
    expect(await repo.entities.get("toString")).toBeUndefined();

    const names = ["__proto__", "constructor", "a#b/c?d", "ü 漢字", "toString"].map(
      (name, index) => (index === 0 ? name : `${repo.namespaceName} ${name}`),
    );
    const ids = await repo.namespaces.register(...names);
    expect(Object.keys(ids).sort()).toEqual([...names].sort());
    for (const name of names) {
      const scoped = await repo.namespace(name);
      expect(scoped.namespaceId).toBe(Object.entries(ids).find(([key]) => key === name)?.[1]);
    }
  });
});
