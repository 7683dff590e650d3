/** Items in a SQLite file: for limits shared by the processes of one machine. */

import { setImmediate as breathe } from "node:timers/promises";
import { type Clock, systemClock, systemTimer } from "../../base/time.ts";
import { CallListeners, freeCall } from "../call-listeners.ts";
import type { Item, Key } from "../item.ts";
import type { CallListener, ChangeRecord, ChangesOptions } from "../item-store.ts";
import type { PageRange } from "../item-table.ts";
import { PolledFeed } from "../polled-feed.ts";
import type { ScanOptions, ScanStore } from "../scan-store.ts";
import { StepItemStore } from "../step-item-store.ts";
import type { StepOptions, StepRows, StepTable } from "../step-table.ts";
import type { SqliteDatabase } from "./database.ts";
import { Housekeeping } from "./housekeeping.ts";
import { encoded, ItemRows, type Stored } from "./item-rows.ts";
import { logPage } from "./log.ts";
import { pageOf } from "./page.ts";

/** Rows that are read at once. */
const PAGE = 200;

interface SqliteItemStoreOptions {
  readonly clock?: Clock | undefined;
  readonly onCall?: CallListener | undefined;
}

export class SqliteItemStore extends StepItemStore implements ScanStore {
  readonly #steps: SqliteSteps;

  constructor(database: SqliteDatabase, options: SqliteItemStoreOptions = {}) {
    const steps = new SqliteSteps(database, options);
    super(steps);
    this.#steps = steps;
  }

  scan(options: ScanOptions = {}): AsyncGenerator<Item> {
    return this.#steps.scan(options);
  }
}

/** Runs each step in a transaction of the file. */
class SqliteSteps implements StepTable {
  readonly #database: SqliteDatabase;
  readonly #clock: Clock;
  readonly #listeners: CallListeners;
  readonly #rows: ItemRows;
  readonly #housekeeping: Housekeeping;
  readonly #feed: PolledFeed;
  readonly #closing = new AbortController();

  constructor(database: SqliteDatabase, options: SqliteItemStoreOptions) {
    this.#database = database;
    this.#clock = options.clock ?? systemClock;
    this.#listeners = new CallListeners(options.onCall);
    this.#rows = new ItemRows(database);
    this.#housekeeping = new Housekeeping(database, this.#rows);
    this.#feed = new PolledFeed({
      log: (from, limit) => database.snapshot(() => logPage(database, from, limit)),
      timer: systemTimer,
      closed: this.#closing.signal,
    });
  }

  begin(operation: string): void {
    if (!this.#listeners.isEmpty) this.#listeners.tell(freeCall(operation));
  }

  pause(): Promise<void> {
    return breathe();
  }

  async step<Result>(
    work: (rows: StepRows) => Result,
    { timeoutMs, once }: StepOptions<Result>,
  ): Promise<Result> {
    const { result, changes } = await this.#database.write(() => {
      const nowMs = this.#clock();
      if (once !== undefined && this.#housekeeping.knows(once.token, nowMs)) {
        return { result: once.repeated, changes: 0 };
      }
      const rows = new TransactionRows(this.#rows, nowMs);
      const done = work(rows);
      if (once !== undefined && rows.sets > 0) this.#housekeeping.remember(once.token, nowMs);
      if (rows.changes > 0) this.#housekeeping.tidy(nowMs, rows.changes);
      return { result: done, changes: rows.changes };
    }, timeoutMs);
    if (changes > 0) this.#feed.wake();
    return result;
  }

  async peek<Result>(
    work: (rows: StepRows) => Result,
    { timeoutMs, keys = [] }: StepOptions<Result>,
  ): Promise<Result> {
    const run = () => work(new TransactionRows(this.#rows, 0));
    // One row is read as of one moment without a transaction.
    if (keys.length === 1) return this.#database.read(run, timeoutMs);
    return this.#database.snapshot(run, timeoutMs);
  }

  page(range: PageRange): Promise<readonly Item[]> {
    return this.#database.read(() => pageOf(this.#database, range));
  }

  async *scan({ after }: ScanOptions): AsyncGenerator<Item> {
    this.begin("scan");
    let last = after;
    for (;;) {
      const items = await this.#database.read(() => this.#rows.page(last, PAGE));
      yield* items;
      last = items.at(-1);
      if (items.length < PAGE) return;
      await breathe();
    }
  }

  changes(options: ChangesOptions): AsyncIterableIterator<ChangeRecord> {
    return this.#feed.read(options);
  }

  listen(listener: CallListener): () => void {
    return this.#listeners.add(listener);
  }

  /** Closes the store and the file, which only this store uses. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#database.close();
  }
}

/** The rows of the transaction that is running. */
class TransactionRows implements StepRows {
  readonly #rows: ItemRows;
  readonly #nowMs: number;
  readonly #read = new Map<Key, Stored | undefined>();
  /** Rows that were set, and those of them that changed. */
  sets = 0;
  changes = 0;

  constructor(rows: ItemRows, nowMs: number) {
    this.#rows = rows;
    this.#nowMs = nowMs;
  }

  get(key: Key): Item | undefined {
    const stored = this.#rows.read(key);
    this.#read.set(key, stored);
    return stored?.item;
  }

  set(key: Key, item: Item | undefined): void {
    const before = this.#read.has(key) ? this.#read.get(key) : this.#rows.read(key);
    const after = item === undefined ? undefined : encoded(item);
    this.#read.set(key, after);
    this.sets += 1;
    if (this.#rows.replace(key, before, after, this.#nowMs)) this.changes += 1;
  }
}
