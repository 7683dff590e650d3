/** Items in this process, in ordered maps: for tests, simulations and limits of one process. */

import { isDeepStrictEqual } from "node:util";
import { type Clock, systemClock } from "../../base/time.ts";
import { InfrastructureError } from "../../domain/errors/errors.ts";
import { CallListeners, freeCall } from "../call-listeners.ts";
import { applyChange } from "../evaluate.ts";
import { type Item, type Key, keyOf } from "../item.ts";
import type { CallListener, Change, ChangeRecord, ChangesOptions, Query } from "../item-store.ts";
import type { PageRange } from "../item-table.ts";
import type { ScanOptions, ScanStore } from "../scan-store.ts";
import { halfOpenRange } from "../sort-range.ts";
import { StepItemStore } from "../step-item-store.ts";
import type { StepOptions, StepRows, StepTable } from "../step-table.ts";
import { INDEXES, type IndexDefinition, indexNamed } from "../table.ts";
import { ChangeLog } from "./feed.ts";
import { OrderedMap } from "./ordered-map.ts";
import { after, bounds, expiryKey, expiryText, indexKey, tableKey } from "./tree-key.ts";

type Tree = OrderedMap<Item>;

/** Writes drop expired items, a few at a time. */
const EXPIRED_PER_WRITE = 2;
const TOKEN_LIFETIME_MS = 600_000;

/** How a store in memory is made. */
export interface MemoryItemStoreOptions {
  /** Epoch milliseconds; for tests and simulation. */
  readonly clock?: Clock;
  /** Receives every request to the store. */
  readonly onCall?: CallListener | undefined;
}

/**
 * An item store in this process, as `memory:` has it: to try out code that takes a store, to wrap,
 * or to compare another store with.
 *
 * @example
 * ```ts
 * import { RateLimiter, Repository } from 'zae-limiter';
 * import { MemoryItemStore } from 'zae-limiter/testing';
 * const store = new MemoryItemStore();
 * const limiter = new RateLimiter(await Repository.over(store));
 * await limiter.repository.entities.create({ id: 'key-1' });
 * for await (const item of store.scan()) {
 *   if (item.SK === '#META') console.log(item['entity_id']); // key-1
 * }
 * await limiter.close();
 * ```
 */
export class MemoryItemStore extends StepItemStore implements ScanStore {
  readonly #steps: MemorySteps;

  constructor(options: MemoryItemStoreOptions = {}) {
    const steps = new MemorySteps(options);
    super(steps);
    this.#steps = steps;
  }

  /** Reads without a promise, for callers that decide in one step. */
  readNow(key: Key): Item | undefined {
    return this.#steps.get(key);
  }

  /** Updates without a promise. */
  updateNow(key: Key, change: Change): void {
    this.#steps.write(key, applyChange(key, this.#steps.get(key), change));
  }

  /** Deletes without a promise. */
  deleteNow(key: Key): void {
    this.#steps.write(key, undefined);
  }

  /** Counts the items that a query would return. */
  countNow({ index, partition, sort }: Query): number {
    const range = halfOpenRange(sort);
    if (range === undefined) return 0;
    return this.#steps.treeOf(index).count(...bounds({ partition, ...range }));
  }

  /** Iterates over all items without a promise. */
  itemsNow(): Iterable<Item> {
    return this.#steps.treeOf(undefined).values();
  }

  /** Returns every item that exists from beginning to end, once, in the order of the keys. */
  scan(options: ScanOptions = {}): AsyncGenerator<Item> {
    return this.#steps.scan(options);
  }

  /** Throws when the store was closed: its items must not be relied on any more. */
  refuseClosed(): void {
    this.#steps.refuseClosed();
  }
}

/** Runs each step at once: nothing else runs before its end. */
class MemorySteps implements StepTable, StepRows {
  readonly #clock: Clock;
  readonly #listeners: CallListeners;
  readonly #items: Tree = new OrderedMap();
  readonly #indexes = new Map<IndexDefinition, Tree>(
    INDEXES.map((index) => [index, new OrderedMap()]),
  );
  readonly #expiring: Tree = new OrderedMap();
  readonly #tokens = new Map<string, number>();
  readonly #log = new ChangeLog();
  #closed = false;
  /** Number of rows that the step has set. */
  #sets = 0;

  constructor(options: MemoryItemStoreOptions) {
    this.#clock = options.clock ?? systemClock;
    this.#listeners = new CallListeners(options.onCall);
  }

  begin(operation: string): void {
    this.refuseClosed();
    if (!this.#listeners.isEmpty) this.#listeners.tell(freeCall(operation));
  }

  /** Needs no pause, and must not: virtual time is stopped while work leaves its promises. */
  pause(): undefined {}

  async step<Result>(
    work: (rows: StepRows) => Result,
    { once }: StepOptions<Result>,
  ): Promise<Result> {
    this.refuseClosed();
    if (once !== undefined && this.#isRepeated(once.token)) return once.repeated;
    this.#sets = 0;
    const result = work(this);
    if (once !== undefined && this.#sets > 0) this.#tokens.set(once.token, this.#clock());
    // After the writes of the step: an item that they were based on must not vanish before them.
    this.#dropExpired(EXPIRED_PER_WRITE * this.#sets);
    return result;
  }

  async peek<Result>(work: (rows: StepRows) => Result): Promise<Result> {
    this.refuseClosed();
    return work(this);
  }

  get(key: Key): Item | undefined {
    return this.#items.get(tableKey(key));
  }

  set(key: Key, after: Item | undefined): void {
    this.#sets += 1;
    const before = this.get(key);
    // DynamoDB records no write that leaves the item as it was.
    if (isDeepStrictEqual(before, after)) return;
    this.#store(key, before, after);
    this.#log.append(keyOf(key), before, after, this.#clock(), false);
  }

  /** Writes outside of a step. */
  write(key: Key, after: Item | undefined): void {
    this.set(key, after);
    this.#dropExpired(EXPIRED_PER_WRITE);
  }

  treeOf(name: PageRange["index"]): Tree {
    return name === undefined ? this.#items : (this.#indexes.get(indexNamed(name)) as Tree);
  }

  async page(range: PageRange): Promise<readonly Item[]> {
    this.refuseClosed();
    const { index, descending, limit } = range;
    const tree = this.treeOf(index);
    const [low, high] = bounds(range);
    let at = range.after === undefined ? undefined : placeOf(range.after, index);
    const found: Item[] = [];
    while (found.length < limit) {
      const next = descending ? below(tree, at, high) : above(tree, at, low);
      if (next === undefined || next[0] < low || next[0] >= high) return found;
      at = next[0];
      found.push(next[1]);
    }
    return found;
  }

  async *scan(options: ScanOptions): AsyncGenerator<Item> {
    this.begin("scan");
    let at = options.after === undefined ? undefined : tableKey(options.after);
    for (;;) {
      // Each turn starts from the last key, so the tree may change between two of them.
      const next = above(this.#items, at, "");
      if (next === undefined) return;
      at = next[0];
      yield next[1];
    }
  }

  changes(options: ChangesOptions): AsyncIterableIterator<ChangeRecord> {
    return this.#log.read(options);
  }

  listen(listener: CallListener): () => void {
    return this.#listeners.add(listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#log.close();
  }

  refuseClosed(): void {
    if (this.#closed) throw new InfrastructureError("This store is closed");
  }

  #store(key: Key, before: Item | undefined, after: Item | undefined): void {
    const at = tableKey(key);
    if (after === undefined) this.#items.delete(at);
    else this.#items.set(at, after);
    for (const [index, tree] of this.#indexes) {
      move(tree, indexKey(index, before), indexKey(index, after), after);
    }
    move(this.#expiring, expiryKey(before), expiryKey(after), after);
  }

  #dropExpired(atMost: number): void {
    const nowMs = this.#clock();
    for (let dropped = 0; dropped < atMost; dropped += 1) {
      const first = this.#expiring.atOrAbove("");
      if (first === undefined || first[0] >= expiryText(Math.floor(nowMs / 1000))) return;
      const [, item] = first;
      this.#store(item, item, undefined);
      this.#log.append(keyOf(item), item, undefined, nowMs, true);
    }
  }

  #isRepeated(token: string): boolean {
    const now = this.#clock();
    for (const [known, usedAt] of this.#tokens) {
      if (now - usedAt < TOKEN_LIFETIME_MS) break;
      this.#tokens.delete(known);
    }
    return this.#tokens.has(token);
  }
}

function move(
  tree: Tree,
  from: string | undefined,
  to: string | undefined,
  item: Item | undefined,
): void {
  if (from !== undefined && from !== to) tree.delete(from);
  if (to !== undefined) tree.set(to, item as Item);
}

function placeOf(item: Item, index: PageRange["index"]): string {
  if (index === undefined) return tableKey(item);
  return indexKey(indexNamed(index), item) as string;
}

function above(tree: Tree, at: string | undefined, low: string): [string, Item] | undefined {
  return tree.atOrAbove(at === undefined || at < low ? low : after(at));
}

function below(tree: Tree, at: string | undefined, high: string): [string, Item] | undefined {
  return tree.below(at === undefined || at > high ? high : at);
}
