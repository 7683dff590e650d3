/** The list of stores: addresses, options, names and traits, and what opening a store returns. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WRITES_RATE } from "@zae-limiter/limiter/records/bucket-item.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { tableAt, tableOf } from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import { openBackend } from "@zae-limiter/limiter/repository/stores/open-backend.ts";
import { fileOf } from "@zae-limiter/limiter/repository/stores/sqlite.ts";
import {
  checkCustomOptions,
  checkOpenOptions,
  DEFAULT_URL,
  kindOf,
  parseStoreUrl,
  placeName,
  STORE_OPTIONS,
  STORES,
  traitsOf,
  urlOf,
} from "@zae-limiter/limiter/repository/stores/stores.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { afterAll, describe, expect, test } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
afterAll(() => rmSync(folder, { recursive: true }));
const FILE = `sqlite:${join(folder, "limits.db")}`;
const TABLE = "dynamodb://app?region=eu-west-1&endpoint=http%3A%2F%2F127.0.0.1%3A1";

describe("the list of stores", () => {
  test("the names and the schemes of the list of stores are unique", () => {
    const names = STORES.map(({ name }) => name);
    const schemes = STORES.flatMap((kind) => kind.schemes);
    expect(new Set(names).size).toBe(names.length);
    expect(new Set(schemes).size).toBe(schemes.length);
  });

  test("a location of a kind that is not in the list is refused", () => {
    const nowhere = { kind: "paper", namespace: undefined };
    expect(() => kindOf(nowhere)).toThrow(
      'expected one of memory, sqlite, postgres, redis, dynamodb, got "paper"',
    );
  });
});

describe("an address", () => {
  test.each([
    ["memory:", "memory:", "memory"],
    ["sqlite:x.db", "sqlite:x.db", "x.db"],
    ["SQLite:///var/x.db?namespace=a", "sqlite:/var/x.db", "/var/x.db"],
    ["dynamodb://app/", "dynamodb://app?", "the table app"],
    [TABLE, TABLE, "the table app"],
    ["postgresql://u:p@db/main", "postgres://u:p@db/main", "postgres://db/main"],
    [
      "postgres://u:p@db:1/main?sslmode=require&schema=s&namespace=a",
      "postgres://u:p@db:1/main?sslmode=require&schema=s",
      "postgres://db:1/main (schema s)",
    ],
    ["redis://db", "redis://db", "redis://db"],
    ["VALKEYS://u:p@db:1/2?namespace=a", "rediss://u:p@db:1/2", "rediss://db:1/2"],
    ["rediss://:p@db?prefix=a:", "rediss://:p@db?prefix=a%3A", "rediss://db (prefix a:)"],
    [DEFAULT_URL, DEFAULT_URL, ".zae-limiter/limits.db"],
  ])("%s is written as %s and called %s", (url, written, called) => {
    const location = parseStoreUrl(url);
    expect(urlOf(location)).toBe(written);
    expect(parseStoreUrl(written)).toEqual({ ...location, namespace: undefined });
    expect(placeName(location)).toBe(called);
  });

  test("an address is refused with the form of every store", () => {
    expect(() => parseStoreUrl("paper:x")).toThrow(
      "expected memory: | sqlite:<file> | postgres://<host>/<database>?schema=<schema>&… | " +
        "redis://<host>?prefix=<prefix> | " +
        "dynamodb://<table>?region=<region>&endpoint=<url>, " +
        'each with an optional ?namespace=<name>; got "paper:x"',
    );
    expect(() => parseStoreUrl("sqlite:x?mode=ro")).toThrow(
      'the parameter "mode" is not one of namespace',
    );
  });

  test("an address has a table, a file or neither", () => {
    expect(tableOf(parseStoreUrl("dynamodb://app?namespace=a"))).toEqual(
      tableAt("app", { namespace: "a" }),
    );
    expect(fileOf(parseStoreUrl("sqlite:x.db"))?.path).toBe("x.db");
    expect(tableOf(parseStoreUrl("sqlite:x.db"))).toBeUndefined();
    expect(fileOf(parseStoreUrl("memory:"))).toBeUndefined();
  });
});

describe("the options of a store", () => {
  const refusal = (url: string, options: object) => () =>
    checkOpenOptions(options, parseStoreUrl(url));

  test.each([
    ["memory:", { region: "r" }, '"region" is for DynamoDB only; expected namespace, '],
    ["sqlite:x", { transport: "sdk" }, '"transport" is for DynamoDB only; expected namespace, '],
    ["memory:", { colour: 1 }, '"colour" is not an option; expected namespace, '],
    [
      "dynamodb://app",
      { usage: false },
      '"usage" is for memory:, sqlite:, PostgreSQL and Redis only; on DynamoDB the aggregator counts usage',
    ],
    ["memory:", { timeoutMs: "1" }, 'expected a whole number, got "1"'],
    ["memory:", { bucketTtlMultiplier: -1 }, "expected a number >= 0, got -1"],
    ["memory:", { usage: { retentionDays: 0 } }, "must be positive, got 0"],
    ["dynamodb://app", { outdatedLambda: "x" }, 'expected "accept" or "refuse", got "x"'],
  ])("%s refuses %j and says what it expects", (url, options, reason) => {
    expect(refusal(url, options)).toThrow(reason);
  });

  test("names are checked before values, and an option that is undefined is as good as absent", () => {
    expect(refusal("memory:", { timeoutMs: 0, colour: 1 })).toThrow('"colour" is not an option');
    expect(refusal("memory:", { timeoutMs: undefined, usage: undefined })).not.toThrow();
    expect(refusal("dynamodb://app", { usage: undefined })).not.toThrow();
    expect(refusal("memory:", { region: undefined })).not.toThrow();
    expect(refusal("memory:", { colour: undefined })).toThrow('"colour" is not an option');
  });

  test("a store of the caller's has the options of every store, and usage", () => {
    expect(() => checkCustomOptions({ timeoutMs: 5, usage: false })).not.toThrow();
    expect(() => checkCustomOptions({ endpoint: "http://x" } as object)).toThrow("for DynamoDB");
  });

  test("the list of all options has each name once", () => {
    expect(new Set(STORE_OPTIONS).size).toBe(STORE_OPTIONS.length);
    expect(STORE_OPTIONS).toEqual(expect.arrayContaining(["namespace", "usage", "region"]));
  });
});

describe("an open store", () => {
  test.each([
    ["memory:", { system: "memory" }, "feed"],
    [FILE, { system: "sqlite" }, "feed"],
    [TABLE, { system: "aws.dynamodb", table: "app" }, "shards"],
  ])(
    "%s has the traits of its kind, a name for telemetry, a source of changes and a scan",
    async (url, database, by) => {
      const location = parseStoreUrl(url);
      for (const open of [openBackend, kindOf(location).open]) {
        const backend = await open(location, {});
        expect(backend.traits).toBe(traitsOf(location));
        expect(backend.database).toEqual(database);
        expect(backend.changes.by).toBe(by);
        expect(backend.scannable).toBe(backend.store);
        await backend.store.close();
      }
    },
  );

  test("only DynamoDB has partitions, with the writes that the meter of a bucket counts", () => {
    const writes = STORES.map(({ traits }) => traits.writesPerPartition);
    expect(writes).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      WRITES_RATE.capacityMilli / 1000,
    ]);
  });

  test("telemetry names a file and a store of the caller's by their kind", async () => {
    const file = await Repository.open(FILE);
    expect(file[INTERNALS].database).toEqual({ system: "sqlite" });
    await file.close();
    const custom = await Repository.over(new MemoryItemStore());
    expect(custom[INTERNALS].database).toEqual({ system: "custom" });
    await custom.close();
  });
});
