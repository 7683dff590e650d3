/**
 * The wire format. `test/fixtures/golden` holds items that the Python library wrote; for the same
 * input ours are the same, attribute for attribute, and theirs are read wherever ours are.
 */

import { readFileSync } from "node:fs";
import { windowStartMs } from "@zae-limiter/limiter/core/windows.ts";
import { decodeBucket, encodeBucket } from "@zae-limiter/limiter/records/bucket-item.ts";
import {
  auditPartition,
  entityConfigRegistryKey,
  namespaceIdKey,
  namespaceKey,
  resourceRegistryKey,
  systemConfigKey,
} from "@zae-limiter/limiter/records/keys.ts";
import { decodeUsage } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { decodeVersion, newVersionItem } from "@zae-limiter/limiter/records/version-record.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { decodeItem, encodeItem } from "@zae-limiter/limiter/storage/attribute-value.ts";
import { type Item, keyOf } from "@zae-limiter/limiter/storage/item.ts";
import { describeStores, newName, type TestStore } from "@zae-limiter/test-support/stores.ts";
import { describe, expect, it } from "vitest";

const NAMESPACE_ID = "OJEOS3iJbYI";
const PROVISIONED_NAMESPACE_ID = "LmC1y6UwDVo";
const DAY_SECONDS = 86_400;
const LIMITS = ["rpm:100", "tpm:10000/min:20000"];

/** The items of a fixture, moved into another namespace. */
function golden(file: string, namespaceId = NAMESPACE_ID, from = NAMESPACE_ID): Item[] {
  const text = readFileSync(
    new URL(`../../../../test/fixtures/golden/${file}.json`, import.meta.url),
    "utf8",
  );
  const parsed = JSON.parse(text.replaceAll(from, namespaceId)) as {
    items: Record<string, unknown>[];
  };
  return parsed.items.map(decodeItem);
}

/** Without what no two runs have in common. */
function timeless(item: Item | undefined, ...others: string[]): Record<string, unknown> {
  const aside = new Set(["created_at", "updated_at", "deleted_at", "timestamp", ...others]);
  return Object.fromEntries(Object.entries(item ?? {}).filter(([name]) => !aside.has(name)));
}

/** Expects the stored items of these keys to equal the given ones, apart from times. */
async function expectStored(
  store: TestStore,
  expected: readonly Item[],
  ...aside: string[]
): Promise<void> {
  const stored = await store.items.getMany(expected.map(keyOf), { consistent: true });
  expect(stored.map((item) => timeless(item, ...aside))).toEqual(
    expected.map((item) => timeless(item, ...aside)),
  );
}

/** Far from expiry, whenever the tests run: an engine removes what is over. */
function lasting(items: readonly Item[]): Item[] {
  const ttl = Math.floor(Date.now() / 1000) + DAY_SECONDS;
  return items.map((item) => (item.ttl === undefined ? item : { ...item, ttl }));
}

/** Repeats the run behind the fixtures, up to the first deletion. */
async function recreate({ entities, limits }: Repository): Promise<void> {
  const principal = "ops-team";
  const metadata = { tier: "gold", region: "eu" };
  await entities.create({ id: "org-1", name: "Org One", metadata, principal });
  await entities.create({ id: "key-1", parentId: "org-1", cascade: true, principal });
  await entities.create({ id: "key-2", parentId: "org-1" });
  await limits.setSystem(LIMITS, { onUnavailable: "allow", principal });
  await limits.setResource("gpt-4", LIMITS, { principal });
  await limits.setResource("openai/gpt-4o", LIMITS, { principal });
  await limits.setEntity("key-2", LIMITS, { resource: "gpt-4", principal });
  await limits.setEntity("key-2", LIMITS, { principal });
}

describeStores("golden items", (store) => {
  it("golden items 01 are those of namespaces", async () => {
    const repo = await store.open();
    const names = ["default", "tenant-a", "tenant-purging", "tenant-del"];
    const suffix = newName();
    const ids = await repo.namespaces.register(...names.map((name) => `${name}${suffix}`));
    await repo.namespaces.delete(`tenant-del${suffix}`);
    const theirIds = new Map(
      golden("01-namespace-registry").map((item) => [
        String(item.namespace_name),
        String(item.namespace_id),
      ]),
    );
    for (const name of names) {
      const [ourName, ourId] = [`${name}${suffix}`, ids[`${name}${suffix}`] as string];
      const ours = await store.items.getMany([namespaceKey(ourName), namespaceIdKey(ourId)]);
      const text = JSON.stringify(ours.filter((item) => item !== undefined).map(encodeItem))
        .replaceAll(ourName, name)
        .replaceAll(ourId, theirIds.get(name) as string);
      const expected = golden("01-namespace-registry")
        .filter((item) => item.namespace_name === name)
        .map((item) => [timeless(item), Object.keys(item).sort()]);
      const renamed = (JSON.parse(text) as Record<string, unknown>[]).map(decodeItem);
      const found = renamed.map((item) => [timeless(item), Object.keys(item).sort()]);
      expect(found, name).toEqual(expected);
    }
  });

  it("03 to 09 entities, limits and registries", async () => {
    const repo = await store.open();
    const { namespaceId } = repo;
    await recreate(repo);
    await expectStored(store, golden("03-entity-meta", namespaceId));
    // The version of the system's limits counts all changes of the namespace; there were five.
    await expectStored(store, golden("04-config-system", namespaceId), "config_version");
    const systemKey = systemConfigKey(namespaceId);
    const system = await store.items.get(systemKey, { consistent: true });
    expect(system?.config_version).toBe(5);
    await expectStored(store, golden("05-config-resource", namespaceId));
    await expectStored(store, golden("06-resources-registry", namespaceId));
    await expectStored(store, golden("07-config-entity", namespaceId));
    await expectStored(store, golden("08-entity-config-registry", namespaceId));

    await store.items.update(systemKey, { set: { audit_retention_days: 30 } });
    await repo.limits.setSystem(LIMITS);
    const retained = golden("09-config-system-with-audit-retention", namespaceId);
    await expectStored(store, retained, "config_version");

    await repo.limits.deleteEntity("key-2", { resource: "gpt-4" });
    await expectStored(store, golden("08b-entity-config-registry-after-delete", namespaceId));
    await repo.limits.deleteResource("openai/gpt-4o");
    await expectStored(store, golden("06b-resources-registry-after-delete", namespaceId));
    // Theirs keeps a count for what is gone (B29); ours does not.
    await repo.entities.delete("key-2");
    const registryKey = entityConfigRegistryKey(namespaceId);
    const registry = await store.items.get(registryKey, { consistent: true });
    expect(registry).toEqual({ ...registryKey, GSI4PK: namespaceId, GSI4SK: registryKey.PK });
  });

  it("golden items 17 are audit events of every action", async () => {
    const nowMs = Date.now();
    const repo = await store.open({ clock: () => nowMs, configCacheTtlSeconds: 0 });
    const { namespaceId, limits } = repo;
    await recreate(repo);
    await store.items.update(systemConfigKey(namespaceId), { set: { audit_retention_days: 30 } });
    if (!store.embedded)
      await store.items.writeMany({ puts: golden("12-bucket-no-ttl", namespaceId) });
    await limits.deleteEntity("key-2", { resource: "gpt-4", principal: "bob" });
    await limits.deleteResource("openai/gpt-4o", { principal: "bob" });
    await repo.entities.delete("key-2", { principal: "bob" });
    await limits.deleteSystem({ principal: "bob" });

    const expected = golden("17-audit-events", namespaceId);
    const subjects = [...new Set(expected.map((item) => String(item.entity_id)))];
    for (const subject of subjects) {
      const theirs = expected.filter((item) => item.entity_id === subject);
      const ours = await store.itemsOf(auditPartition(namespaceId, subject));
      const comparable = (item: Item) => {
        const retention = Number(item.ttl) - Math.floor(secondsOf(item));
        return { ...timeless(item, "SK", "event_id", "ttl"), retention };
      };
      const deleted = { records_deleted: store.embedded ? 2 : 3 };
      expect(ours.map(comparable), subject).toEqual(
        theirs
          .map((item) => (item.action === "entity_deleted" ? { ...item, details: deleted } : item))
          .map(comparable),
      );
      for (const item of ours) expect(item.SK).toBe(`#AUDIT#${String(item.event_id)}`);
    }
  });

  it("golden items 03 to 09 of the Python library are read like ours", async () => {
    const repo = await store.open();
    const { namespaceId, limits, entities } = repo;
    const files = ["03-entity-meta", "05-config-resource", "06-resources-registry"];
    const more = ["07-config-entity", "08-entity-config-registry", "04-config-system"];
    const puts = [...files, ...more].flatMap((file) => golden(file, namespaceId));
    await store.items.writeMany({ puts });
    expect(await entities.get("org-1")).toMatchObject({
      id: "org-1",
      name: "Org One",
      parentId: undefined,
      cascade: false,
      metadata: { tier: "gold", region: "eu" },
      createdAt: "2026-11-15T18:32:29Z",
    });
    const children = await entities.children("org-1");
    expect(children.map(({ id, cascade }) => [id, cascade])).toEqual([
      ["key-1", true],
      ["key-2", false],
    ]);
    const texts = ["rpm:100/min", "tpm:10000/min:20000"];
    expect(await limits.getSystem()).toMatchObject({ onUnavailable: "allow" });
    expect((await limits.getResource("openai/gpt-4o")).map(String)).toEqual(texts);
    expect((await limits.getEntity("key-2")).map(String)).toEqual(texts);
    expect(await limits.listResources()).toEqual(["gpt-4", "openai/gpt-4o"]);
    expect(await limits.listEntityResources()).toEqual(["_default_", "gpt-4"]);
    expect(await limits.listEntities("gpt-4")).toEqual({ entityIds: ["key-2"] });
    const sources = [
      await limits.resolve("key-2", "gpt-4"),
      await limits.resolve("key-2", "x"),
      await limits.resolve("key-1", "gpt-4"),
      await limits.resolve("key-1", "x"),
    ];
    expect(sources.map((found) => found?.source)).toEqual([
      "entity",
      "entity_default",
      "resource",
      "system",
    ]);
    for (const found of sources) {
      expect(found?.limits.map(String)).toEqual(texts);
      expect(found?.onUnavailable).toBe("allow");
    }
    // And changed like ours.
    await limits.deleteEntity("key-2", { resource: "gpt-4" });
    await expectStored(store, golden("08b-entity-config-registry-after-delete", namespaceId));
    await limits.setSystem(["rpm:1"]);
    expect((await store.items.get(systemConfigKey(namespaceId)))?.config_version).toBe(3);
  });

  it("golden items 17 of the Python library are read like ours", async () => {
    const repo = await store.open();
    const events = lasting(golden("17-audit-events", repo.namespaceId));
    await store.items.writeMany({ puts: events });
    const actions = async (subject: string) =>
      (await repo.audit.list(subject)).map(({ action, principal }) => [action, principal]);
    expect(await actions("key-2")).toEqual([
      ["entity_deleted", "bob"],
      ["limits_deleted", "bob"],
      ["limits_set", "ops-team"],
      ["limits_set", "ops-team"],
      ["entity_created", undefined],
    ]);
    expect(await actions("$SYSTEM")).toEqual([
      ["limits_deleted", "bob"],
      ["limits_set", "ops-team"],
    ]);
    expect(await actions("$RESOURCE:openai/gpt-4o")).toHaveLength(2);
    expect(await repo.audit.list("org-1")).toEqual([
      {
        eventId: "01M7G7PX76Z6KZAK4FZ2WJKRA8",
        timestamp: "2026-11-15T18:32:29Z",
        action: "entity_created",
        entityId: "org-1",
        principal: "ops-team",
        details: {
          cascade: false,
          metadata: { region: "eu", tier: "gold" },
          name: "Org One",
          parent_id: null,
        },
      },
    ]);
  });

  it("30 limits of their provisioner apply, and can be replaced and deleted", async () => {
    const repo = await store.open();
    const { namespaceId, limits } = repo;
    const puts = golden("30-provisioner", namespaceId, PROVISIONED_NAMESPACE_ID);
    await store.items.writeMany({ puts });
    const resolved = async (id: string, resource: string) => {
      const found = await limits.resolve(id, resource);
      return [found?.source, found?.onUnavailable, ...(found?.limits.map(String) ?? [])];
    };
    expect(await resolved("user-1", "x")).toEqual(["system", "block", "rpm:1000/min"]);
    expect(await resolved("user-1", "gpt-4")).toEqual([
      "resource",
      "block",
      "rpm:500/min",
      "tpm:25000/30sec:50000",
    ]);
    expect(await resolved("user-premium", "gpt-4")).toEqual(["entity", "block", "rpm:1000/min"]);

    // Theirs are not counted, so what happens to them must not touch the counts of others.
    const count = async () => {
      const item = await store.items.get(entityConfigRegistryKey(namespaceId), {
        consistent: true,
      });
      return item?.["gpt-4"];
    };
    const gpt4 = { resource: "gpt-4" };
    await limits.setEntity("user-1", ["rpm:1"], gpt4);
    expect(await count()).toBe(1);
    await limits.setEntity("user-premium", ["rpm:2"], gpt4);
    expect(await count()).toBe(2);
    expect((await limits.listEntities("gpt-4")).entityIds).toEqual(["user-1", "user-premium"]);
    await limits.deleteEntity("user-premium", gpt4);
    expect(await count()).toBe(1);
    const theirs = puts.filter(({ SK }) => SK === "#CONFIG#gpt-4");
    await store.items.writeMany({ puts: theirs });
    await limits.deleteEntity("user-premium", gpt4);
    expect(await limits.getEntity("user-premium", gpt4)).toEqual([]);
    expect(await count()).toBe(1);
    await store.items.writeMany({ puts: theirs });
    await repo.entities.delete("user-premium");
    expect(await count()).toBe(1);
    expect(await limits.listEntityResources()).toEqual(["gpt-4"]);

    await limits.setResource("gpt-4", ["rpm:3"]);
    expect(await limits.listResources()).toEqual(["gpt-4"]);
    await limits.deleteResource("gpt-4");
    expect(await limits.listResources()).toEqual([]);
    await limits.setSystem(["rpm:4"]);
    const system = await store.items.get(systemConfigKey(namespaceId), { consistent: true });
    expect(system).toMatchObject({ GSI4SK: `${namespaceId}/SYSTEM#`, on_unavailable: "block" });
    await limits.deleteSystem();
    expect(await limits.getSystem()).toEqual({ limits: [] });
  });

  it("30 a resource of their provisioner can be deleted at once", async () => {
    const repo = await store.open();
    const puts = golden("30-provisioner", repo.namespaceId, PROVISIONED_NAMESPACE_ID);
    await store.items.writeMany({ puts });
    await repo.limits.deleteResource("gpt-4");
    expect((await repo.limits.resolve("user-1", "gpt-4"))?.source).toBe("system");
    const registryKey = resourceRegistryKey(repo.namespaceId);
    expect(await store.items.get(registryKey, { consistent: true })).toBeUndefined();
  });
});

describe("golden items, coded", () => {
  it("golden item 02 is the version record", () => {
    const [theirs] = golden("02-version-record");
    const ours = newVersionItem(Date.now());
    const aside = ["schema_version", "lambda_version", "updated_by"];
    expect(timeless(ours, ...aside)).toEqual(timeless(theirs, ...aside));
    expect(Object.keys(ours).sort()).toEqual(Object.keys(theirs ?? {}).sort());
    expect(decodeVersion(theirs as Item)).toEqual({
      schemaVersion: "0.10.0",
      lambdaVersion: "0.12.1",
      clientMinVersion: "0.0.0",
      updatedAt: "2026-11-15T18:32:29Z",
      updatedBy: "client:0.12.1",
    });
  });

  it.each([
    "10-bucket-ttl",
    "11-bucket-ttl-after-speculative",
    "12-bucket-no-ttl",
    "13-bucket-cascade-child-and-parent",
    "14-bucket-override",
    "15-bucket-negative",
    "16a-bucket-sharded-before-propagation",
    "16b-bucket-sharded-4",
    "22-bucket-aggregator-refill",
  ])("golden item %s comes back as it was", (file) => {
    for (const item of golden(file)) {
      const bucket = decodeBucket(item);
      if (bucket === undefined) throw new Error(`${item.PK} is no bucket`);
      const encoded = encodeBucket(NAMESPACE_ID, bucket);
      expect(encodeItem(encoded)).toEqual(encodeItem(item));
      expect(decodeBucket(encoded)).toEqual(bucket);
    }
  });

  it("golden items 10 to 16 mean what they say", () => {
    const [first] = golden("10-bucket-ttl").map(decodeBucket);
    expect(first).toMatchObject({
      entityId: "plain",
      resource: "gpt-4",
      shard: 0,
      shardCount: 1,
      refilledAtMs: 1_794_767_549_901,
      cascade: false,
      parentId: undefined,
      ttl: 1_794_768_389,
      configVersion: 0,
      configSource: undefined,
    });
    expect([...(first?.limits.keys() ?? [])].sort()).toEqual(["rpm", "tpm"]);
    expect(first?.limits.get("tpm")).toEqual({
      tokensMilli: 19_500_000,
      rate: { capacityMilli: 20_000_000, refillMilli: 10_000_000, periodMs: 60_000 },
      totalConsumedMilli: 500_000,
      remainder: 0,
    });
    expect(first?.writes?.rate).toEqual({
      capacityMilli: 1_000_000,
      refillMilli: 1_000_000,
      periodMs: 1000,
    });
    expect(golden("12-bucket-no-ttl").map(decodeBucket)[0]?.ttl).toBeUndefined();
    expect(golden("13-bucket-cascade-child-and-parent").map(decodeBucket)).toMatchObject([
      { entityId: "key-1", cascade: true, parentId: "org-1", resource: "openai/gpt-4o" },
      { entityId: "org-1", cascade: false, parentId: undefined },
    ]);
    const [debt] = golden("15-bucket-negative").map(decodeBucket);
    expect(debt?.limits.get("tpm")?.tokensMilli).toBe(-10_500_000);
    const shards = golden("16b-bucket-sharded-4").map(decodeBucket);
    expect(shards.map((shard) => [shard?.shard, shard?.shardCount])).toEqual([
      [0, 4],
      [1, 4],
      [2, 4],
      [3, 4],
    ]);
  });

  it("golden items 21 are those of usage", () => {
    const snapshots = golden("21-usage-snapshots").map(decodeUsage);
    expect(snapshots[0]).toEqual({
      entityId: "hot",
      resource: "gpt-4",
      windowType: "daily",
      windowStart: "2026-11-15T00:00:00Z",
      windowEnd: "2026-11-15T23:59:59Z",
      counters: { rpm: 4, tpm: 2000 },
      totalEvents: 8,
    });
    expect(snapshots.map((snapshot) => [snapshot?.windowType, snapshot?.windowEnd])).toEqual([
      ["daily", "2026-11-15T23:59:59Z"],
      ["hourly", "2026-11-15T18:59:59Z"],
      ["monthly", "2026-11-30T23:59:59Z"],
      ["daily", "2026-11-15T23:59:59Z"],
      ["hourly", "2026-11-15T18:59:59Z"],
    ]);
    for (const snapshot of snapshots) {
      const startMs = Date.parse(snapshot?.windowStart ?? "");
      const type = snapshot?.windowType as "hourly";
      expect(windowStartMs(type, startMs)).toBe(startMs);
    }
  });
});

function secondsOf(event: Item): number {
  return Date.parse(String(event.timestamp)) / 1000;
}
