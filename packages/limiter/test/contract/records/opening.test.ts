/**
 * Opening a store: how it is found, what it creates, what it refuses. A203, A204 as we mean them.
 */

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  InfrastructureNotFoundError,
  NamespaceNotFoundError,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { type DynamoOptions, Repository } from "@zae-limiter/limiter/index.ts";
import { namespaceKey, systemPartition, versionKey } from "@zae-limiter/limiter/records/keys.ts";
import { deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { CallCounter, describeStores, newName } from "@zae-limiter/test-support/stores.ts";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

const TIMEOUT_MS = 20_000;

/** Nothing of the machine's own environment shall decide what a test opens. */
beforeEach(() => {
  for (const name of ["ZAEL_URL", "ZAEL_NAMESPACE", "ZAEL_STACK"]) vi.stubEnv(name, undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
});

describe("an address", () => {
  it.each([
    "",
    "paper://localhost",
    "limits.db",
    "memory",
    "memory:shared",
    "memory://",
    "memory:?namespace=",
    "memory:?namespace=a&namespace=b",
    "memory:?region=us-east-1",
    "sqlite:",
    "sqlite://",
    "sqlite:folder/",
    "sqlite:limits.db?mode=ro",
    "dynamodb:my-app",
    "dynamodb://",
    "dynamodb://?region=us-east-1",
    "dynamodb://my-app?regoin=us-east-1",
    "dynamodb://my-app?region=",
  ])("%o is refused with the forms that are accepted", async (url) => {
    const error: unknown = await Repository.open(url).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ValidationError);
    const { field, reason } = error as ValidationError;
    expect(field).toBe("url");
    for (const form of ["memory:", "sqlite:<file>", "dynamodb://<table>"]) {
      expect(reason).toContain(form);
    }
  });

  it.each([
    ["dynamodb://my_app", "name"],
    ["dynamodb://my-app/other", "name"],
    ["dynamodb://my-app?endpoint=localhost:8000", "endpoint"],
    ["dynamodb://my-app?endpoint=ftp://localhost", "endpoint"],
    ["memory:?namespace=_", "namespace"],
  ])("%o is refused for the part that is wrong", async (url, field) => {
    await expect(Repository.open(url)).rejects.toMatchObject({ code: "ZAEL_VALIDATION", field });
  });

  it.each([5, null, {}])("%o is no address", async (url) => {
    if (url === null) vi.stubEnv("ZAEL_URL", "nonsense");
    const opening = Repository.open(url as unknown as string);
    await expect(opening).rejects.toMatchObject({ field: "url" });
  });
});

describe("options", () => {
  it.each<[string, string, object]>([
    ["namspace", "memory:", { namspace: "typo" }],
    ["region", "memory:", { region: "us-east-1" }],
    ["endpoint", "sqlite:never.db", { endpoint: "http://127.0.0.1:1" }],
    ["constructor", "memory:", { constructor: 1 }],
    ["namespace", "memory:", { namespace: 5 }],
    ["namespace", "memory:", { namespace: "" }],
    ["namespace", "memory:", { namespace: "_" }],
    ["configCacheTtlSeconds", "memory:", { configCacheTtlSeconds: -1 }],
    ["configCacheTtlSeconds", "memory:", { configCacheTtlSeconds: Number.NaN }],
    ["bucketTtlMultiplier", "memory:", { bucketTtlMultiplier: "7" }],
    ["on_unavailable", "memory:", { onUnavailable: "maybe" }],
    ["timeoutMs", "memory:", { timeoutMs: 0 }],
    ["clock", "memory:", { clock: 5 }],
    ["onCall", "memory:", { onCall: {} }],
    ["maxAttempts", "dynamodb://my-app", { maxAttempts: 0 }],
    ["endpoint", "dynamodb://my-app", { endpoint: "localhost" }],
    ["options", "memory:", null as unknown as object],
    ["options", "memory:", [] as object],
    ["options", "memory:", "tenant-a" as unknown as object],
  ])("options are refused when %s is wrong", async (field, url, options) => {
    const opening = Repository.open(url, options as DynamoOptions);
    await expect(opening).rejects.toMatchObject({ field });
    expect(existsSync("never.db")).toBe(false);
  });

  it("options that are undefined are as good as absent", async () => {
    const options = { namespace: undefined, clock: undefined, timeoutMs: undefined };
    const repo = await Repository.open("memory:", options as object);
    expect(repo.namespaceName).toBe("default");
    await repo.close();
  });
});

describe("an embedded store", () => {
  it("an embedded store is the file in the current folder when nothing is named, and is created (A203)", async () => {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
    const before = process.cwd();
    process.chdir(folder);
    try {
      const repo = await Repository.open();
      await repo.limits.setSystem(["rpm:1"]);
      await repo.close();
      expect(existsSync(join(folder, ".zae-limiter", "limits.db"))).toBe(true);
      const again = await Repository.open("sqlite:.zae-limiter/limits.db");
      expect((await again.limits.getSystem()).limits).toHaveLength(1);
      await again.close();
    } finally {
      process.chdir(before);
      rmSync(folder, { recursive: true });
    }
  });

  it("an embedded store is what ZAEL_URL names, unless an address is given (A203)", async () => {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
    try {
      const path = join(folder, "other.db");
      vi.stubEnv("ZAEL_URL", `sqlite://${path}?namespace=tenant-a`);
      const repo = await Repository.open();
      expect(repo.namespaceName).toBe("tenant-a");
      expect(existsSync(path)).toBe(true);
      await repo.close();
      const memory = await Repository.open("memory:");
      expect(memory.namespaceName).toBe("default");
      await memory.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("the namespace comes from the options, the address or the environment, in this order (A203)", async () => {
    vi.stubEnv("ZAEL_NAMESPACE", "from-environment");
    const names: string[] = [];
    for (const [url, options] of [
      ["memory:?namespace=from-address", { namespace: "from-options" }],
      ["memory:?namespace=from-address", {}],
      ["memory:", {}],
    ] as const) {
      const repo = await Repository.open(url, options);
      names.push(repo.namespaceName);
      await repo.close();
    }
    vi.stubEnv("ZAEL_NAMESPACE", "");
    const repo = await Repository.open("memory:");
    names.push(repo.namespaceName);
    await repo.close();
    expect(names).toEqual(["from-options", "from-address", "from-environment", "default"]);
  });

  it("an embedded store registers the namespace and `default` by itself", async () => {
    const repo = await Repository.open("memory:", { namespace: "tenant-a" });
    expect((await repo.namespaces.list()).map(({ name }) => name)).toEqual(["default", "tenant-a"]);
    expect(repo.namespaceId).toBe((await repo.namespaces.get("tenant-a"))?.namespaceId);
    await repo.close();
  });

  it("an embedded store keeps what was stored, under the same ids, when it is opened again", async () => {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
    try {
      const url = `sqlite:${join(folder, "deep", "er", "limits.db")}`;
      const first = await Repository.open(url, { namespace: "tenant-a" });
      await first.entities.create({ id: "key-1" });
      const version = await first.version();
      await first.close();
      const second = await Repository.open(url, { namespace: "tenant-a" });
      expect(second.namespaceId).toBe(first.namespaceId);
      expect(await second.entities.get("key-1")).toBeDefined();
      expect(await second.version()).toEqual(version);
      await second.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describeStores("a repository", (store) => {
  it("a repository shares its store with those scoped from it, which close nothing (A202)", async () => {
    const repo = await store.open();
    const name = newName();
    await repo.namespaces.register(name);
    const scoped = await repo.namespace(name);
    expect(scoped.namespaceName).toBe(name);
    expect(scoped.capabilities).toEqual(repo.capabilities);
    await scoped.limits.setSystem(["rpm:1"]);
    await scoped.close();
    await scoped[Symbol.asyncDispose]();
    expect((await scoped.limits.getSystem()).limits).toHaveLength(1);
    expect((await repo.limits.getSystem()).limits).toHaveLength(0);
    // From a scoped repository one gets to all others, and back.
    const back = await scoped.namespace(repo.namespaceName);
    expect(back.namespaceId).toBe(repo.namespaceId);
  });

  it("a repository does not scope to a namespace that is not there (A202)", async () => {
    const repo = await store.open();
    const name = newName();
    const scoping = repo.namespace(name);
    await expect(scoping).rejects.toBeInstanceOf(NamespaceNotFoundError);
    await expect(scoping).rejects.toMatchObject({ namespaceName: name });
    await expect(repo.namespace("_")).rejects.toBeInstanceOf(ValidationError);
    expect(await store.items.get(namespaceKey(name), { consistent: true })).toBeUndefined();
  });

  it("a repository says what its store can do", async () => {
    const repo = await store.open();
    expect(repo.capabilities).toEqual({
      supportsAuditLogging: true,
      supportsUsageSnapshots: true,
      supportsInfrastructureManagement: !store.embedded,
      supportsChangeStreams: true,
      supportsBatchOperations: true,
    });
    expect(Object.isFrozen(repo.capabilities)).toBe(true);
  });

  it("a repository can be closed more than once", async () => {
    const repo = await store.open();
    await repo.close();
    await expect(repo[Symbol.asyncDispose]()).resolves.toBeUndefined();
  });
});

describeEngines("a table", ({ endpoint }) => {
  const opened: { close(): Promise<void> }[] = [];
  const tables: string[] = [];
  const options = { endpoint, timeoutMs: TIMEOUT_MS };
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((one) => one.close()));
    for (const table of tables.splice(0)) await deleteTable({ table, endpoint });
  });

  /** A new table, with a way to read the records of all namespaces in it. */
  async function newTable(more: Parameters<typeof Repository.createTable>[1] = {}) {
    const table = newName();
    tables.push(table);
    const repo = await Repository.createTable(table, { ...options, ...more });
    const items = new DynamoItemStore({ table, ...options });
    opened.push(repo, items);
    const registry = async () => {
      const found: Item[] = [];
      const query = { partition: systemPartition("_"), consistent: true };
      for await (const item of items.query(query)) found.push(item);
      return found;
    };
    return { table, repo, items, registry };
  }

  it("a table is opened by address or by name, and nothing is written", async () => {
    const { table, registry } = await newTable({ namespaces: ["tenant-a"] });
    const before = await registry();
    const counter = new CallCounter();
    const counted = { ...options, onCall: counter.onCall };
    vi.stubEnv("ZAEL_URL", `dynamodb://${table}?endpoint=${endpoint}&namespace=tenant-a`);
    vi.stubEnv("ZAEL_STACK", table);
    const found = [
      await Repository.open(undefined, { timeoutMs: TIMEOUT_MS, onCall: counter.onCall }),
      await Repository.open(`dynamodb://${table}?endpoint=${endpoint}`, counted),
      await Repository.open(`dynamodb://${table}/?region=eu-west-1`, counted),
      await Repository.connect(table, counted),
      await Repository.connect(undefined, { ...counted, namespace: "tenant-a" }),
    ];
    opened.push(...found);
    expect(found.map(({ namespaceName }) => namespaceName)).toEqual([
      "tenant-a",
      "default",
      "default",
      "default",
      "tenant-a",
    ]);
    for (const repo of found) await repo.limits.resolve("key-1", "gpt-4");
    expect(counter.calls.length).toBeGreaterThan(0);
    expect(counter.calls.filter(({ writeUnits }) => writeUnits > 0)).toEqual([]);
    expect(await registry()).toEqual(before);
  });

  it("a table that is missing is not created by opening it (A203)", async () => {
    const table = newName();
    const opening = Repository.connect(table, options);
    await expect(opening).rejects.toBeInstanceOf(InfrastructureNotFoundError);
    await expect(opening).rejects.toMatchObject({ stackName: table });
    const again = Repository.open(`dynamodb://${table}`, options);
    await expect(again).rejects.toBeInstanceOf(InfrastructureNotFoundError);
  });

  it("a table without the namespace is refused, and the namespace is not registered (A203, A204)", async () => {
    const { table, registry } = await newTable();
    const before = await registry();
    for (const open of [
      () => Repository.connect(table, { ...options, namespace: "tenant-a" }),
      () => Repository.open(`dynamodb://${table}?namespace=tenant-a`, options),
    ]) {
      const opening = open();
      await expect(opening).rejects.toBeInstanceOf(NamespaceNotFoundError);
      await expect(opening).rejects.toMatchObject({ namespaceName: "tenant-a" });
    }
    expect(await registry()).toEqual(before);
  });

  it("a table is created once: again, it stays as it is and only gains what is new (A204)", async () => {
    const { table, repo, registry } = await newTable({ namespace: "tenant-a" });
    await repo.limits.setSystem(["rpm:1"]);
    const before = await registry();
    const names = async () => (await repo.namespaces.list()).map(({ name }) => name);
    expect(await names()).toEqual(["default", "tenant-a"]);
    const again = await Repository.createTable(table, { ...options, namespace: "tenant-a" });
    opened.push(again);
    expect(again.namespaceId).toBe(repo.namespaceId);
    expect((await again.limits.getSystem()).limits).toHaveLength(1);
    expect(await registry()).toEqual(before);
    const more = await Repository.createTable(table, { ...options, namespaces: ["b", "c"] });
    opened.push(more);
    expect(more.namespaceName).toBe("default");
    expect(await names()).toEqual(["b", "c", "default", "tenant-a"]);
  });

  it("a table that asks for a newer client gains nothing, not even by createTable", async () => {
    const { table, items, registry } = await newTable();
    await items.update(versionKey(), { set: { client_min_version: "9.0.0" } });
    const before = await registry();
    const creating = Repository.createTable(table, { ...options, namespace: "tenant-a" });
    await expect(creating).rejects.toMatchObject({ code: "ZAEL_INCOMPATIBLE_SCHEMA" });
    expect(await registry()).toEqual(before);
  });

  it("a table is not created when an argument is wrong", async () => {
    const table = newName();
    const wrong: [field: string, options: object][] = [
      ["namespace", { namespaces: ["_"] }],
      ["namespace", { namespace: "_" }],
      ["namespaces", { namespaces: "tenant-a" }],
      ["tags", { tags: {} }],
    ];
    for (const [field, more] of wrong) {
      const creating = Repository.createTable(table, { ...options, ...more });
      await expect(creating, field).rejects.toMatchObject({ field });
    }
    await expect(Repository.createTable("my_app", options)).rejects.toMatchObject({
      field: "name",
    });
    const opening = Repository.connect(table, options);
    await expect(opening).rejects.toBeInstanceOf(InfrastructureNotFoundError);
  });
});
