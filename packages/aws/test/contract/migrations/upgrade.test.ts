/** Tables of the Python library, brought up to date, seen through the library. */

import { planMigrations, runMigrations } from "@zae-limiter/aws/migrations/migrations.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { bucketKey, versionKey } from "@zae-limiter/limiter/records/keys.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import {
  bucketOfEntity,
  contentsOf08,
  DAY,
  DEFAULT_ID,
  firstTable,
  HOUR,
  NOW,
  namespace,
  OTHER_ID,
  table08,
  table08Namespaced,
  version,
} from "@zae-limiter/test-support/old-tables.ts";
import { expect, it } from "vitest";
import { contents, describeTables, fill } from "./tables.ts";

const clock = () => NOW;

/** What a table of 0.8.0 holds, as the library sees it. */
async function expectContentsOf08(repo: Repository): Promise<void> {
  expect(await repo.entities.get("org-1")).toMatchObject({
    id: "org-1",
    name: "The org-1",
    metadata: { tier: "gold" },
    createdAt: "2026-01-01T00:00:00Z",
  });
  expect((await repo.entities.children("org-1")).map(({ id }) => id)).toEqual(["key-1"]);
  const system = await repo.limits.getSystem();
  expect([system.limits.map(String), system.onUnavailable]).toEqual([["rpm:50/min"], "block"]);
  // The burst is what the bucket can hold.
  expect((await repo.limits.getResource("gpt-4")).map(String)).toEqual([
    "rpm:100/min",
    "tpm:10000/min:15000",
  ]);
  expect((await repo.limits.getEntity("key-1")).map(String)).toEqual(["rpm:10/min:20"]);
  expect(await repo.limits.listResources()).toEqual(["gpt-4"]);
  expect((await repo.limits.listEntities("_default_")).entityIds).toEqual(["key-1"]);
  const { snapshots } = await repo.usage.snapshots({ entityId: "key-1", resource: "gpt-4" });
  expect(
    snapshots.map(({ windowType, windowStart, counters, totalEvents }) => [
      windowType,
      windowStart,
      counters,
      totalEvents,
    ]),
  ).toEqual([
    ["hourly", HOUR, { rpm: 4, tpm: 2100 }, 8],
    ["daily", DAY, { rpm: 9, tpm: 5000 }, 18],
  ]);
  const { snapshots: byResource } = await repo.usage.snapshots({ resource: "gpt-4" });
  expect(byResource).toHaveLength(2);
  const [event] = await repo.audit.list("org-1");
  expect(event).toMatchObject({ action: "entity_created", principal: "ops-team" });
}

describeTables("a table of an older version", (tables) => {
  it("a table of 0.8.0 without namespaces is brought up to date, balances included", async () => {
    await fill(tables.store, table08());
    const plan = await planMigrations(tables.store);
    expect(plan).toMatchObject({ schemaVersion: "0.8.0", targetVersion: "0.11.0" });
    expect(plan.pending.map((step) => step.version)).toEqual(["0.7.0", "0.8.0", "0.9.0", "0.11.0"]);

    const report = await runMigrations(tables.store, { clock });
    expect(report).toMatchObject({ completed: true, fromVersion: "0.8.0", toVersion: "0.11.0" });
    const repo = await tables.open({ clock });
    expect(await repo.version()).toMatchObject({ schemaVersion: "0.11.0", lambdaVersion: "0.9.1" });
    await expectContentsOf08(repo);
    // Counted again: the deleted entity is not counted any more.
    expect(await repo.limits.listEntityResources()).toEqual(["_default_"]);
    expect((await contents(tables.store)).filter(({ PK }) => !PK.includes("/"))).toEqual([]);

    // The balances and parent links of buckets.
    const limiter = new RateLimiter(repo);
    // 40 were left six seconds ago, and 10 have come since; the debt of 500 is 500 in surplus now.
    expect(await limiter.available({ entityId: "org-1", resource: "gpt-4" })).toEqual({
      rpm: 50,
      tpm: 500,
    });
    // The entity has limits of its own by now, and charges its parent as before.
    await limiter.acquire({ entityId: "key-1", resource: "gpt-4", consume: { rpm: 5 } });
    expect(await limiter.available({ entityId: "org-1", resource: "gpt-4" })).toEqual({
      rpm: 45,
      tpm: 500,
    });
    const bucket = await tables.store.get(bucketKey(repo.namespaceId, "org-1", "gpt-4", 0));
    // What was consumed before has been counted before.
    expect(bucket).toMatchObject({ b_rpm_tc: 5000, b_tpm_tc: 0, b_tpm_cp: 15_000_000 });
    expect(bucket).toMatchObject({ shard_count: 1, GSI3SK: "BUCKET#gpt-4#0" });
  });

  it("a table of 0.8.0 with namespaces keeps them apart", async () => {
    await fill(tables.store, table08Namespaced());
    const plan = await planMigrations(tables.store);
    expect(plan.pending.map((step) => step.version)).toEqual(["0.9.0", "0.11.0"]);
    const report = await runMigrations(tables.store, { clock });
    expect(report.migrations.map(({ changes }) => changes)).toEqual([
      { "bursts of limits": 6, buckets: 4 },
      { "usage keys": 4 },
    ]);
    const repo = await tables.open({ clock });
    expect(repo.namespaceId).toBe(DEFAULT_ID);
    await expectContentsOf08(repo);
    const other = await tables.open({ namespace: "tenant-a", clock });
    expect(other.namespaceId).toBe(OTHER_ID);
    await expectContentsOf08(other);
    expect((await other.buckets.list("key-1")).map(({ resource }) => resource)).toContain("gpt-4");
  });

  it("a table of the first layouts comes all the way", async () => {
    await fill(tables.store, firstTable());
    await runMigrations(tables.store, { clock });
    const repo = await tables.open({ clock });
    expect(await repo.version()).toMatchObject({ schemaVersion: "0.11.0", lambdaVersion: "0.5.0" });
    expect(await repo.entities.get("key-1")).toMatchObject({
      name: "Key One",
      parentId: "org-1",
      metadata: { tier: "gold" },
    });
    const system = await repo.limits.getSystem();
    expect([system.limits.map(String), system.onUnavailable]).toEqual([["rpm:50/min"], "allow"]);
    expect((await repo.limits.getResource("gpt-4")).map(String)).toEqual([
      "rpm:100/min",
      "tpm:10000/min:15000",
    ]);
    const ofEntity = await repo.limits.getEntity("key-1", { resource: "gpt-4" });
    expect(ofEntity.map(String)).toEqual(["rpm:10/min:20"]);
    expect(await repo.limits.listResources()).toEqual(["gpt-4"]);
    expect(await repo.limits.listEntityResources()).toEqual(["gpt-4"]);
    expect((await repo.audit.list("key-1"))[0]).toMatchObject({ principal: "ops-team" });
    // Two times of refill have become one, whichever came first: 40 rpm at -6 s and 2,000 tpm at
    // -3 s are 50 and 2,500 now.
    const item = await tables.store.get(bucketKey(repo.namespaceId, "key-1", "gpt-4", 0));
    const { rf, b_rpm_tk: rpm, b_tpm_tk: tpm } = item as unknown as Record<string, number>;
    const accrued = (perMinute: number) => ((NOW - (rf as number)) * perMinute) / 60_000;
    expect((rpm as number) + accrued(100_000)).toBe(50_000);
    expect((tpm as number) + accrued(10_000_000)).toBe(2_500_000);
    expect([NOW - 6000, NOW - 3000]).toContain(rf);
    expect((await contents(tables.store)).filter(({ PK }) => !PK.includes("/"))).toEqual([]);
  });

  it("a table of an older version is not changed by a second run, nor is a table of our own", async () => {
    await fill(tables.store, table08());
    await runMigrations(tables.store, { clock });
    const before = await contents(tables.store);
    const again = await runMigrations(tables.store, { clock });
    expect(again).toMatchObject({ completed: true, migrations: [] });
    expect(await contents(tables.store)).toEqual(before);
    // Even if all rules looked at every item again.
    await tables.store.delete(versionKey());
    const all = await runMigrations(tables.store, { clock });
    expect(all.migrations.map(({ version: to, changed }) => [to, changed])).toEqual([
      ["0.7.0", 0],
      ["0.8.0", 0],
      ["0.9.0", 0],
      ["0.11.0", 0],
    ]);
    const lasting = (items: typeof before) => items.filter(({ SK }) => SK !== "#VERSION");
    expect(lasting(await contents(tables.store))).toEqual(lasting(before));
  });

  it("a table of an older version keeps records that were already copied into the namespace", async () => {
    // The Python library's own script copies, and leaves the originals.
    await fill(tables.store, [
      ...table08(),
      version("0.10.0"),
      ...namespace("default", DEFAULT_ID),
      ...contentsOf08(DEFAULT_ID),
    ]);
    await tables.store.update(
      { PK: `${DEFAULT_ID}/RESOURCE#gpt-4`, SK: "#CONFIG" },
      { set: { l_rpm_cp: 70, l_rpm_bx: 70 } },
    );
    await runMigrations(tables.store, { clock });
    const repo = await tables.open({ clock });
    expect(repo.namespaceId).toBe(DEFAULT_ID);
    expect((await repo.limits.getResource("gpt-4")).map(String)).toContain("rpm:100/min:70");
    expect((await contents(tables.store)).filter(({ PK }) => !PK.includes("/"))).toEqual([]);
  });

  it("an upgrade leaves items alone that are not ours, or whose namespace is being purged", async () => {
    const foreign = [
      { PK: "ORDER#1", SK: "#BUCKET#gpt-4", data: { x: 1 } },
      { PK: "shop/ENTITY#1", SK: "#USAGE#a#2026-01-01T00:00:00Z", window: "daily" },
      bucketOfEntity("gone", "key-1"),
    ];
    await fill(tables.store, [
      version("0.8.0"),
      ...namespace("default", DEFAULT_ID),
      ...namespace("tenant-gone", "gone", "purging"),
      ...foreign,
    ]);
    const report = await runMigrations(tables.store, { clock });
    expect(report.migrations.map(({ changed }) => changed)).toEqual([0, 0]);
    const stored = await tables.store.getMany(foreign);
    expect(stored).toEqual(foreign);
  });

  it("a table of an older version forgets buckets whose time is over, and those that cannot be read", async () => {
    await fill(tables.store, [
      version("0.8.0"),
      ...namespace("default", DEFAULT_ID),
      bucketOfEntity(DEFAULT_ID, "late", { ttl: NOW / 1000 - 10 }),
      { PK: `${DEFAULT_ID}/ENTITY#stub`, SK: "#BUCKET#gpt-4", b_rpm_tk: 5, b_rpm_tc: 5 },
    ]);
    await runMigrations(tables.store, { clock });
    const left = (await contents(tables.store)).map(({ PK }) => PK);
    expect(left.filter((PK) => PK.includes("late") || PK.includes("stub"))).toEqual([]);
  });
});
