/**
 * The stores that limiters are tested on: the embedded ones, the distributed buckets over a store
 * in memory, and both DynamoDB engines. A test file has one of each, and every test a namespace of
 * its own, with a clock that the test moves.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RateLimiterOptions } from "@zae-limiter/limiter/acquire/limiter-options.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { createTable, deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import type { RunningEngine } from "@zae-limiter/test-engines/engine.ts";
import { describeEngine, describeEngines } from "@zae-limiter/test-engines/engines.ts";
import type { FakeDynamo } from "@zae-limiter/test-engines/fake-dynamodb.ts";
import { counted } from "@zae-limiter/test-support/counted.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import type { Reason } from "@zae-limiter/test-support/unless.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { type Faults, faultyEndpoint, faultyItems } from "./faults.ts";
import { timed } from "./timed.ts";

/** The databases share the machine with other tests, so deadlines prove nothing here. */
const TIMEOUT_MS = 20_000;

/** Where buckets are, and how a repository gets there. */
interface Place {
  /** The items underneath; the embedded stores keep buckets elsewhere. */
  readonly items?: ItemStore;
  /** The file, the endpoint: whatever a test needs to break it. */
  readonly address: string;
  readonly table?: string;
  open(options: DynamoOptions & { namespace: string }, faults?: Faults): Promise<Repository>;
  close(): Promise<void>;
}

export interface SubjectOptions extends DynamoOptions, RateLimiterOptions {
  /** The clock of another subject; one of its own when absent. */
  readonly time?: VirtualTime;
  /** Waiting and deadlines are virtual too. */
  readonly virtualTimer?: boolean;
  /** What goes wrong; for stores where buckets are items. */
  readonly faults?: Faults;
}

/** A limiter under test. */
export interface Subject {
  readonly limiter: RateLimiter;
  readonly repo: Repository;
  readonly time: VirtualTime;
}

/** One limit of one bucket, to the milli. */
export interface Milli {
  readonly balance: number;
  readonly consumed: number;
}

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
    return this.name === "dynamodb-local" && "DynamoDB Local is slow, and dynoxide runs this";
  }

  /** All variants of a case; on a slow engine the first two. */
  variants<T>(all: readonly T[]): readonly T[] {
    return this.slow !== false ? all.slice(0, 2) : all;
  }

  get place(): Place {
    if (this.#place === undefined) throw new Error("The store is not open yet");
    return this.#place;
  }

  /** A limiter in a new namespace, or in the one that is named. It is closed after the test. */
  async open(options: SubjectOptions = {}): Promise<Subject> {
    // The real time: an engine may delete items whose time to live is in the past.
    const { time = new VirtualTime(Date.now()), virtualTimer, faults, ...rest } = options;
    const { speculativeWrites, missingLimits, events, onWarning, ...open } = rest;
    const repo = await this.place.open(
      {
        timeoutMs: TIMEOUT_MS,
        clock: time.clock,
        ...(virtualTimer === true ? { timer: time.timer } : {}),
        ...open,
        namespace: options.namespace ?? newName(),
      },
      faults,
    );
    this.#opened.push(repo);
    const seen = virtualTimer === true ? timed(repo, time) : repo;
    const limiter = new RateLimiter(seen, {
      ...(speculativeWrites === undefined ? {} : { speculativeWrites }),
      ...(missingLimits === undefined ? {} : { missingLimits }),
      ...(events === undefined ? {} : { events }),
      ...(onWarning === undefined ? {} : { onWarning }),
    });
    return { limiter, repo, time };
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

/** Balance and consumption of a limit, to the milli; `undefined` when there is no bucket. */
export async function milliOf(
  { repo }: Subject,
  entityId: string,
  resource: string,
  limitName: string,
): Promise<Milli | undefined> {
  const states = await repo[INTERNALS].buckets.list(entityId, resource);
  const found = states.find((state) => state.limitName === limitName);
  if (found === undefined) return undefined;
  return { balance: found.balanceMilli, consumed: Number(found.consumedMilli) };
}

type Suite = (store: LimiterStore) => void;

/** One `describe` per store. */
export function describeLimiterStores(title: string, suite: Suite): void {
  const embedded = { distributed: false, real: false };
  describe(`${title} in memory`, () => {
    onStore(new LimiterStore("memory", embedded), openMemory, suite);
  });
  describe(`${title} in sqlite`, () => {
    onStore(new LimiterStore("sqlite", embedded), openFile, suite);
  });
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

/** One engine, with every request through the SDK. */
export function describeSdk(title: string, suite: Suite): void {
  describeEngine("dynoxide", `${title} through the SDK`, (engine) => {
    const store = new LimiterStore(engine.name, { distributed: true, real: true });
    onStore(store, () => openTable(engine, {}, "sdk"), suite);
  });
}

function onStore(store: LimiterStore, open: () => Promise<Place>, suite: Suite): void {
  beforeAll(async () => store.enter(await open()));
  afterEach(() => store.closeOpened());
  afterAll(() => store.place.close());
  suite(store);
}

/** Every memory is one of its own, so a second opening is the first one, seen once more. */
async function openMemory(): Promise<Place> {
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

async function openFile(): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  const path = join(directory, "limits.db");
  return {
    address: path,
    open: (options) => Repository.open(`sqlite:${path}`, options),
    close: async () => rmSync(directory, { recursive: true }),
  };
}

async function openItems(over: typeof Repository.over): Promise<Place> {
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

async function openTable(
  { endpoint }: RunningEngine,
  shape: { gsi2Projection?: "ALL"; lsis?: true },
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
