/** Items in a SQLite file: for limits shared by the processes of one machine. */

import { setImmediate as breathe } from "node:timers/promises";
import { type Clock, systemClock } from "../../base/clock.ts";
import { CallListeners, freeCall } from "../call-listeners.ts";
import {
  checkDistinct,
  checkKey,
  checkQuery,
  checkSnapshot,
  checkTransaction,
  checkWrite,
  keyOfWrite,
  type ManyWrites,
  writesIn,
} from "../checks.ts";
import type { Item, Key } from "../item.ts";
import type {
  CallListener,
  CallOptions,
  Change,
  ChangeRecord,
  ChangesOptions,
  Condition,
  Query,
  ReadManyOptions,
  ReadOptions,
  TransactOptions,
  TransactResult,
  Write,
  WriteResult,
} from "../item-store.ts";
import type { ScanOptions, ScanStore } from "../scan-store.ts";
import type { SqliteDatabase } from "./database.ts";
import { ChangeFeed } from "./feed.ts";
import { Housekeeping } from "./housekeeping.ts";
import { encoded, ItemRows } from "./item-rows.ts";
import { ItemPages } from "./query.ts";

/** Rows that are read at once. */
const PAGE = 200;
/** Rows that are written in one transaction; other writers get their turn in between. */
const BATCH = 500;

interface SqliteItemStoreOptions {
  readonly clock?: Clock | undefined;
  readonly onCall?: CallListener | undefined;
}

export class SqliteItemStore implements ScanStore {
  readonly #database: SqliteDatabase;
  readonly #clock: Clock;
  readonly #listeners: CallListeners;
  readonly #rows: ItemRows;
  readonly #housekeeping: Housekeeping;
  readonly #feed: ChangeFeed;

  constructor(database: SqliteDatabase, options: SqliteItemStoreOptions = {}) {
    this.#database = database;
    this.#clock = options.clock ?? systemClock;
    this.#listeners = new CallListeners(options.onCall);
    this.#rows = new ItemRows(database);
    this.#housekeeping = new Housekeeping(database, this.#rows);
    this.#feed = new ChangeFeed(database);
  }

  listen(listener: CallListener): () => void {
    return this.#listeners.add(listener);
  }

  async get(key: Key, options?: ReadOptions): Promise<Item | undefined> {
    this.#count("get");
    checkKey(key);
    return this.#database.read(() => this.#rows.read(key)?.item, options?.timeoutMs);
  }

  async getMany(
    keys: readonly Key[],
    options: ReadManyOptions = {},
  ): Promise<(Item | undefined)[]> {
    this.#count("getMany");
    if (options.snapshot === true) checkSnapshot(keys);
    keys.forEach(checkKey);
    const items: (Item | undefined)[] = [];
    for (let start = 0; start < keys.length; start += PAGE) {
      if (start > 0) await breathe();
      const page = keys.slice(start, start + PAGE);
      const read = () => page.map((key) => this.#rows.read(key)?.item);
      items.push(...(await this.#database.snapshot(read, options.timeoutMs)));
    }
    return items;
  }

  async put(item: Item, condition?: Condition, options?: CallOptions): Promise<WriteResult> {
    this.#count("put");
    return this.#write({ put: item, condition }, options);
  }

  async update(
    key: Key,
    change: Change,
    condition?: Condition,
    options?: CallOptions,
  ): Promise<WriteResult> {
    this.#count("update");
    return this.#write({ update: key, change, condition }, options);
  }

  async delete(key: Key, condition?: Condition, options?: CallOptions): Promise<WriteResult> {
    this.#count("delete");
    return this.#write({ delete: key, condition }, options);
  }

  async transact(writes: readonly Write[], options: TransactOptions = {}): Promise<TransactResult> {
    this.#count("transact");
    checkTransaction(writes);
    const { token } = options;
    return this.#change<TransactResult>((now) => {
      if (token !== undefined && this.#housekeeping.knows(token, now)) {
        return { result: { ok: true }, changes: 0 };
      }
      const plans = writes.map((write) => this.#rows.plan(write));
      const failures = new Map<number, { item: Item | undefined }>();
      for (const [position, { ok, before }] of plans.entries()) {
        if (!ok) failures.set(position, { item: before?.item });
      }
      if (failures.size > 0) return { result: { ok: false, failures }, changes: 0 };
      const changes = plans.filter(({ key, before, after }) =>
        this.#rows.replace(key, before, after, now),
      ).length;
      if (token !== undefined) this.#housekeeping.remember(token, now);
      return { result: { ok: true }, changes };
    }, options);
  }

  async writeMany(writes: ManyWrites): Promise<void> {
    this.#count("writeMany");
    const all = writesIn(writes);
    checkDistinct(all.map(keyOfWrite));
    all.forEach(checkWrite);
    // Encoded before the first batch, so that nothing is written when something cannot be stored.
    const rows = all.map((write) => ({
      key: keyOfWrite(write),
      after: "put" in write ? encoded(write.put) : undefined,
    }));
    for (let start = 0; start < rows.length; start += BATCH) {
      if (start > 0) await breathe();
      const batch = rows.slice(start, start + BATCH);
      await this.#change((now) => {
        const changed = batch.filter(({ key, after }) =>
          this.#rows.replace(key, this.#rows.read(key), after, now),
        );
        return { result: undefined, changes: changed.length };
      });
    }
  }

  async *query(query: Query): AsyncGenerator<Item> {
    this.#count("query");
    checkQuery(query);
    const pages = new ItemPages(query);
    let left = query.limit ?? Number.POSITIVE_INFINITY;
    while (left > 0) {
      const size = Math.min(left, PAGE);
      const items = await this.#database.read(() => pages.next(this.#database, size));
      yield* items;
      left -= items.length;
      if (items.length < size) return;
      await breathe();
    }
  }

  async *scan({ after }: ScanOptions = {}): AsyncGenerator<Item> {
    this.#count("scan");
    let last = after;
    for (;;) {
      const items = await this.#database.read(() => this.#rows.page(last, PAGE));
      yield* items;
      last = items.at(-1);
      if (items.length < PAGE) return;
      await breathe();
    }
  }

  changes(options: ChangesOptions = {}): AsyncIterableIterator<ChangeRecord> {
    return this.#feed.read(options);
  }

  /** Also closes the file, which only this store uses. */
  async close(): Promise<void> {
    this.#feed.close();
    this.#database.close();
  }

  async #write(write: Write, options: CallOptions | undefined): Promise<WriteResult> {
    checkWrite(write);
    return this.#change((now) => {
      const { ok, key, before, after } = this.#rows.plan(write);
      const changed = ok && this.#rows.replace(key, before, after, now);
      const item = !ok || "delete" in write ? before : "update" in write ? after : undefined;
      return { result: { ok, item: item?.item }, changes: changed ? 1 : 0 };
    }, options);
  }

  /** Runs changes and the tidying up in one transaction. */
  async #change<T>(
    work: (nowMs: number) => { readonly result: T; readonly changes: number },
    options?: CallOptions,
  ): Promise<T> {
    const outcome = await this.#database.write(() => {
      const now = this.#clock();
      const done = work(now);
      if (done.changes > 0) this.#housekeeping.tidy(now, done.changes);
      return done;
    }, options?.timeoutMs);
    if (outcome.changes > 0) this.#feed.wake();
    return outcome.result;
  }

  #count(operation: string): void {
    if (!this.#listeners.isEmpty) this.#listeners.tell(freeCall(operation));
  }
}
