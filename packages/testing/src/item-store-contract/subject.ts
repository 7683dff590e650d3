/** The subject of a contract test: a store, and keys that no other test uses. */

import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import { systemRandom } from "@zae-limiter/limiter/base/random.ts";
import { systemClock, systemTimer } from "@zae-limiter/limiter/base/time.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Item, Key, Value } from "@zae-limiter/limiter/storage/item.ts";
import {
  ITEM_EXISTS,
  type ItemStore,
  type Query,
  type Write,
} from "@zae-limiter/limiter/storage/item-store.ts";
import { type ItemTable, isItemTable } from "@zae-limiter/limiter/storage/item-table.ts";
import { OptimisticSteps } from "@zae-limiter/limiter/storage/optimistic-steps.ts";
import { StepItemStore } from "@zae-limiter/limiter/storage/step-item-store.ts";
import { type Cases, casesOf, type TestRunner } from "../test-runner.ts";

/** A store that was opened for the suite. */
export interface OpenedStore {
  /** The store, or the table that one is made of. */
  readonly store: ItemStore | ItemTable;
  /**
   * Lets time pass for the store; without it, `noTimePasses` says why. A table gets the time
   * with each commit, and needs none of it.
   */
  readonly advance?: (milliseconds: number) => void;
  /** Closes the store and removes what it held. */
  close(): Promise<void>;
}

type OpenedItemStore = OpenedStore & { readonly store: ItemStore };

/** Properties of a store that the suite needs before the store is open. */
export interface ContractOptions {
  /** How many items a large partition holds: more than a batch (25). Default 130. */
  readonly many?: number;
  /**
   * Attributes that GSI2 copies. A table in the shape of the Python library copies `ALL`, and the
   * tests then check only the keys.
   */
  readonly gsi2Projection?: "ALL" | "KEYS_ONLY";
  /** Why writes without a change appear in the feed, where they do: that test is skipped. */
  readonly unchangedAppear?: string | undefined;
  /** Reason why time cannot be set for the store; the tests of expiry are then skipped. */
  readonly noTimePasses?: string | undefined;
}

/** A feed without changes ends after this time, and the test fails on what is missing. */
const GUARD_MS = 20_000;
/** The store may share the machine with other tests, so deadlines prove nothing here. */
const TIMEOUT_MS = 20_000;
const PAUSE_MS = 20;
const MANY = 130;

/** The suite creates it before the store is open, so the store is looked up when a test runs. */
export class Subject {
  readonly cases: Cases;
  readonly options: ContractOptions;
  #opened: OpenedItemStore | undefined;

  constructor(runner: TestRunner, options: ContractOptions) {
    this.cases = casesOf(runner);
    this.options = options;
  }

  opened({ store, ...rest }: OpenedStore): void {
    this.#opened = isItemTable(store) ? { ...rest, ...overTable(store) } : { ...rest, store };
  }

  get store(): ItemStore {
    return this.#open.store;
  }

  /** Lets time pass for the store. */
  advance(milliseconds: number): void {
    const { advance } = this.#open;
    if (advance === undefined) throw new Error("Pass `advance`, or say `noTimePasses`");
    advance(milliseconds);
  }

  /** Ends a feed that would wait too long. */
  guard(milliseconds = GUARD_MS): AbortSignal {
    return AbortSignal.timeout(milliseconds);
  }

  /** Gives the store time for its background work. */
  async pause(): Promise<void> {
    await sleep(PAUSE_MS);
  }

  /** Returns a token that no other transaction uses. */
  token(): string {
    return crypto.randomUUID();
  }

  /** How many items a large partition holds. */
  get many(): number {
    return this.options.many ?? MANY;
  }

  /** Expects a `ValidationError`; any other error is shown. */
  async expectRefused(call: Promise<unknown>): Promise<void> {
    const outcome = await call.then(
      () => "done",
      (error: unknown) => (error instanceof ValidationError ? "refused" : String(error)),
    );
    this.cases.expect(outcome).toBe("refused");
  }

  close(): Promise<void> {
    return this.#open.close();
  }

  /** Returns a new partition, so that all tests can share one table. */
  partition(): string {
    return `${this.token()}/ENTITY#user-1`;
  }

  key(): Key {
    return { PK: this.partition(), SK: "#META" };
  }

  /** Stores an item with these attributes and returns it. */
  async stored(attributes: Readonly<Record<string, Value>> = {}): Promise<Item> {
    const item = itemWith(this.key(), attributes);
    await this.store.put(item);
    return item;
  }

  /** Returns one write of each kind, and the item of each. */
  async eachKindOfWrite() {
    const put = { ...this.key(), n: 4 };
    const updated = await this.stored({ n: 1 });
    const deleted = await this.stored({ n: 2 });
    const checked = await this.stored({ n: 3 });
    const writes: readonly Write[] = [
      { put },
      { update: updated, change: { add: { n: 10 } } },
      { delete: deleted },
      { check: checked, condition: [ITEM_EXISTS] },
    ];
    return { put, updated, deleted, checked, writes };
  }

  /** Reads that see what was written before. */
  read(key: Key): Promise<Item | undefined> {
    return this.store.get({ PK: key.PK, SK: key.SK }, { consistent: true });
  }

  readMany(keys: readonly Key[]): Promise<(Item | undefined)[]> {
    return this.store.getMany(keys, { consistent: true });
  }

  /** Returns all items that a query finds. */
  find(query: Query): Promise<Item[]> {
    return collect(this.store.query(query));
  }

  get #open(): OpenedItemStore {
    if (this.#opened === undefined) throw new Error("The store is not open yet");
    return this.#opened;
  }
}

/** Builds an item from entries: a spread would not copy an attribute named `__proto__`. */
export function itemWith(key: Key, attributes: Readonly<Record<string, Value>>): Item {
  return Object.fromEntries([
    ["PK", key.PK],
    ["SK", key.SK],
    ...Object.entries(attributes),
  ]) as unknown as Item;
}

/** Returns an object with one attribute, of any name. */
export function attribute<T extends Value>(name: string, value: T): Record<string, T> {
  return Object.fromEntries([[name, value]]);
}

/** Returns the numbers 0, 1, 2 ... below `count`. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, position) => position);
}

/** Returns a number as text that sorts like the number. */
export function padded(position: number): string {
  return String(position).padStart(5, "0");
}

/** Formats a value for the title of a test. */
export function show(value: Value): string {
  return value instanceof Set || typeof value === "bigint" ? inspect(value) : JSON.stringify(value);
}

/** Collects all values of an iteration. */
export async function collect<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of iterable) all.push(one);
  return all;
}

/** Makes a store of a table, with a clock that can be moved on. */
function overTable(table: ItemTable) {
  let aheadMs = 0;
  const steps = new OptimisticSteps(table, {
    clock: () => systemClock() + aheadMs,
    timer: systemTimer,
    random: systemRandom,
    timeoutMs: TIMEOUT_MS,
  });
  const advance = (milliseconds: number) => {
    aheadMs += milliseconds;
  };
  return { store: new StepItemStore(steps), advance };
}
