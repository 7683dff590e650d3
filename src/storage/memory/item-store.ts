/** Items in this process, in ordered trees: for tests, simulations and limits of one process. */

import sortedBtree from "sorted-btree";
import type { Clock } from "../../domain/clock.ts";
import { systemClock } from "../../domain/clock.ts";
import { applyChange, holds } from "../evaluate.ts";
import { type Item, type Key, keyOf } from "../item.ts";
import type {
  Change,
  ChangeRecord,
  ChangesOptions,
  Condition,
  ItemStore,
  Query,
  StoreCall,
  TransactOptions,
  TransactResult,
  Write,
  WriteResult,
} from "../item-store.ts";
import { INDEXES, type IndexDefinition, indexNamed, project, TTL_ATTRIBUTE } from "../table.ts";
import { checkTransaction, keyOfWrite } from "../transaction.ts";
import { ChangeLog } from "./change-log.ts";

const BTree = sortedBtree.default;
type Tree = InstanceType<typeof BTree<string, Item>>;

/** Lower than any character of a key, so that a prefix sorts before what it begins. */
const SEPARATOR = "\u0000";
/** Higher than any character of a key. */
const LAST = "\uffff";
const EXPIRY_DIGITS = 12;
/** Items whose time is over are dropped a few at a time, by the writes that come along. */
const EXPIRED_PER_WRITE = 2;
const TOKEN_LIFETIME_MS = 600_000;

export interface MemoryItemStoreOptions {
  readonly clock?: Clock;
  readonly onCall?: ((call: StoreCall) => void) | undefined;
}

export class MemoryItemStore implements ItemStore {
  readonly #clock: Clock;
  readonly #onCall: ((call: StoreCall) => void) | undefined;
  readonly #items: Tree = new BTree();
  readonly #indexes = new Map<IndexDefinition, Tree>(INDEXES.map((index) => [index, new BTree()]));
  readonly #expiring: Tree = new BTree();
  readonly #tokens = new Map<string, number>();
  readonly #log = new ChangeLog();

  constructor(options: MemoryItemStoreOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#onCall = options.onCall;
  }

  async get(key: Key): Promise<Item | undefined> {
    this.#count("get");
    return this.#items.get(treeKey(key.PK, key.SK));
  }

  async getMany(keys: readonly Key[]): Promise<(Item | undefined)[]> {
    this.#count("getMany");
    return keys.map((key) => this.#items.get(treeKey(key.PK, key.SK)));
  }

  async put(item: Item, condition?: Condition): Promise<WriteResult> {
    this.#count("put");
    return this.#write({ put: item, ...withCondition(condition) });
  }

  async update(key: Key, change: Change, condition?: Condition): Promise<WriteResult> {
    this.#count("update");
    return this.#write({ update: key, change, ...withCondition(condition) });
  }

  async delete(key: Key, condition?: Condition): Promise<WriteResult> {
    this.#count("delete");
    return this.#write({ delete: key, ...withCondition(condition) });
  }

  async transact(writes: readonly Write[], options: TransactOptions = {}): Promise<TransactResult> {
    this.#count("transact");
    checkTransaction(writes);
    if (options.token !== undefined && this.#isRepeated(options.token)) return { ok: true };
    const failures = new Map<number, { item: Item | undefined }>();
    const planned = writes.map((write, position) => {
      const step = this.#plan(write);
      if (!step.ok) failures.set(position, { item: step.before });
      return step;
    });
    if (failures.size > 0) return { ok: false, failures };
    for (const step of planned) this.#replace(step.key, step.before, step.after);
    if (options.token !== undefined) this.#tokens.set(options.token, this.#clock());
    return { ok: true };
  }

  async writeMany(writes: {
    readonly puts?: readonly Item[];
    readonly deletes?: readonly Key[];
  }): Promise<void> {
    this.#count("writeMany");
    for (const item of writes.puts ?? []) this.#write({ put: item });
    for (const key of writes.deletes ?? []) this.#write({ delete: key });
  }

  async *query(query: Query): AsyncGenerator<Item> {
    this.#count("query");
    const index = query.index === undefined ? undefined : indexNamed(query.index);
    const tree = index === undefined ? this.#items : (this.#indexes.get(index) as Tree);
    const [low, high] = bounds(query);
    let left = query.limit ?? Number.POSITIVE_INFINITY;
    let at = query.after === undefined ? undefined : positionOf(query.after, index);
    // Each step starts anew from the last key, so the tree may change between two steps.
    while (left > 0) {
      const next = query.descending === true ? before(tree, at, high) : after(tree, at, low);
      if (next === undefined || next[0] < low || next[0] > high) return;
      [at] = next;
      left -= 1;
      yield index === undefined ? next[1] : project(index, next[1]);
    }
  }

  changes(options: ChangesOptions = {}): AsyncIterable<ChangeRecord> {
    return this.#log.read(options);
  }

  async close(): Promise<void> {
    this.#log.close();
  }

  #write(write: Write): WriteResult {
    const { ok, key, before, after } = this.#plan(write);
    if (!ok) return { ok, item: before };
    this.#replace(key, before, after);
    return { ok, item: "update" in write ? after : "delete" in write ? before : undefined };
  }

  /** What a write would do, without doing it. */
  #plan(write: Write): {
    ok: boolean;
    key: Key;
    before: Item | undefined;
    after: Item | undefined;
  } {
    const key = keyOfWrite(write);
    const before = this.#items.get(treeKey(key.PK, key.SK));
    const ok = holds(write.condition, before);
    if (!ok || "check" in write) return { ok, key, before, after: before };
    if ("put" in write) return { ok, key, before, after: write.put };
    if ("delete" in write) return { ok, key, before, after: undefined };
    return { ok, key, before, after: applyChange(key, before, write.change) };
  }

  #replace(key: Key, before: Item | undefined, after: Item | undefined): void {
    if (before === after) return;
    const now = this.#clock();
    this.#store(key, before, after);
    this.#log.append(keyOf(key), before, after, now, false);
    this.#dropExpired(now);
  }

  #store(key: Key, before: Item | undefined, after: Item | undefined): void {
    const at = treeKey(key.PK, key.SK);
    if (after === undefined) this.#items.delete(at);
    else this.#items.set(at, after);
    for (const [index, tree] of this.#indexes) {
      move(tree, indexKey(index, before), indexKey(index, after), after);
    }
    move(this.#expiring, expiryKey(before), expiryKey(after), after);
  }

  #dropExpired(now: number): void {
    for (let dropped = 0; dropped < EXPIRED_PER_WRITE; dropped += 1) {
      const first = this.#expiring.minKey();
      if (first === undefined || first >= expiryText(Math.floor(now / 1000))) return;
      const item = this.#expiring.get(first) as Item;
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

  #count(operation: string): void {
    this.#onCall?.({ operation, readUnits: 0, writeUnits: 0, indexUnits: 0, estimated: false });
  }
}

function withCondition(condition: Condition | undefined): { condition?: Condition } {
  return condition === undefined ? {} : { condition };
}

function treeKey(partition: string, sort: string): string {
  return partition + SEPARATOR + sort;
}

/** The place of an item in an index; none without both of its keys. */
function indexKey(index: IndexDefinition, item: Item | undefined): string | undefined {
  const partition = item?.[index.partition];
  const sort = item?.[index.sort];
  if (item === undefined || typeof partition !== "string" || typeof sort !== "string") {
    return undefined;
  }
  return treeKey(treeKey(partition, sort), treeKey(item.PK, item.SK));
}

function expiryKey(item: Item | undefined): string | undefined {
  const ttl = item?.[TTL_ATTRIBUTE];
  if (item === undefined || typeof ttl !== "number") return undefined;
  return expiryText(ttl) + SEPARATOR + treeKey(item.PK, item.SK);
}

function expiryText(seconds: number): string {
  return String(Math.max(0, Math.floor(seconds))).padStart(EXPIRY_DIGITS, "0");
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

function bounds(query: Query): [low: string, high: string] {
  const { partition, sort = {} } = query;
  if ("beginsWith" in sort) {
    return [treeKey(partition, sort.beginsWith), treeKey(partition, sort.beginsWith + LAST)];
  }
  const high = sort.to === undefined ? LAST : sort.to + SEPARATOR + LAST;
  return [treeKey(partition, sort.from ?? ""), treeKey(partition, high)];
}

function positionOf(item: Item, index: IndexDefinition | undefined): string | undefined {
  return index === undefined ? treeKey(item.PK, item.SK) : indexKey(index, item);
}

function after(tree: Tree, at: string | undefined, low: string): [string, Item] | undefined {
  return at === undefined ? tree.getPairOrNextHigher(low) : tree.nextHigherPair(at);
}

function before(tree: Tree, at: string | undefined, high: string): [string, Item] | undefined {
  return at === undefined ? tree.getPairOrNextLower(high) : tree.nextLowerPair(at);
}
