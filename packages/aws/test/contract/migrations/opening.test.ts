/** Which clients may open a table of which version, and what its record says. */

import {
  planMigrations,
  rollbackMigrations,
  runMigrations,
} from "@zae-limiter/aws/migrations/migrations.ts";
import { IncompatibleSchemaError } from "@zae-limiter/limiter/domain/errors/version-errors.ts";
import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { versionKey } from "@zae-limiter/limiter/records/keys.ts";
import { readVersion, writeVersion } from "@zae-limiter/limiter/records/version-record.ts";
import {
  DEFAULT_ID,
  firstTable,
  halfNamespacedTable,
  NOW,
  namespace,
  table08,
  tableWithoutNamespaces,
  version,
} from "@zae-limiter/test-support/old-tables.ts";
import { expect, it } from "vitest";
import { contents, describeTables, fill } from "./tables.ts";

const clock = () => NOW;

/** Which release of the Python library upgrades an old table, and how. */
const PYTHON =
  'release 0.17.0 of the Python library: its command "zae-limiter upgrade --name TABLE"';

describeTables("opening a table", (tables) => {
  it.each([
    ["of 0.8.0", table08, "0.8.0", "oldest layout that this client can use or migrate is 0.9.0"],
    ["without namespaces", tableWithoutNamespaces, "0.8.0", "from before there were namespaces"],
    ["of the first layout", firstTable, "1.0.0", "from before there were namespaces"],
  ])(
    "opening a table %s names the Python release that upgrades it, and changes nothing",
    async (_, items, schemaVersion, reason) => {
      await fill(tables.store, items());
      const before = await contents(tables.store);
      const opening = tables.open();
      await expect(opening).rejects.toBeInstanceOf(IncompatibleSchemaError);
      await expect(opening).rejects.toMatchObject({
        code: "ZAEL_INCOMPATIBLE_SCHEMA",
        clientVersion: CLIENT_VERSION,
        schemaVersion,
      });
      await expect(opening).rejects.toThrow(reason);
      await expect(opening).rejects.toThrow(PYTHON);
      expect(await contents(tables.store)).toEqual(before);
    },
  );

  it.each([
    ["0.8.0", table08],
    ["a layout without namespaces", tableWithoutNamespaces],
    ["the first layout", firstTable],
    ["two layouts, one of them without namespaces", halfNamespacedTable],
  ])("a migration of %s is refused with the same advice, and changes nothing", async (_, items) => {
    await fill(tables.store, items());
    const before = await contents(tables.store);
    const { store } = tables;
    const refusals = [
      planMigrations(store),
      runMigrations(store, { clock }),
      runMigrations(store, { clock, dryRun: true }),
      rollbackMigrations(store, { to: "0.10.0", clock }),
    ];
    for (const refusal of await Promise.allSettled(refusals)) {
      expect(refusal).toMatchObject({
        status: "rejected",
        reason: {
          code: "ZAEL_INCOMPATIBLE_SCHEMA",
          message: expect.stringContaining(PYTHON) as string,
        },
      });
    }
    expect(await contents(tables.store)).toEqual(before);
  });

  it.each(["0.9.0", "0.10.0", "0.11.0", "0.12.0"])(
    "opening a table of %s works as it is",
    async (schema) => {
      await fill(tables.store, [version(schema), ...namespace("default", DEFAULT_ID)]);
      const repo = await tables.open();
      expect(repo.namespaceId).toBe(DEFAULT_ID);
      expect((await repo.version())?.schemaVersion).toBe(schema);
    },
  );

  it("opening a table of a later client is refused (B33)", async () => {
    await fill(tables.store, [version("0.10.0"), ...namespace("default", DEFAULT_ID)]);
    await writeVersion(tables.store, { clientMinVersion: "0.99.0" }, NOW);
    await expect(tables.open()).rejects.toThrow("keep up with release 0.99.0");
  });
});

describeTables("the version record", (tables) => {
  it("the version record says our Lambda, and loses nothing else", async () => {
    await fill(tables.store, [version("0.10.0")]);
    const written = await writeVersion(
      tables.store,
      { aggregatorVersion: "0.1.0", lambdaVersion: null, updatedBy: "cli:0.1.0" },
      NOW,
    );
    expect(written).toEqual({
      schemaVersion: "0.10.0",
      aggregatorVersion: "0.1.0",
      clientMinVersion: "0.0.0",
      updatedAt: new Date(NOW).toISOString().replace(".000", ""),
      updatedBy: "cli:0.1.0",
    });
    expect(await readVersion(tables.store)).toEqual(written);
    const item = await tables.store.get(versionKey());
    // With a version in it, the Python library would replace our Lambda.
    expect(item).toMatchObject({ lambda_version: null, GSI4PK: "_" });
  });

  it("the version record is made where there is none", async () => {
    expect(await readVersion(tables.store)).toBeUndefined();
    await writeVersion(tables.store, {}, NOW);
    expect(await readVersion(tables.store)).toMatchObject({
      schemaVersion: "0.11.0",
      clientMinVersion: "0.0.0",
      updatedBy: `client:${CLIENT_VERSION}`,
    });
  });
});
