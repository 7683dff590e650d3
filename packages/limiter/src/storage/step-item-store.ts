/** The item store over steps: conditions, changes, transactions and queries, written once. */

import { chunksOf } from "../base/bounded.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import {
  checkDistinct,
  checkQuery,
  checkSnapshot,
  checkTransaction,
  checkWrite,
  keyOfWrite,
  type ManyWrites,
  writesIn,
} from "./checks.ts";
import { checkKey, type Item, type Key } from "./item.ts";
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
} from "./item-store.ts";
import type { PageRange } from "./item-table.ts";
import { planWrite, planWrites } from "./plan-writes.ts";
import { halfOpenRange } from "./sort-range.ts";
import type { StepRows, StepTable } from "./step-table.ts";
import { indexNamed, project } from "./table.ts";

/** Rows that are read at once. */
const PAGE = 200;
/** Rows that are written at once; other writers get their turn in between. */
const BATCH = 500;

export class StepItemStore implements ItemStore {
  readonly #table: StepTable;

  constructor(table: StepTable) {
    this.#table = table;
  }

  listen(listener: CallListener): () => void {
    return this.#table.listen(listener);
  }

  async get(key: Key, options: ReadOptions = {}): Promise<Item | undefined> {
    this.#table.begin("get");
    checkKey(key);
    const { timeoutMs } = options;
    return this.#table.peek((rows) => rows.get(key), { timeoutMs, keys: [key] });
  }

  async getMany(
    keys: readonly Key[],
    options: ReadManyOptions = {},
  ): Promise<(Item | undefined)[]> {
    this.#table.begin("getMany");
    if (options.snapshot === true) checkSnapshot(keys);
    keys.forEach(checkKey);
    const { timeoutMs } = options;
    const items: (Item | undefined)[] = [];
    for (const [number, page] of chunksOf(keys, PAGE).entries()) {
      if (number > 0) await this.#table.pause();
      const read = (rows: StepRows) => page.map((key) => rows.get(key));
      items.push(...(await this.#table.peek(read, { timeoutMs, keys: page })));
    }
    return items;
  }

  put(item: Item, condition?: Condition, options?: CallOptions): Promise<WriteResult> {
    return this.#write("put", { put: item, condition }, options);
  }

  update(
    key: Key,
    change: Change,
    condition?: Condition,
    options?: CallOptions,
  ): Promise<WriteResult> {
    return this.#write("update", { update: key, change, condition }, options);
  }

  delete(key: Key, condition?: Condition, options?: CallOptions): Promise<WriteResult> {
    return this.#write("delete", { delete: key, condition }, options);
  }

  async transact(writes: readonly Write[], options: TransactOptions = {}): Promise<TransactResult> {
    this.#table.begin("transact");
    checkTransaction(writes);
    const { timeoutMs, token } = options;
    return this.#table.step<TransactResult>((rows) => applied(rows, writes), {
      timeoutMs,
      keys: writes.map(keyOfWrite),
      once: token === undefined ? undefined : { token, repeated: { ok: true }, mayFail: true },
    });
  }

  async writeMany(writes: ManyWrites): Promise<void> {
    this.#table.begin("writeMany");
    const all = writesIn(writes);
    checkDistinct(all.map(keyOfWrite));
    all.forEach(checkWrite);
    // Planned before the first batch, so that nothing is written when something cannot be stored.
    for (const write of all) planWrite(write, undefined);
    for (const [number, batch] of chunksOf(all, BATCH).entries()) {
      if (number > 0) await this.#table.pause();
      await this.#table.step((rows) => applied(rows, batch), { keys: batch.map(keyOfWrite) });
    }
  }

  async *query(query: Query): AsyncGenerator<Item> {
    this.#table.begin("query");
    checkQuery(query);
    const index = query.index === undefined ? undefined : indexNamed(query.index);
    let range = firstPage(query);
    for (let left = query.limit ?? Number.POSITIVE_INFINITY; range !== undefined && left > 0; ) {
      const limit: number = Math.min(left, PAGE);
      const items = await this.#table.page({ ...range, limit });
      for (const item of items) yield index === undefined ? item : project(index, item);
      if (items.length < limit) return;
      left -= items.length;
      range = pageAfter(items.at(-1) as Item, range);
      await this.#table.pause();
    }
  }

  changes(options: ChangesOptions = {}): AsyncIterableIterator<ChangeRecord> {
    return this.#table.changes(options);
  }

  async close(): Promise<void> {
    await this.#table.close();
  }

  /** Makes no promise besides that of the step: every acquire on such a store writes here. */
  #write(operation: string, write: Write, options: CallOptions = {}): Promise<WriteResult> {
    try {
      this.#table.begin(operation);
      checkWrite(write);
    } catch (error) {
      return Promise.reject(error as Error);
    }
    const key = keyOfWrite(write);
    return this.#table.step(
      (rows) => {
        const { ok, before, after } = planWrite(write, rows.get(key));
        if (ok) rows.set(key, after);
        if (!ok || "delete" in write) return { ok, item: before };
        return { ok, item: "update" in write ? after : undefined };
      },
      { timeoutMs: options.timeoutMs, keys: [key] },
    );
  }
}

/** Makes all writes if every condition holds, else none. */
function applied(rows: StepRows, writes: readonly Write[]): TransactResult {
  const planned = planWrites(writes, (key) => rows.get(key));
  if (!planned.result.ok) return planned.result;
  for (const [at, { key, after }] of planned.writes.entries()) {
    if (!("check" in (writes[at] as Write))) rows.set(key, after);
  }
  return planned.result;
}

/** Returns the range of a query; `undefined` where nothing can be in it. */
function firstPage(query: Query): PageRange | undefined {
  const { index, partition, descending = false, after } = query;
  const range = halfOpenRange(query.sort);
  if (range === undefined) return undefined;
  const places = index === undefined ? [] : [`${index}PK`, `${index}SK`];
  if (after !== undefined && places.some((name) => typeof after[name] !== "string")) {
    throw new ValidationError("after", after, `expected an item with the keys of ${index}`);
  }
  return { index, partition, ...range, descending, after, limit: PAGE };
}

/** Returns the rest of a range after an item, which is inside of it: one end is enough. */
function pageAfter(after: Item, range: PageRange): PageRange {
  return range.descending
    ? { ...range, before: undefined, after }
    : { ...range, from: undefined, after };
}
