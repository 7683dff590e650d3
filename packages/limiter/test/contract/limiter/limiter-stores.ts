/**
 * The stores that limiters are tested on: the embedded ones, the distributed buckets over a store
 * in memory, and both DynamoDB engines. A test file has one of each, and every test a namespace of
 * its own, with a clock that the test moves.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { createTable, deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import type { ItemTable } from "@zae-limiter/limiter/storage/item-table.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { PostgresItemTable } from "@zae-limiter/limiter/storage/postgres/item-table.ts";
import { RedisItemTable } from "@zae-limiter/limiter/storage/redis/item-table.ts";
import type { RunningEngine } from "@zae-limiter/test-engines/engine.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import type { FakeDynamo } from "@zae-limiter/test-engines/fake-dynamodb.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { describeRedis } from "@zae-limiter/test-engines/redis.ts";
import { counted } from "@zae-limiter/test-support/counted.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { newSchema } from "@zae-limiter/test-support/postgres-schema.ts";
import { newPrefix } from "@zae-limiter/test-support/redis-prefix.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import type { Reason } from "@zae-limiter/test-support/unless.ts";
import {
  type SubjectOptions as ContractSubjectOptions,
  openSubject,
  type Subject,
} from "@zae-limiter/testing/limiter-contract/subject.ts";
import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { Faults, faultyEndpoint, faultyItems, faultyTable } from "./faults.ts";

const OWN_STORE = new URL("../../../../../examples/own-store/map-table.js", import.meta.url).href;

/** The databases share the machine with other tests, so deadlines prove nothing here. */
const TIMEOUT_MS = 20_000;

/** Why DynamoDB Local runs only the numbered cases. */
export const SLOW = "DynamoDB Local is slow, and dynoxide runs this";

/** The storage of buckets, and how a repository is opened on it. */
interface Place {
  /** The items underneath; the embedded stores keep buckets elsewhere. */
  readonly items?: ItemStore;
  /** The file, the endpoint: whatever a test needs to break it. */
  readonly address: string;
  readonly table?: string;
  open(options: DynamoOptions & { namespace: string }, faults?: Faults): Promise<Repository>;
  close(): Promise<void>;
}

export interface SubjectOptions extends DynamoOptions, ContractSubjectOptions {
  /** Faults to inject, for stores where buckets are items. */
  readonly faults?: Faults;
}

export { milliOf } from "@zae-limiter/testing/limiter-contract/balances.ts";
export type { Subject };

export class LimiterStore {
  readonly name: string;
  /** Buckets are items that any number of clients share. */
  readonly distributed: boolean;
  /** An engine of DynamoDB, with a real network in between. */
  readonly real: boolean;
  readonly #opened: Repository[] = [];
  #place: Place | undefined;

  constructor(name: string, kind: { distributed: boolean; real: boolean }) {
    this.name = name;
    this.distributed = kind.distributed;
    this.real = kind.real;
  }

  /** Two openings are two clients with memories of their own. */
  get separate(): boolean {
    return this.name !== "memory";
  }

  /**
   * Why a test is not run here: DynamoDB Local needs a tenth of a second where dynoxide needs a
   * hundredth, and beyond the numbered cases it proves nothing more.
   */
  get slow(): Reason {
    return this.name === "dynamodb-local" && SLOW;
  }

  get place(): Place {
    if (this.#place === undefined) throw new Error("The store is not open yet");
    return this.#place;
  }

  /** A limiter in a new namespace, or in the one that is named. It is closed after the test. */
  async open(options: SubjectOptions = {}): Promise<Subject> {
    const { faults, ...rest } = options;
    const subject = await openSubject((own) => this.place.open(own, faults), rest);
    this.#opened.push(subject.repo);
    return subject;
  }

  /** Another client of the same namespace, at the same time. */
  async another(subject: Subject, options: SubjectOptions = {}): Promise<Subject> {
    return this.open({ time: subject.time, namespace: subject.repo.namespaceName, ...options });
  }

  /** The item of a bucket, for stores where it is one. */
  async item({ repo }: Subject, entityId: string, resource: string): Promise<Item | undefined> {
    const { items } = this.place;
    if (items === undefined) throw new Error(`Buckets are no items in ${this.name}`);
    return items.get(bucketKey(repo.namespaceId, entityId, resource, 0), { consistent: true });
  }

  enter(place: Place): void {
    this.#place = place;
  }

  async closeOpened(): Promise<void> {
    for (const repository of this.#opened.splice(0)) await repository.close();
  }
}

type Suite = (store: LimiterStore) => void;

/** One `describe` per table behind a network. */
export function describeTables(title: string, suite: Suite): void {
  const embedded = { distributed: false, real: false };
  describe(`${title} in a table`, () => {
    onStore(new LimiterStore("table", embedded), openItemTable, suite);
  });
  describePostgres(title, (url) => {
    onStore(new LimiterStore("postgres", embedded), () => openPostgres(url), suite);
  });
  describeRedis(title, (url) => {
    onStore(new LimiterStore("redis", embedded), () => openRedis(url), suite);
  });
}

/** One `describe` per store. */
export function describeLimiterStores(title: string, suite: Suite): void {
  const embedded = { distributed: false, real: false };
  describe(`${title} in memory`, () => {
    onStore(new LimiterStore("memory", embedded), openMemory, suite);
  });
  describe(`${title} in sqlite`, () => {
    onStore(new LimiterStore("sqlite", embedded), openFile, suite);
  });
  describeTables(title, suite);
  describe(`${title} in a custom store`, () => {
    const store = new LimiterStore("custom", { distributed: true, real: false });
    onStore(store, () => openItems(Repository.over), suite);
  });
  describeItemStores(title, suite);
}

/** Only those where buckets are items. */
export function describeItemStores(title: string, suite: Suite): void {
  describe(`${title} in items in memory`, () => {
    const store = new LimiterStore("items", { distributed: true, real: false });
    onStore(store, () => openItems(overTable), suite);
  });
  describeDynamo(title, suite);
}

/** Only the engines of DynamoDB, with a table in our shape or in that of the reference. */
export function describeDynamo(
  title: string,
  suite: Suite,
  shape: { gsi2Projection?: "ALL"; lsis?: true } = {},
): void {
  describeEngines(title, (engine) => {
    const store = new LimiterStore(engine.name, { distributed: true, real: true });
    onStore(store, () => openTable(engine, shape), suite);
  });
}

function onStore(store: LimiterStore, open: () => Promise<Place>, suite: Suite): void {
  beforeAll(async () => store.enter(await open()));
  afterEach(() => store.closeOpened());
  afterAll(() => store.place.close());
  suite(store);
}

/** Every memory is one of its own, so a second opening is the first one, seen once more. */
export async function openMemory(): Promise<Place> {
  const opened = new Map<string, Repository>();
  return {
    address: "memory:",
    open: async (options) => {
      const known = opened.get(options.namespace);
      if (known !== undefined) return known.namespace(options.namespace);
      const repository = await Repository.open("memory:", options);
      opened.set(options.namespace, repository);
      return repository;
    },
    close: async () => undefined,
  };
}

export async function openFile(): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  const path = join(directory, "limits.db");
  return {
    address: path,
    open: (options) => Repository.open(`sqlite:${path}`, options),
    close: async () => rmSync(directory, { recursive: true }),
  };
}

/** The table of `examples/own-store`, which every opening shares. */
async function openItemTable(): Promise<Place> {
  const { MapTable } = (await import(/* @vite-ignore */ OWN_STORE)) as {
    MapTable: new () => ItemTable;
  };
  const table = new MapTable();
  return {
    address: "table",
    open: ({ maxAttempts: _, ...options }, faults = new Faults()) =>
      Repository.over(faultyTable(table, faults), options),
    close: () => table.close(),
  };
}

/** A schema of its own, whose connections every opening shares. */
export async function openPostgres(url: string): Promise<Place> {
  const schema = await newSchema(url);
  const table = new PostgresItemTable(schema.connection);
  return {
    address: "postgres://test",
    open: ({ maxAttempts: _, ...options }, faults = new Faults()) =>
      Repository.over(faultyTable(table, faults), options),
    close: () => schema.drop(),
  };
}

/** A prefix of its own, whose connection every opening shares. */
export async function openRedis(url: string): Promise<Place> {
  const prefix = await newPrefix(url);
  const table = new RedisItemTable(prefix.connection);
  return {
    address: "redis://test",
    open: ({ maxAttempts: _, ...options }, faults = new Faults()) =>
      Repository.over(faultyTable(table, faults), options),
    close: () => prefix.drop(),
  };
}

export async function openItems(over: typeof Repository.over): Promise<Place> {
  const items = new MemoryItemStore();
  return {
    items,
    address: "memory:",
    // Attempts are those of the requests to DynamoDB, of which there are none here.
    open: ({ maxAttempts: _, ...options }, faults) => {
      const store = faults === undefined ? items : faultyItems(items, faults);
      return over(counted(store), options);
    },
    close: () => items.close(),
  };
}

export async function openTable(
  { endpoint }: RunningEngine,
  shape: { gsi2Projection?: "ALL"; lsis?: true } = {},
  transport: "lean" | "sdk" = "lean",
): Promise<Place> {
  const table = newName();
  // These suites do not read the stream, and the engines get slower with each of its records.
  await createTable({ table, endpoint, stream: false, ...shape });
  const root = await Repository.createTable(table, { endpoint, timeoutMs: TIMEOUT_MS });
  const items = new DynamoItemStore({ table, endpoint, timeoutMs: TIMEOUT_MS });
  const servers: FakeDynamo[] = [];
  return {
    items,
    table,
    address: endpoint,
    open: async (options, faults) => {
      await root.namespaces.register(options.namespace);
      if (faults === undefined)
        return Repository.connect(table, { endpoint, transport, ...options });
      const server = await faultyEndpoint(endpoint, faults);
      servers.push(server);
      return Repository.connect(table, { transport, ...options, endpoint: server.endpoint });
    },
    close: async () => {
      await Promise.all([root.close(), items.close()]);
      for (const server of servers) await server[Symbol.asyncDispose]();
      await deleteTable({ table, endpoint });
    },
  };
}
