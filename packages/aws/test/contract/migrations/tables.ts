/** Tables to migrate, on every store: empty at the beginning of each test, and not shared. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { createTable, deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import { type Item, keyOf } from "@zae-limiter/limiter/storage/item.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import type { ScanStore } from "@zae-limiter/limiter/storage/scan-store.ts";
import { openSqlite } from "@zae-limiter/limiter/storage/sqlite/connection.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { afterAll, beforeAll, beforeEach, describe } from "vitest";

const TIMEOUT_MS = 20_000;

/** The tables of a suite. */
export interface Tables {
  readonly store: ScanStore;
  /** How users of the library see the table; its buckets are items, as on DynamoDB. */
  open(options?: { namespace?: string; clock?: () => number }): Promise<Repository>;
}

interface Place {
  readonly store: ScanStore;
  open: Tables["open"];
  close(): Promise<void>;
}

/** One `describe` per store; an engine that does not run here is a skip with its reason. */
export function describeTables(title: string, suite: (tables: Tables) => void): void {
  describe(`${title} in memory`, () => on(openMemory, suite));
  describe(`${title} in sqlite`, () => on(openFile, suite));
  describeEngines(title, ({ endpoint }) => on(() => openEngine(endpoint), suite));
}

/** Everything that is stored, sorted by key. */
export async function contents(store: ScanStore): Promise<Item[]> {
  const items: Item[] = [];
  for await (const item of store.scan()) items.push(item);
  const name = ({ PK, SK }: Item) => `${PK} ${SK}`;
  return items.sort((one, other) => (name(one) < name(other) ? -1 : 1));
}

/** Puts items as other software has written them. */
export async function fill(store: ScanStore, items: readonly Item[]): Promise<void> {
  await store.writeMany({ puts: items });
}

function on(openPlace: () => Promise<Place>, suite: (tables: Tables) => void): void {
  let place: Place | undefined;
  const opened: Repository[] = [];
  const here = (): Place => {
    if (place === undefined) throw new Error("The store is not open yet");
    return place;
  };
  beforeAll(async () => {
    place = await openPlace();
  });
  beforeEach(async () => {
    const { store } = here();
    await store.writeMany({ deletes: (await contents(store)).map(keyOf) });
  });
  afterAll(async () => {
    for (const repository of opened) await repository.close();
    await place?.close();
  });
  suite({
    get store() {
      return here().store;
    },
    open: async (options) => {
      const repository = await here().open(options);
      opened.push(repository);
      return repository;
    },
  });
}

async function openMemory(): Promise<Place> {
  const store = new MemoryItemStore();
  return { store, open: (options) => overTable(lent(store), options), close: closing(store) };
}

async function openFile(): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  const { store } = await openSqlite({ path: join(directory, "limits.db") });
  return {
    store,
    open: (options) => overTable(lent(store), options),
    close: async () => {
      await store.close();
      rmSync(directory, { recursive: true });
    },
  };
}

async function openEngine(endpoint: string): Promise<Place> {
  const table = newName();
  await createTable({ table, endpoint, stream: false });
  const store = new DynamoItemStore({ table, endpoint, timeoutMs: TIMEOUT_MS });
  return {
    store,
    open: (options) => Repository.connect(table, { endpoint, timeoutMs: TIMEOUT_MS, ...options }),
    close: async () => {
      await store.close();
      await deleteTable({ table, endpoint });
    },
  };
}

function closing(store: ScanStore): () => Promise<void> {
  return () => store.close();
}

/** Returns a store that the borrower cannot close. */
function lent(store: ScanStore): ScanStore {
  return new Proxy(store, {
    get: (_, name: keyof ScanStore) => {
      if (name === "close") return async () => undefined;
      const value = store[name] as unknown;
      return typeof value === "function" ? (value.bind(store) as unknown) : value;
    },
  });
}
