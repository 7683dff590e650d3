/** Tables of the Python library, brought up to date, seen through the library. */

import { planMigrations, runMigrations } from "@zae-limiter/aws/migrations/migrations.ts";
import { versionKey } from "@zae-limiter/limiter/records/keys.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import {
  bucketOfEntity,
  DAY,
  DEFAULT_ID,
  HOUR,
  NOW,
  namespace,
  OTHER_ID,
  unfinishedTable,
  version,
} from "@zae-limiter/test-support/old-tables.ts";
import { expect, it } from "vitest";
import { contents, describeTables, fill } from "./tables.ts";

const clock = () => NOW;

/** Expects the contents of a namespace of an unfinished table, as the library reads them. */
async function expectContents(repo: Repository): Promise<void> {
  expect(await repo.entities.get("key-1")).toMatchObject({ id: "key-1", name: "The key-1" });
  expect(await repo.limits.listResources()).toEqual(["gpt-4"]);
  expect(await repo.limits.listEntityResources()).toEqual(["gpt-4"]);
  expect((await repo.limits.listEntities("gpt-4")).entityIds).toEqual(["key-1"]);
  const limits = await repo.limits.getEntity("key-1", { resource: "gpt-4" });
  expect(limits.map(String)).toEqual(["rpm:10/min"]);
  expect(await repo.buckets.list("key-1")).toEqual([]);
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
}

describeTables("a table of an older version", (tables) => {
  it.each(["0.9.0", "0.10.0"])(
    "a table of %s is brought up to date, and keeps its namespaces apart",
    async (schema) => {
      await fill(tables.store, unfinishedTable(schema));
      const plan = await planMigrations(tables.store);
      expect(plan).toMatchObject({ schemaVersion: schema, targetVersion: "0.11.0" });
      expect(plan.pending.map((step) => step.version)).toEqual(["0.11.0"]);

      const report = await runMigrations(tables.store, { clock });
      expect(report).toMatchObject({ completed: true, fromVersion: schema, toVersion: "0.11.0" });
      expect(report.migrations.map(({ changes }) => changes)).toEqual([
        {
          "audit retention": 1,
          "unused buckets": 2,
          "remains of buckets": 2,
          "limits of entities": 2,
          "index keys": 2,
          "usage keys": 4,
        },
      ]);
      const repo = await tables.open({ clock });
      expect(repo.namespaceId).toBe(DEFAULT_ID);
      expect(await repo.version()).toMatchObject({
        schemaVersion: "0.11.0",
        lambdaVersion: "0.9.1",
      });
      await expectContents(repo);
      const other = await tables.open({ namespace: "tenant-a", clock });
      expect(other.namespaceId).toBe(OTHER_ID);
      await expectContents(other);
    },
  );

  it("a table of an older version is not changed by a second run, nor is a table of our own", async () => {
    await fill(tables.store, unfinishedTable("0.10.0"));
    await runMigrations(tables.store, { clock });
    const before = await contents(tables.store);
    const again = await runMigrations(tables.store, { clock });
    expect(again).toMatchObject({ completed: true, migrations: [] });
    expect(await contents(tables.store)).toEqual(before);
    // Even if all rules read every item again.
    await tables.store.delete(versionKey());
    const all = await runMigrations(tables.store, { clock });
    expect(all.migrations.map(({ version: to, changed }) => [to, changed])).toEqual([
      ["0.11.0", 0],
    ]);
    const lasting = (items: typeof before) => items.filter(({ SK }) => SK !== "#VERSION");
    expect(lasting(await contents(tables.store))).toEqual(lasting(before));
  });

  it("an upgrade leaves items alone that are not ours, or whose namespace is being purged", async () => {
    const foreign = [
      { PK: "ORDER#1", SK: "#BUCKET#gpt-4", data: { x: 1 } },
      { PK: "shop/ENTITY#1", SK: "#USAGE#a#2026-01-01T00:00:00Z", window: "daily" },
      bucketOfEntity("gone", "key-1"),
      // Copied into the namespace by the Python library's script, and not yet deleted.
      { PK: "SYSTEM#", SK: "#CONFIG", audit_retention_days: 14, l_rpm_cp: 50 },
      bucketOfEntity(undefined, "key-1"),
    ];
    await fill(tables.store, [
      version("0.10.0"),
      ...namespace("default", DEFAULT_ID),
      ...namespace("tenant-gone", "gone", "purging"),
      ...foreign,
    ]);
    const report = await runMigrations(tables.store, { clock });
    expect(report.migrations.map(({ changed }) => changed)).toEqual([0]);
    const stored = await tables.store.getMany(foreign);
    expect(stored).toEqual(foreign);
  });
});
