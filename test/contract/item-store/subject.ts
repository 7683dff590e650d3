/** What a contract test works with: a store, and keys that no other test uses. */

import { inspect } from "node:util";
import type { Item, Key, Value } from "../../../src/storage/item.ts";
import type { ItemStore } from "../../../src/storage/item-store.ts";

/** A store that was opened for the suite. */
export interface OpenedStore {
  readonly store: ItemStore;
  /** Lets time pass for the store, where it can be told the time. */
  readonly advance?: (milliseconds: number) => void;
  close(): Promise<void>;
}

/** What the suite must know about a store before it is open. */
export interface ContractOptions {
  /** How many items a large partition holds: more than a batch (25), few for a slow store. */
  readonly many: number;
  /**
   * What GSI2 copies. A table in the shape of the Python library copies `ALL`, and the tests then
   * ask only for the keys.
   */
  readonly gsi2Projection?: "ALL" | "KEYS_ONLY";
  /** Why writes that change nothing show up in the feed, where they do: the test is skipped then. */
  readonly unchangedAppear?: string | undefined;
}

/** The suite creates it before the store is open, so the store is looked up when a test runs. */
export class Subject {
  readonly options: ContractOptions;
  #opened: OpenedStore | undefined;

  constructor(options: ContractOptions) {
    this.options = options;
  }

  opened(opened: OpenedStore): void {
    this.#opened = opened;
  }

  get store(): ItemStore {
    return this.#open.store;
  }

  get advance(): OpenedStore["advance"] {
    return this.#open.advance;
  }

  close(): Promise<void> {
    return this.#open.close();
  }

  /** A partition of its own, so that all tests can share one table. */
  partition(): string {
    return `${crypto.randomUUID()}/ENTITY#user-1`;
  }

  key(): Key {
    return { PK: this.partition(), SK: "#META" };
  }

  /** An item that is stored. */
  async stored(attributes: Readonly<Record<string, Value>> = {}): Promise<Item> {
    const item = itemWith(this.key(), attributes);
    await this.store.put(item);
    return item;
  }

  /** A read that sees what was written before. */
  read(key: Key): Promise<Item | undefined> {
    return this.store.get({ PK: key.PK, SK: key.SK }, { consistent: true });
  }

  get #open(): OpenedStore {
    if (this.#opened === undefined) throw new Error("The store is not open yet");
    return this.#opened;
  }
}

/** A spread would not copy an attribute named `__proto__` from a literal; entries do. */
export function itemWith(key: Key, attributes: Readonly<Record<string, Value>>): Item {
  return Object.fromEntries([
    ["PK", key.PK],
    ["SK", key.SK],
    ...Object.entries(attributes),
  ]) as unknown as Item;
}

/** One attribute under any name. */
export function attribute<T extends Value>(name: string, value: T): Record<string, T> {
  return Object.fromEntries([[name, value]]);
}

/** The numbers 0, 1, 2 ... below `count`. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, position) => position);
}

/** A number as text that sorts like the number. */
export function padded(position: number): string {
  return String(position).padStart(5, "0");
}

/** A value in the name of a test. */
export function show(value: Value): string {
  return value instanceof Set || typeof value === "bigint" ? inspect(value) : JSON.stringify(value);
}

/** All that an iteration hands out. */
export async function collect<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of iterable) all.push(one);
  return all;
}
