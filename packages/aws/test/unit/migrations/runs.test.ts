/** Runs that are rehearsed, broken off, stopped, or not alone. */

import type { Migration } from "@zae-limiter/aws/migrations/migration.ts";
import { MigrationRunningError } from "@zae-limiter/aws/migrations/migration-error.ts";
import {
  type MigrationProgress,
  planMigrations,
  rollbackMigrations,
  runMigrations,
} from "@zae-limiter/aws/migrations/migrations.ts";
import { MIGRATIONS, migrationsBetween } from "@zae-limiter/aws/migrations/registry.ts";
import { type MigrationOutcome, runSteps } from "@zae-limiter/aws/migrations/run.ts";
import { readTableVersion } from "@zae-limiter/aws/migrations/table-version.ts";
import { versionKey } from "@zae-limiter/limiter/records/keys.ts";
import { type Item, keyOf } from "@zae-limiter/limiter/storage/item.ts";
import {
  DEFAULT_ID,
  NOW,
  namespace,
  unfinishedTable,
  usage,
  version,
} from "@zae-limiter/test-support/old-tables.ts";
import { describe, expect, test } from "vitest";
import { contents, fill } from "../../contract/migrations/tables.ts";
import { crashAt, DisturbedStore } from "./disturbed-store.ts";

const LEASE_MS = 60_000;
/** Always the same numbers, so that two runs have the same owner. */
const random = () => 0.5;
const clock = () => NOW;

async function filled(items: readonly Item[]): Promise<DisturbedStore> {
  const store = new DisturbedStore({ clock });
  await fill(store, items);
  return store;
}

/** A table that takes several checkpoints. */
function large(): Item[] {
  const rows = Array.from({ length: 100 }, (_, index) =>
    usage(DEFAULT_ID, `key-${index}`, "hourly", "2026-11-15T18:00:00Z", {
      rpm: index,
      total_events: 1,
    }),
  );
  return [version("0.10.0"), ...namespace("default", DEFAULT_ID), ...rows];
}

describe("a dry run", () => {
  test.each([
    ["a table of 0.9.0", unfinishedTable("0.9.0")],
    ["a table of 0.10.0", unfinishedTable("0.10.0")],
    ["a large table", large()],
    ["a table without a version record", unfinishedTable("0.10.0").slice(1)],
  ])("a dry run of %s writes nothing, and says what a run then does", async (_, items) => {
    const store = await filled(items);
    const before = await contents(store);
    const rehearsed = await runMigrations(store, { dryRun: true, clock, random });
    expect(store.writes).toBe(0);
    expect(await contents(store)).toEqual(before);
    const done = await runMigrations(store, { clock, random });
    const told = ({ migrations }: typeof done) =>
      migrations.map(({ version: to, changes }) => [to, changes]);
    expect(told(rehearsed)).toEqual(told(done));
    expect(rehearsed.dryRun).toBe(true);
  });

  test("a dry run is possible while another process migrates", async () => {
    const store = await filled(unfinishedTable("0.10.0"));
    store.disturb = crashAt(8);
    await expect(runMigrations(store, { clock, random })).rejects.toThrow();
    store.disturb = () => undefined;
    const { completed } = await runMigrations(store, { dryRun: true, clock, random });
    expect(completed).toBe(true);
  });
});

/** A step before the real one: a run may have several. */
const marking: Migration = {
  version: "0.10.0",
  description: "marks entities",
  rules: [
    {
      name: "marks",
      concerns: ({ SK, marked }) => SK === "#META" && marked === undefined,
      writes: (item) => [{ update: keyOf(item), change: { set: { marked: true } } }],
    },
  ],
};

/** Runs two migrations as `runMigrations` runs those that this version has. */
function runTwo(store: DisturbedStore, at: () => number = clock): Promise<MigrationOutcome[]> {
  const context = {
    store,
    clock: at,
    random,
    dryRun: false,
    updatedBy: undefined,
    signal: undefined,
    onProgress: undefined,
  };
  return runSteps(context, async () => {
    const { effective } = await readTableVersion(store);
    const left = migrationsBetween(effective, undefined, [marking, ...MIGRATIONS]);
    return left.map((migration) => ({
      migration,
      direction: "up" as const,
      versionAfter: migration.version,
    }));
  });
}

describe("a run that breaks off", () => {
  const once = (store: DisturbedStore, at = clock) => runMigrations(store, { clock: at, random });

  test.each([
    ["a table of 0.9.0", unfinishedTable("0.9.0"), once],
    ["a table of 0.10.0", unfinishedTable("0.10.0"), once],
    ["a table without a version record", unfinishedTable("0.10.0").slice(1), once],
    ["two migrations", unfinishedTable("0.9.0"), runTwo],
  ])(
    "a run that breaks off at any write of %s is finished by the next one",
    async (_, items, run) => {
      const whole = await filled(items);
      await run(whole);
      const expected = await contents(whole);
      for (let position = 1; position <= whole.writes; position += 1) {
        const store = await filled(items);
        store.disturb = crashAt(position);
        await expect(run(store)).rejects.toThrow();
        store.disturb = () => undefined;
        // The process that died could not release its lease.
        await run(store, () => NOW + LEASE_MS);
        const timeless = (item: Item) => (item.SK === "#VERSION" ? keyOf(item) : item);
        expect((await contents(store)).map(timeless)).toEqual(expected.map(timeless));
        expect((await store.get(versionKey()))?.schema_version).toBe("0.11.0");
        expect(await planMigrations(store)).not.toHaveProperty("interrupted");
      }
    },
  );

  test("a run that breaks off says where, what it had reached, and why", async () => {
    const store = await filled(unfinishedTable("0.9.0"));
    const whole = await filled(unfinishedTable("0.9.0"));
    const outcomes = await runTwo(whole);
    expect(outcomes).toMatchObject([
      { version: "0.10.0", completed: true, changes: { marks: 2 } },
      { version: "0.11.0", completed: true },
    ]);
    store.disturb = crashAt(whole.writes - 3);
    await expect(runTwo(store)).rejects.toMatchObject({
      code: "ZAEL_MIGRATION",
      migration: "0.11.0",
      applied: ["0.10.0"],
      cause: { code: "ZAEL_UNAVAILABLE" },
    });
    expect((await store.get(versionKey()))?.schema_version).toBe("0.10.0");
  });

  test("a run that breaks off goes on after the last checkpoint, not from the beginning", async () => {
    const store = await filled(large());
    let moved = 0;
    store.disturb = (writes) => {
      if ("put" in (writes[0] ?? {})) moved += 1;
      if (moved > 50) throw new Error("gone");
    };
    await expect(runMigrations(store, { clock, random })).rejects.toThrow("broke off: gone");
    const { interrupted } = await planMigrations(store);
    expect(interrupted).toMatchObject({ migration: "0.11.0", changed: 48 });
    store.disturb = () => undefined;
    const reports: MigrationProgress[] = [];
    const onProgress = (progress: MigrationProgress) => reports.push(progress);
    const later = () => NOW + LEASE_MS;
    const { migrations } = await runMigrations(store, { clock: later, random, onProgress });
    // Two were changed after the last checkpoint: no record has them any more.
    expect(migrations[0]?.changed).toBe(98);
    expect(reports[0]?.changed).toBeGreaterThan(48);
    expect(await planMigrations(store)).not.toHaveProperty("interrupted");
  });
});

describe("a run", () => {
  test("a run of migrations reports its progress", async () => {
    const store = await filled(large());
    const reports: MigrationProgress[] = [];
    await runMigrations(store, { clock, random, onProgress: (one) => reports.push(one) });
    expect(reports[0]).toMatchObject({ migration: "0.11.0", position: 1, of: 1, changed: 16 });
    expect(reports.at(-1)).toMatchObject({ changed: 100 });
    const scanned = reports.map((one) => one.scanned);
    expect(scanned).toEqual([...scanned].sort((one, other) => one - other));
  });

  test("a run stops when its signal aborts, and the next one can continue at once", async () => {
    const store = await filled(large());
    const stop = new AbortController();
    const report = await runMigrations(store, {
      clock,
      random,
      signal: stop.signal,
      onProgress: () => stop.abort(),
    });
    expect(report).toMatchObject({ completed: false, migrations: [{ changed: 16 }] });
    expect((await store.get(versionKey()))?.schema_version).toBe("0.10.0");
    const rest = await runMigrations(store, { clock, random });
    expect(rest).toMatchObject({ completed: true, migrations: [{ changed: 100 }] });
  });

  test("a run refuses while another one is at work, and takes over from one that died", async () => {
    const store = await filled(large());
    store.disturb = crashAt(6);
    await expect(runMigrations(store, { clock, random })).rejects.toThrow("broke off");
    store.disturb = () => undefined;
    const refused = runMigrations(store, { clock: () => NOW + LEASE_MS - 1, random });
    await expect(refused).rejects.toBeInstanceOf(MigrationRunningError);
    await expect(refused).rejects.toMatchObject({ code: "ZAEL_MIGRATION_RUNNING" });
    const { completed } = await runMigrations(store, { clock: () => NOW + LEASE_MS, random });
    expect(completed).toBe(true);
  });

  test("a run that was thought dead stops at its next checkpoint, and has done no harm", async () => {
    const alone = await filled(large());
    await runMigrations(alone, { clock, random });
    const expected = await contents(alone);

    const store = await filled(large());
    let seen = 0;
    store.disturb = async (writes) => {
      if (!("put" in (writes[0] ?? {}))) return;
      seen += 1;
      if (seen !== 20) return;
      // In the middle of a batch, another one does everything.
      store.disturb = () => undefined;
      await runMigrations(store, { clock: () => NOW + LEASE_MS, random: () => 0.25 });
    };
    await expect(runMigrations(store, { clock, random })).rejects.toBeInstanceOf(
      MigrationRunningError,
    );
    const timeless = (item: Item) => (item.SK === "#VERSION" ? keyOf(item) : item);
    expect((await contents(store)).map(timeless)).toEqual(expected.map(timeless));
  });

  test("a run does not lose what is written to an item while it moves", async () => {
    const store = await filled([
      version("0.10.0"),
      ...namespace("default", DEFAULT_ID),
      usage(DEFAULT_ID, "key-1", "hourly", "2026-11-15T18:00:00Z", { rpm: 4, total_events: 4 }),
    ]);
    store.disturb = async (writes) => {
      const removed = writes.find((write) => "delete" in write && write.delete.SK.startsWith("#U"));
      if (removed === undefined || !("delete" in removed)) return;
      // Once: another client writes to the item while it is about to be deleted.
      store.disturb = () => undefined;
      await store.update(removed.delete, { add: { rpm: 1, total_events: 1 } });
    };
    await runMigrations(store, { clock, random });
    const items = await contents(store);
    expect(items.filter(({ SK }) => SK.startsWith("#USAGE#"))).toMatchObject([
      { rpm: 5, total_events: 5 },
    ]);
  });

  test("a run names the upgrading client, and keeps the rest of the version record", async () => {
    const record = {
      ...version("0.10.0"),
      client_min_version: "0.0.1",
      aggregator_version: "0.1.0",
    };
    const store = await filled([record, ...namespace("default", DEFAULT_ID)]);
    await runMigrations(store, { clock, random, updatedBy: "cli:0.1.0" });
    expect(await store.get(versionKey())).toMatchObject({
      schema_version: "0.11.0",
      lambda_version: "0.9.1",
      client_min_version: "0.0.1",
      aggregator_version: "0.1.0",
      updated_by: "cli:0.1.0",
    });
  });

  test("a run refuses an invalid version, an unknown option, and a table it cannot scan", async () => {
    const store = await filled([version("soon")]);
    await expect(runMigrations(store, { clock })).rejects.toThrow('"soon" is not a version');
    const typo = { dryrun: true } as object;
    await expect(runMigrations(store, typo)).rejects.toThrow('there is no "dryrun" here');
    const blind = new Proxy(await filled(large()), {
      get: (target, name) => {
        if (name === "scan") return undefined;
        const value = Reflect.get(target, name, target) as unknown;
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
    await expect(runMigrations(blind, { clock })).rejects.toThrow("cannot be scanned");
  });

  test("a run has nothing to do on a table that is newer", async () => {
    const store = await filled([version("0.12.0")]);
    expect(await planMigrations(store)).toMatchObject({ schemaVersion: "0.12.0", pending: [] });
    expect(await runMigrations(store, { clock })).toMatchObject({
      completed: true,
      migrations: [],
    });
    expect(store.writes).toBe(0);
  });
});

describe("a rollback", () => {
  test("a rollback to a layout that is too old is refused before anything is written", async () => {
    const store = await filled(large());
    await runMigrations(store, { clock, random });
    const before = await contents(store);
    store.writes = 0;
    await expect(rollbackMigrations(store, { to: "0.8.0", clock })).rejects.toMatchObject({
      code: "ZAEL_MIGRATION",
      migration: "0.9.0",
    });
    expect(store.writes).toBe(0);
    expect(await contents(store)).toEqual(before);
  });

  test("a rollback that breaks off anywhere can go on, or be undone by an upgrade", async () => {
    const upgraded = await filled(large());
    await runMigrations(upgraded, { clock, random });
    const start = await contents(upgraded);
    upgraded.writes = 0;
    await rollbackMigrations(upgraded, { to: "0.10.0", clock, random });
    const end = await contents(upgraded);
    const timeless = (item: Item) => (item.SK === "#VERSION" ? keyOf(item) : item);
    const later = { clock: () => NOW + LEASE_MS, random };
    const cases = Array.from({ length: upgraded.writes }, (_, index) => index + 1)
      .filter((position) => position % 7 === 1)
      .flatMap((position) => [true, false].map((onward) => [position, onward] as const));
    for (const [position, onward] of cases) {
      const store = await filled(start);
      store.disturb = crashAt(position);
      const broken = rollbackMigrations(store, { to: "0.10.0", clock, random });
      await expect(broken).rejects.toThrow();
      store.disturb = () => undefined;
      if (onward) await rollbackMigrations(store, { to: "0.10.0", ...later });
      else await runMigrations(store, later);
      const expected = onward ? end : start;
      expect((await contents(store)).map(timeless)).toEqual(expected.map(timeless));
      const schema = (await store.get(versionKey()))?.schema_version;
      expect(schema).toBe(onward ? "0.10.0" : "0.11.0");
    }
  });

  test("a rollback of two snapshots that would share a key leaves the second where it is", async () => {
    const start = "2026-11-15T00:00:00Z";
    const store = await filled([
      version("0.11.0"),
      ...namespace("default", DEFAULT_ID),
      ...["hourly", "daily"].map((window) => ({
        ...usage(DEFAULT_ID, "key-1", window, start, { rpm: 1, total_events: 1 }),
        SK: `#USAGE#gpt-4#${window}#${start}`,
      })),
    ]);
    const { migrations } = await rollbackMigrations(store, { to: "0.10.0", clock, random });
    expect(migrations).toMatchObject([{ changed: 1, completed: true }]);
    const keys = (await contents(store)).map(({ SK }) => SK).filter((SK) => SK.startsWith("#U"));
    expect(keys).toEqual([`#USAGE#gpt-4#${start}`, `#USAGE#gpt-4#hourly#${start}`]);
  });
});
