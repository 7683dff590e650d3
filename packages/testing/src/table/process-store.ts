/** The item store of one process: each method is a request over its connection. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import {
  checkDistinct,
  checkQuery,
  checkSnapshot,
  checkTransaction,
  checkWrite,
  keyOfWrite,
  type ManyWrites,
  writesIn,
} from "@zae-limiter/limiter/storage/checks.ts";
import { checkKey, type Item, type Key, keyOf } from "@zae-limiter/limiter/storage/item.ts";
import type {
  CallListener,
  CallOptions,
  Change,
  ChangeRecord,
  ChangesOptions,
  Condition,
  ItemStore,
  Query,
  ReadManyOptions,
  ReadOptions,
  TransactOptions,
  TransactResult,
  Write,
  WriteResult,
} from "@zae-limiter/limiter/storage/item-store.ts";
import type { Connection, Repetition, RequestOptions } from "./connection.ts";
import { withDuplicates } from "./duplicates.ts";
import type { Server } from "./server.ts";

const TIMEOUT_MS = 2000;
const GET_MAX = 100;
const WRITE_MAX = 25;
const PAGE = 100;

export class ProcessStore implements ItemStore {
  readonly #connection: Connection;
  readonly #server: Server;
  readonly #random: () => number;

  constructor(connection: Connection, server: Server, random: () => number) {
    this.#connection = connection;
    this.#server = server;
    this.#random = random;
  }

  listen(listener: CallListener): () => void {
    return this.#connection.listeners.add(listener);
  }

  async get(key: Key, options: ReadOptions = {}): Promise<Item | undefined> {
    checkKey(key);
    const consistent = options.consistent === true;
    const keys = [keyOf(key)];
    const found = await this.#connection.request("GetItem", ways("read", options), (call) =>
      this.#server.read(call, keys, consistent, false),
    );
    return found[0];
  }

  async getMany(
    keys: readonly Key[],
    options: ReadManyOptions = {},
  ): Promise<(Item | undefined)[]> {
    keys.forEach(checkKey);
    const snapshot = options.snapshot === true;
    if (snapshot) checkSnapshot(keys);
    const operation = snapshot ? "TransactGetItems" : "BatchGetItem";
    const consistent = options.consistent === true;
    const found: (Item | undefined)[] = [];
    for (let from = 0; from < keys.length; from += GET_MAX) {
      const page = keys.slice(from, from + GET_MAX).map(keyOf);
      found.push(
        ...(await this.#connection.request(operation, ways("read", options), (call) =>
          this.#server.read(call, page, consistent, snapshot),
        )),
      );
    }
    return found;
  }

  put(item: Item, condition?: Condition, options?: CallOptions): Promise<WriteResult> {
    return this.#write("PutItem", { put: item, condition }, options);
  }

  update(
    key: Key,
    change: Change,
    condition?: Condition,
    options?: CallOptions,
  ): Promise<WriteResult> {
    const write = { update: keyOf(key), change, condition };
    return this.#write("UpdateItem", write, options);
  }

  delete(key: Key, condition?: Condition, options?: CallOptions): Promise<WriteResult> {
    return this.#write("DeleteItem", { delete: keyOf(key), condition }, options);
  }

  async transact(writes: readonly Write[], options: TransactOptions = {}): Promise<TransactResult> {
    checkTransaction(writes);
    const [first, ...others] = writes;
    if (first === undefined) return { ok: true };
    const { token } = options;
    if (others.length === 0 && token === undefined && !("check" in first)) {
      const { ok, item } = await this.#write("UpdateItem", first, options);
      return ok ? { ok } : { ok, failures: new Map([[0, { item }]]) };
    }
    const repetition = token === undefined ? "once" : "repeatable";
    return this.#connection.request(
      "TransactWriteItems",
      { ...ways(repetition, options), token },
      (call) => this.#server.transact(call, writes),
    );
  }

  async writeMany(writes: ManyWrites): Promise<void> {
    const all = writesIn(writes);
    checkDistinct(all.map(keyOfWrite));
    all.forEach(checkWrite);
    for (let from = 0; from < all.length; from += WRITE_MAX) {
      const page = all.slice(from, from + WRITE_MAX);
      await this.#connection.request("BatchWriteItem", ways("once", {}), (call) =>
        this.#server.batch(call, page),
      );
    }
  }

  async *query(query: Query): AsyncGenerator<Item> {
    checkQuery(query);
    let left = query.limit ?? Number.POSITIVE_INFINITY;
    let after = query.after;
    while (left > 0) {
      const page = { ...query, limit: Math.min(PAGE, left), ...defined({ after }) };
      const found = await this.#connection.request("Query", ways("read", {}), (call) =>
        this.#server.query(call, page),
      );
      yield* found;
      after = found.at(-1);
      left -= found.length;
      if (found.length < PAGE) return;
    }
  }

  changes(options: ChangesOptions = {}): AsyncIterable<ChangeRecord> {
    const share = () => this.#server.faults.duplicateRecords ?? 0;
    return withDuplicates(this.#server.items.changes(options), share, this.#random);
  }

  async close(): Promise<void> {}

  async #write(
    operation: string,
    write: Exclude<Write, { check: Key }>,
    options: CallOptions = {},
  ): Promise<WriteResult> {
    checkWrite(write);
    return this.#connection.request(operation, ways("once", options), (call) =>
      this.#server.write(call, write),
    );
  }
}

function ways(repetition: Repetition, options: CallOptions): RequestOptions {
  const { timeoutMs = TIMEOUT_MS } = options;
  return { repetition, timeoutMs, raiseHotKey: raisesHotKey(options) };
}

function raisesHotKey(options: CallOptions & { readonly hotKey?: "repeat" | "raise" }): boolean {
  return options.hotKey === "raise";
}
