/**
 * The stores that tests of records run on: all of them, whatever the test. A test file has one
 * memory, one file and one table per engine, and every test a namespace of its own in it.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DynamoOptions, OpenOptions } from "@zae-limiter/limiter/repository/options.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { createTable, deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore, Query, StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { openSqlite } from "@zae-limiter/limiter/storage/sqlite/connection.ts";
import type { RunningEngine } from "@zae-limiter/test-engines/engine.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { counted } from "./counted.ts";

/** The databases share the machine with other tests, so deadlines prove nothing here. */
const TIMEOUT_MS = 20_000;

/** A place with items, and how a repository is opened there. */
interface Place {
  /** The items underneath, past all records. */
  readonly items: ItemStore;
  /** `namespace` is there already, or is registered by opening. */
  open(options: OpenOptions & { namespace: string }): Promise<Repository>;
  close(): Promise<void>;
}

/** A store under test. It is open while tests run, not while they are declared. */
export class TestStore {
  readonly #opened: Repository[] = [];
  #place: Place | undefined;

  /** `embedded`: opening may create what is missing. */
  constructor(
    readonly embedded: boolean,
    readonly engine?: RunningEngine["name"],
  ) {}

  /** All variants of a case; a few of them on an engine that takes ten times as long as others. */
  variants<T>(all: readonly T[], few: number): readonly T[] {
    if (this.engine !== "dynamodb-local") return all;
    const step = Math.ceil(all.length / few);
    return all.filter((_, at) => at % step === 0);
  }

  get items(): ItemStore {
    return this.#open.items;
  }

  /** A repository in a new namespace, or in the one that is named. It is closed after the test. */
  async open(options: OpenOptions = {}): Promise<Repository> {
    const namespace = options.namespace ?? newName();
    const repository = await this.#open.open({ timeoutMs: TIMEOUT_MS, ...options, namespace });
    this.#opened.push(repository);
    return repository;
  }

  /** All items of a partition. */
  async itemsOf(partition: string, index?: Query["index"]): Promise<Item[]> {
    const query = index === undefined ? { partition, consistent: true } : { partition, index };
    const found: Item[] = [];
    for await (const item of this.items.query(query)) found.push(item);
    return found;
  }

  enter(place: Place): void {
    this.#place = place;
  }

  async closeOpened(): Promise<void> {
    for (const repository of this.#opened.splice(0)) await repository.close();
  }

  async leave(): Promise<void> {
    await this.#place?.close();
  }

  get #open(): Place {
    if (this.#place === undefined) throw new Error("The store is not open yet");
    return this.#place;
  }
}

/**
 * One `describe` per store; an engine that does not run here shows up as a skip with its reason.
 */
export function describeStores(title: string, suite: (store: TestStore) => void): void {
  describe(`${title} in memory`, () => onStore(new TestStore(true), openMemory, suite));
  describe(`${title} in sqlite`, () => onStore(new TestStore(true), openFile, suite));
  describeEngines(title, (engine) => {
    onStore(new TestStore(false, engine.name), () => openTable(engine), suite);
  });
}

/** A name that no other test uses, fit for tables and namespaces. */
export function newName(): string {
  return `t-${crypto.randomUUID()}`;
}

/** Counts requests: pass `onCall` when opening. */
export class CallCounter {
  readonly calls: StoreCall[] = [];
  readonly onCall = (call: StoreCall): void => {
    this.calls.push(call);
  };

  /** How many requests `work` makes. */
  async during(work: () => Promise<unknown>): Promise<number> {
    const before = this.calls.length;
    await work();
    return this.calls.length - before;
  }
}

function onStore(
  store: TestStore,
  open: () => Promise<Place>,
  suite: (store: TestStore) => void,
): void {
  beforeAll(async () => store.enter(await open()));
  afterEach(() => store.closeOpened());
  afterAll(() => store.leave());
  suite(store);
}

async function openMemory(): Promise<Place> {
  const items = new MemoryItemStore();
  return {
    items,
    open: (options) => Repository.over(counted(items), options),
    close: () => items.close(),
  };
}

async function openFile(): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  const path = join(directory, "limits.db");
  const { store: items } = await openSqlite({ path });
  return {
    items,
    open: (options) => Repository.open(`sqlite:${path}`, options),
    close: async () => {
      await items.close();
      rmSync(directory, { recursive: true });
    },
  };
}

async function openTable({ endpoint }: RunningEngine): Promise<Place> {
  const table = newName();
  const connection: DynamoOptions = { endpoint, timeoutMs: TIMEOUT_MS };
  // These suites do not read the stream, and the engines get slower with each of its records.
  await createTable({ table, endpoint, stream: false });
  const root = await Repository.createTable(table, connection);
  const items = new DynamoItemStore({ table, endpoint, timeoutMs: TIMEOUT_MS });
  return {
    items,
    open: async (options) => {
      await root.namespaces.register(options.namespace);
      return Repository.connect(table, { endpoint, ...options });
    },
    close: async () => {
      await Promise.all([root.close(), items.close()]);
      await deleteTable({ table, endpoint });
    },
  };
}
