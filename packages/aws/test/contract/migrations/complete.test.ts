/** A table of 0.10.0, as the Python library really writes it: the golden items. */

import { readdirSync, readFileSync } from "node:fs";
import { rollbackMigrations, runMigrations } from "@zae-limiter/aws/migrations/migrations.ts";
import { decodeItem } from "@zae-limiter/limiter/storage/attribute-value.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import {
  bucketOfEntity,
  DAY,
  DEFAULT_ID,
  NOW,
  OTHER_ID,
  usage,
} from "@zae-limiter/test-support/old-tables.ts";
import { expect, it } from "vitest";
import { contents, describeTables, fill, type Tables } from "./tables.ts";

const clock = () => NOW;
const GOLDEN = new URL("../../../../../test/fixtures/golden/", import.meta.url);
/** Files that show items of a table; the others show results made from them. */
const TABLE_FILE = /^(?:0\d|1\d|21|22|30)/;
/** Items that stay where nothing else is changed. */
const USAGE_SK = /^#USAGE#/;

/** All golden items, those of a later moment over those of an earlier one. */
function golden(): Item[] {
  const items = new Map<string, Item>();
  for (const file of readdirSync(GOLDEN)
    .filter((name) => TABLE_FILE.test(name))
    .sort()) {
    const text = readFileSync(new URL(file, GOLDEN), "utf8");
    const parsed = JSON.parse(text) as { items: Record<string, unknown>[] };
    for (const item of parsed.items.map(decodeItem)) items.set(`${item.PK} ${item.SK}`, item);
  }
  return [...items.values()].map((item) =>
    // Far from expiry: an engine removes what is over.
    item.ttl === undefined ? item : { ...item, ttl: NOW / 1000 + 86_400 },
  );
}

/** Returns items that the Python library can leave behind, beyond the golden items. */
function leftBehind(): Item[] {
  return [
    // A bucket from before 0.9.0 that is in use at its new place, and one that is not.
    bucketOfEntity(DEFAULT_ID, "plain"),
    bucketOfEntity(DEFAULT_ID, "idle"),
    // Something was given back to a bucket that had been deleted.
    { PK: `${DEFAULT_ID}/BUCKET#ghost#gpt-4#0`, SK: "#STATE", b_rpm_tk: 5000, b_rpm_tc: -5000 },
    // Written under the name of the namespace.
    { PK: "default/SYSTEM#", SK: "#CONFIG", GSI4PK: "default", audit_retention_days: 14 },
  ];
}

/** It has gained attributes at most, except where it had to move. */
function expectOnlyMore(after: ReadonlyMap<string, Item>): void {
  const touched = new Set(["#VERSION", "#ENTITY_CONFIG_RESOURCES"]);
  for (const item of golden()) {
    if (USAGE_SK.test(item.SK) || touched.has(item.SK)) continue;
    const { config_version: _, ...rest } = item;
    expect(after.get(`${item.PK} ${item.SK}`)).toMatchObject(rest);
  }
}

/** Declarative limits are listed, counted once, and found by a purge. */
async function expectDeclarativeLimits(tables: Tables): Promise<void> {
  const repo = await tables.open({ namespace: "tenant-a", clock });
  expect(repo.namespaceId).toBe(OTHER_ID);
  expect(await repo.limits.listResources()).toEqual(["gpt-4"]);
  expect(await repo.limits.listEntityResources()).toEqual(["gpt-4"]);
  expect((await repo.limits.listEntities("gpt-4")).entityIds).toEqual(["user-premium"]);
  await repo.limits.deleteEntity("user-premium", { resource: "gpt-4" });
  expect(await repo.limits.listEntityResources()).toEqual([]);
  const found: string[] = [];
  for await (const item of tables.store.query({ index: "GSI4", partition: OTHER_ID })) {
    found.push(item.SK);
  }
  const all = (await contents(tables.store)).filter(({ PK }) => PK.startsWith(`${OTHER_ID}/`));
  expect(found.sort()).toEqual(all.map(({ SK }) => SK).sort());
}

/** Usage of one window in both forms. */
function countedTwice(): Item[] {
  const later = usage(DEFAULT_ID, "twice", "daily", DAY, { rpm: 1, rpd: 2, total_events: 1 });
  return [
    usage(DEFAULT_ID, "twice", "daily", DAY, { rpm: 4, tpm: 100, total_events: 3 }),
    { ...later, SK: `#USAGE#gpt-4#daily#${DAY}`, GSI2SK: `USAGE#daily#${DAY}#twice` },
  ];
}

describeTables("a table of 0.10.0", (tables) => {
  it("a table of 0.10.0 is completed, and nothing else in it changes", async () => {
    await fill(tables.store, [...golden(), ...leftBehind(), ...countedTwice()]);
    const report = await runMigrations(tables.store, { clock });
    expect(report.migrations).toMatchObject([
      {
        version: "0.11.0",
        changes: {
          "audit retention": 1,
          "unused buckets": 2,
          "remains of buckets": 1,
          "limits of entities": 1,
          "index keys": 3,
          "usage keys": 6,
        },
      },
    ]);
    const after = new Map(
      (await contents(tables.store)).map((item) => [`${item.PK} ${item.SK}`, item]),
    );
    expectOnlyMore(after);
    // What misleads readers is gone.
    for (const { PK } of leftBehind()) expect(after.has(`${PK} #BUCKET#gpt-4`)).toBe(false);
    expect(after.has("default/SYSTEM# #CONFIG")).toBe(false);
    expect(after.has(`${DEFAULT_ID}/BUCKET#ghost#gpt-4#0 #STATE`)).toBe(false);
    // A bucket in use stays as it is; one that no client has used since 0.9.0 is not revived.
    const state = (entityId: string) =>
      after.get(`${DEFAULT_ID}/BUCKET#${entityId}#gpt-4#0 #STATE`);
    const inUse = golden().find(({ PK }) => PK === `${DEFAULT_ID}/BUCKET#plain#gpt-4#0`);
    expect(state("plain")).toEqual(inUse);
    expect(state("idle")).toBeUndefined();

    const repo = await tables.open({ clock });
    expect(await repo.buckets.list("idle")).toEqual([]);
    // Usage that was written in both ways is counted on.
    const { snapshots } = await repo.usage.snapshots({ entityId: "twice" });
    expect(snapshots).toMatchObject([
      { windowType: "daily", counters: { rpm: 5, tpm: 100, rpd: 2 }, totalEvents: 4 },
    ]);
    await expectDeclarativeLimits(tables);
  });

  it("a table of 0.10.0 can be taken back, and a second upgrade changes its usage keys again", async () => {
    await fill(tables.store, golden());
    const before = (await contents(tables.store)).filter(({ SK }) => USAGE_SK.test(SK));
    await runMigrations(tables.store, { clock });
    const back = await rollbackMigrations(tables.store, { to: "0.10.0", clock });
    expect(back).toMatchObject({ completed: true, fromVersion: "0.11.0", toVersion: "0.10.0" });
    expect(back.migrations).toMatchObject([{ version: "0.11.0", changes: { "usage keys": 5 } }]);
    const after = (await contents(tables.store)).filter(({ SK }) => USAGE_SK.test(SK));
    expect(after).toEqual(before);
    const repo = await tables.open({ clock });
    expect((await repo.version())?.schemaVersion).toBe("0.10.0");
    const again = await runMigrations(tables.store, { clock });
    expect(again.migrations).toMatchObject([{ changes: { "usage keys": 5 } }]);
  });
});
