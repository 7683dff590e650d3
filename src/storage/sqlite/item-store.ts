/** Items in a SQLite file: for limits shared by the processes of one machine. */

import { setImmediate as breathe } from "node:timers/promises";
import { type Clock, systemClock } from "../../domain/clock.ts";
import { ValidationError } from "../../domain/errors.ts";
import type { Item, Key } from "../item.ts";
import {
  type CallOptions,
  type Change,
  type ChangeRecord,
  type ChangesOptions,
  type Condition,
  type ItemStore,
  type Query,
  type ReadManyOptions,
  type ReadOptions,
  type StoreCall,
  TRANSACT_MAX,
  type TransactOptions,
  type TransactResult,
  type Write,
  type WriteResult,
} from "../item-store.ts";
import { checkTransaction } from "../transaction.ts";
import { ChangeFeed } from "./change-feed.ts";
import type { SqliteDatabase } from "./database.ts";
import { Housekeeping } from "./housekeeping.ts";
import { ItemPages } from "./item-pages.ts";
import { ItemRows } from "./item-rows.ts";

/** Rows that are read at once. */
const PAGE = 200;
/** Rows that are written in one transaction; other writers get their turn in between. */
const BATCH = 500;

export interface SqliteItemStoreOptions {
  readonly clock?: Clock | undefined;
  readonly onCall?: ((call: StoreCall) => void) | undefined;
}

export class SqliteItemStore implements ItemStore {
  readonly #database: SqliteDatabase;
  readonly #clock: Clock;
  readonly #onCall: ((call: StoreCall) => void) | undefined;
  readonly #rows: ItemRows;
  readonly #housekeeping: Housekeeping;
  readonly #feed: ChangeFeed;

  constructor(database: SqliteDatabase, options: SqliteItemStoreOptions = {}) {
    this.#database = database;
    this.#clock = options.clock ?? systemClock;
    this.#onCall = options.onCall;
    this.#rows = new ItemRows(database);
    this.#housekeeping = new Housekeeping(database, this.#rows);
    this.#feed = new ChangeFeed(database);
  }

  async get(key: Key, options?: ReadOptions): Promise<Item | undefined> {
    this.#count("get");
    return this.#database.read(() => this.#rows.read(key), options?.timeoutMs);
  }

  async getMany(
    keys: readonly Key[],
    options: ReadManyOptions = {},
  ): Promise<(Item | undefined)[]> {
    this.#count("getMany");
    if (options.snapshot === true && keys.length > TRANSACT_MAX) {
      throw new ValidationError(
        "keys",
        keys.length,
        `expected at most ${TRANSACT_MAX} keys of a snapshot, got ${keys.length}`,
      );
    }
    const items: (Item | undefined)[] = [];
    for (let start = 0; start < keys.length; start += PAGE) {
      if (start > 0) await breathe();
      const page = keys.slice(start, start + PAGE);
      items.push(
        ...(await this.#database.snapshot(
          () => page.map((key) => this.#rows.read(key)),
          options.timeoutMs,
        )),
      );
    }
    return items;
  }

  async put(item: Item, condition?: Condition, options?: CallOptions): Promise<WriteResult> {
    this.#count("put");
    return this.#write({ put: item, ...withCondition(condition) }, options);
  }

  async update(
    key: Key,
    change: Change,
    condition?: Condition,
    options?: CallOptions,
  ): Promise<WriteResult> {
    this.#count("update");
    return this.#write({ update: key, change, ...withCondition(condition) }, options);
  }

  async delete(key: Key, condition?: Condition, options?: CallOptions): Promise<WriteResult> {
    this.#count("delete");
    return this.#write({ delete: key, ...withCondition(condition) }, options);
  }

  async transact(writes: readonly Write[], options: TransactOptions = {}): Promise<TransactResult> {
    this.#count("transact");
    checkTransaction(writes);
    const { token } = options;
    return this.#change((now) => {
      if (token !== undefined && this.#housekeeping.knows(token, now)) {
        return { result: { ok: true }, changes: 0 };
      }
      const plans = writes.map((write) => this.#rows.plan(write));
      const failures = new Map(
        plans.flatMap(({ ok, before }, position) =>
          ok ? [] : [[position, { item: before?.item }]],
        ),
      );
      if (failures.size > 0) return { result: { ok: false, failures }, changes: 0 };
      const changes = plans.filter((plan) => this.#rows.carryOut(plan, now)).length;
      if (token !== undefined) this.#housekeeping.remember(token, now);
      return { result: { ok: true }, changes };
    }, options);
  }

  async writeMany(writes: {
    readonly puts?: readonly Item[];
    readonly deletes?: readonly Key[];
  }): Promise<void> {
    this.#count("writeMany");
    const all: Write[] = [
      ...(writes.puts ?? []).map((put) => ({ put })),
      ...(writes.deletes ?? []).map((key) => ({ delete: key })),
    ];
    for (let start = 0; start < all.length; start += BATCH) {
      if (start > 0) await breathe();
      const batch = all.slice(start, start + BATCH);
      await this.#change((now) => {
        const carryOut = (write: Write) => this.#rows.carryOut(this.#rows.plan(write), now);
        return { result: undefined, changes: batch.filter(carryOut).length };
      });
    }
  }

  async *query(query: Query): AsyncGenerator<Item> {
    this.#count("query");
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

  changes(options: ChangesOptions = {}): AsyncIterableIterator<ChangeRecord> {
    this.#count("changes");
    return this.#feed.read(options);
  }

  /** Closes the file, too: nobody else uses it without the store. */
  async close(): Promise<void> {
    this.#feed.close();
    this.#database.close();
  }

  #write(write: Write, options: CallOptions | undefined): Promise<WriteResult> {
    return this.#change((now) => {
      const plan = this.#rows.plan(write);
      const changes = plan.ok && this.#rows.carryOut(plan, now) ? 1 : 0;
      return {
        result: { ok: plan.ok, item: handedOut(write, plan.ok, plan.before?.item, plan.after) },
        changes,
      };
    }, options);
  }

  /** One transaction of changes, with its part of the tidying up. */
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
    this.#onCall?.({ operation, readUnits: 0, writeUnits: 0, indexUnits: 0, estimated: false });
  }
}

/** What a write tells its caller: see `WriteResult`. */
function handedOut(
  write: Write,
  ok: boolean,
  before: Item | undefined,
  after: Item | undefined,
): Item | undefined {
  if (!ok || "delete" in write) return before;
  return "put" in write ? undefined : after;
}

function withCondition(condition: Condition | undefined): { condition?: Condition } {
  return condition === undefined ? {} : { condition };
}
