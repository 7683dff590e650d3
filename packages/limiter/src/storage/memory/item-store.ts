/** Items in this process, in ordered maps: for tests, simulations and limits of one process. */

import { isDeepStrictEqual } from "node:util";
import { type Clock, systemClock } from "../../base/clock.ts";
import { InfrastructureError, ValidationError } from "../../domain/errors/errors.ts";
import { CallListeners, freeCall } from "../call-listeners.ts";
import {
  checkKey,
  checkQuery,
  checkSnapshot,
  checkTransaction,
  checkWrite,
  keyOfWrite,
  type ManyWrites,
  writesIn,
} from "../checks.ts";
import { type Item, type Key, keyOf } from "../item.ts";
import type {
  CallListener,
  Change,
  ChangeRecord,
  ChangesOptions,
  Condition,
  Query,
  ReadManyOptions,
  TransactOptions,
  TransactResult,
  Write,
  WriteResult,
} from "../item-store.ts";
import { type PlannedWrite, planWrite, planWrites } from "../plan-writes.ts";
import type { ScanOptions, ScanStore } from "../scan-store.ts";
import { INDEXES, type IndexDefinition, indexNamed, project } from "../table.ts";
import { ChangeLog } from "./feed.ts";
import { OrderedMap } from "./ordered-map.ts";
import { bounds, expiryKey, expiryText, indexKey, tableKey } from "./tree-key.ts";

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
export class MemoryItemStore implements ScanStore {
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

  constructor(options: MemoryItemStoreOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#listeners = new CallListeners(options.onCall);
  }

  /** Adds a listener for requests, and returns a function that removes it. */
  listen(listener: CallListener): () => void {
    return this.#listeners.add(listener);
  }

  /** Returns the item of a key, or `undefined`. */
  async get(key: Key): Promise<Item | undefined> {
    this.#count("get");
    checkKey(key);
    return this.#items.get(tableKey(key));
  }

  /** Reads without a promise, for callers that decide in one step. */
  readNow(key: Key): Item | undefined {
    return this.#items.get(tableKey(key));
  }

  /** Updates without a promise. */
  updateNow(key: Key, change: Change): void {
    this.#write({ update: key, change });
  }

  /** Deletes without a promise. */
  deleteNow(key: Key): void {
    this.#write({ delete: key });
  }

  /** How many items a query would hand out. */
  countNow(query: Query): number {
    const index = query.index === undefined ? undefined : indexNamed(query.index);
    const tree = index === undefined ? this.#items : (this.#indexes.get(index) as Tree);
    const [low, high] = bounds(query);
    return tree.count(low, high);
  }

  /** Iterates over all items without a promise. */
  itemsNow(): Iterable<Item> {
    return this.#items.values();
  }

  /** Returns items in the order of the keys; `undefined` where there is none. */
  async getMany(
    keys: readonly Key[],
    options: ReadManyOptions = {},
  ): Promise<(Item | undefined)[]> {
    this.#count("getMany");
    if (options.snapshot === true) checkSnapshot(keys);
    keys.forEach(checkKey);
    return keys.map((key) => this.#items.get(tableKey(key)));
  }

  /** Writes a whole item where the condition holds. */
  async put(item: Item, condition?: Condition): Promise<WriteResult> {
    this.#count("put");
    return this.#write({ put: item, condition });
  }

  /** Changes attributes of an item where the condition holds, and creates it when it is absent. */
  async update(key: Key, change: Change, condition?: Condition): Promise<WriteResult> {
    this.#count("update");
    return this.#write({ update: key, change, condition });
  }

  /** Removes an item where the condition holds. */
  async delete(key: Key, condition?: Condition): Promise<WriteResult> {
    this.#count("delete");
    return this.#write({ delete: key, condition });
  }

  /** Writes all items where all conditions hold, else none. */
  async transact(writes: readonly Write[], options: TransactOptions = {}): Promise<TransactResult> {
    this.#count("transact");
    checkTransaction(writes);
    if (options.token !== undefined && this.#isRepeated(options.token)) return { ok: true };
    const planned = planWrites(writes, (key) => this.readNow(key));
    if (!planned.result.ok) return planned.result;
    this.#commit(planned.writes);
    if (options.token !== undefined) this.#tokens.set(options.token, this.#clock());
    return { ok: true };
  }

  /** Puts and deletes any number of items without conditions. */
  async writeMany(writes: ManyWrites): Promise<void> {
    this.#count("writeMany");
    this.#commit(planWrites(writesIn(writes), (key) => this.readNow(key)).writes);
  }

  async *query(query: Query): AsyncGenerator<Item> {
    this.#count("query");
    checkQuery(query);
    const index = query.index === undefined ? undefined : indexNamed(query.index);
    const tree = index === undefined ? this.#items : (this.#indexes.get(index) as Tree);
    const [low, high] = bounds(query);
    let left = query.limit ?? Number.POSITIVE_INFINITY;
    let at = query.after === undefined ? undefined : positionOf(query.after, index);
    // Each step starts from the last key, so the tree may change between two steps.
    while (left > 0) {
      const next = query.descending === true ? before(tree, at, high) : after(tree, at, low);
      if (next === undefined || next[0] < low || next[0] > high) return;
      [at] = next;
      left -= 1;
      yield index === undefined ? next[1] : project(index, next[1]);
    }
  }

  async *scan({ after: last }: ScanOptions = {}): AsyncGenerator<Item> {
    this.#count("scan");
    let at = last === undefined ? undefined : tableKey(last);
    for (;;) {
      const next = after(this.#items, at, "");
      if (next === undefined) return;
      [at] = next;
      yield next[1];
    }
  }

  /** Returns the changes of all items; it waits for more until it is broken off. */
  changes(options: ChangesOptions = {}): AsyncIterable<ChangeRecord> {
    return this.#log.read(options);
  }

  /** Ends all feeds of changes. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#log.close();
  }

  #write(write: Write): WriteResult {
    checkWrite(write);
    const step = planWrite(write, this.readNow(keyOfWrite(write)));
    const { ok, before, after } = step;
    if (!ok) return { ok, item: before };
    this.#commit([step]);
    return { ok, item: "update" in write ? after : "delete" in write ? before : undefined };
  }

  #commit(steps: readonly PlannedWrite[]): void {
    const now = this.#clock();
    for (const { key, before, after } of steps) {
      // DynamoDB records no write that leaves the item as it was.
      if (isDeepStrictEqual(before, after)) continue;
      this.#store(key, before, after);
      this.#log.append(keyOf(key), before, after, now, false);
    }
    // After the planned writes: an item that they were based on must not vanish before them.
    this.#dropExpired(now, EXPIRED_PER_WRITE * steps.length);
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

  #dropExpired(now: number, atMost: number): void {
    for (let dropped = 0; dropped < atMost; dropped += 1) {
      const first = this.#expiring.atOrAbove("");
      if (first === undefined || first[0] >= expiryText(Math.floor(now / 1000))) return;
      const [, item] = first;
      this.#store(item, item, undefined);
      this.#log.append(keyOf(item), item, undefined, now, true);
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

  /** Throws when the store was closed: its items must not be relied on any more. */
  refuseClosed(): void {
    if (this.#closed) throw new InfrastructureError("This store is closed");
  }

  #count(operation: string): void {
    this.refuseClosed();
    if (this.#listeners.isEmpty) return;
    this.#listeners.tell(freeCall(operation));
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

function positionOf(item: Item, index: IndexDefinition | undefined): string {
  const position = index === undefined ? tableKey(item) : indexKey(index, item);
  if (position !== undefined) return position;
  throw new ValidationError("after", item, `expected an item with the keys of ${index?.name}`);
}

function after(tree: Tree, at: string | undefined, low: string): [string, Item] | undefined {
  return at === undefined || at < low ? tree.atOrAbove(low) : tree.above(at);
}

function before(tree: Tree, at: string | undefined, high: string): [string, Item] | undefined {
  return at === undefined || at > high ? tree.atOrBelow(high) : tree.below(at);
}
