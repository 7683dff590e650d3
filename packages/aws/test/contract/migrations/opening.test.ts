/** Which clients may open a table of which version, and what its record says. */

import { runMigrations } from "@zae-limiter/aws/migrations/migrations.ts";
import { IncompatibleSchemaError } from "@zae-limiter/limiter/domain/errors/version-errors.ts";
import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { versionKey } from "@zae-limiter/limiter/records/keys.ts";
import { readVersion, writeVersion } from "@zae-limiter/limiter/records/version-record.ts";
import {
  DEFAULT_ID,
  NOW,
  namespace,
  table08,
  table08Namespaced,
  version,
} from "@zae-limiter/test-support/old-tables.ts";
import { expect, it } from "vitest";
import { contents, describeTables, fill } from "./tables.ts";

describeTables("opening a table", (tables) => {
  it.each([
    ["without namespaces", table08],
    ["older than 0.9.0", table08Namespaced],
  ])("%s is refused until it is brought up to date, and changes nothing", async (_, items) => {
    await fill(tables.store, items());
    const before = await contents(tables.store);
    const opening = tables.open();
    await expect(opening).rejects.toBeInstanceOf(IncompatibleSchemaError);
    await expect(opening).rejects.toMatchObject({
      clientVersion: CLIENT_VERSION,
      schemaVersion: "0.8.0",
      message: expect.stringContaining('"zae-limiter stack upgrade"') as string,
    });
    expect(await contents(tables.store)).toEqual(before);
    await runMigrations(tables.store, { clock: () => NOW });
    expect((await (await tables.open()).version())?.schemaVersion).toBe("0.11.0");
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

  it("the version record does not make an old table look new", async () => {
    await fill(tables.store, table08());
    await writeVersion(tables.store, { aggregatorVersion: "0.1.0" }, NOW);
    expect(await readVersion(tables.store)).toMatchObject({ schemaVersion: "0.8.0" });
    await expect(tables.open()).rejects.toBeInstanceOf(IncompatibleSchemaError);
    await runMigrations(tables.store, { clock: () => NOW });
    const repo = await tables.open();
    expect(await repo.version()).toMatchObject({
      schemaVersion: "0.11.0",
      aggregatorVersion: "0.1.0",
    });
    expect(await repo.entities.get("org-1")).toBeDefined();
  });
});
