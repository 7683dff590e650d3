/** Items as rows. Every method is a step of a transaction that the caller has begun. */

import { decodeItem, encodeItem } from "../attribute-value.ts";
import { keyOfWrite } from "../checks.ts";
import { applyChange, holds } from "../evaluate.ts";
import type { Item, Key } from "../item.ts";
import type { Write } from "../item-store.ts";
import { INDEXES, TTL_ATTRIBUTE } from "../table.ts";
import type { SqliteDatabase } from "./database.ts";
import type { Bindable } from "./driver.ts";

/** An item and its text in the `data` column. */
export interface Stored {
  readonly item: Item;
  readonly text: string;
}

/** A planned write. */
interface Plan {
  /** Whether the condition holds. */
  readonly ok: boolean;
  readonly key: Key;
  readonly before: Stored | undefined;
  readonly after: Stored | undefined;
}

const INDEX_COLUMNS = INDEXES.flatMap(({ partition, sort }) => [
  partition.toLowerCase(),
  sort.toLowerCase(),
]);

const READ = "SELECT data FROM items WHERE pk = ? AND sk = ?";
const FIRST_PAGE = "SELECT data FROM items ORDER BY pk, sk LIMIT ?";
const NEXT_PAGE = `SELECT data FROM items WHERE (pk, sk) > (?, ?) ORDER BY pk, sk LIMIT ?`;
const INSERT = `INSERT OR REPLACE INTO items (pk, sk, data, ${INDEX_COLUMNS.join(", ")}, ttl)
  VALUES (?, ?, ?, ${INDEX_COLUMNS.map(() => "?").join(", ")}, ?)`;
const REWRITE = "UPDATE items SET data = ? WHERE pk = ? AND sk = ?";
const DELETE = "DELETE FROM items WHERE pk = ? AND sk = ?";
const EXPIRED = "SELECT data FROM items WHERE ttl < ? ORDER BY ttl LIMIT ?";
const COUNT_GSI2 = `SELECT count(*) AS items FROM items
  WHERE gsi2pk = ? AND gsi2sk >= ? AND gsi2sk < ?`;
const LOG = "INSERT INTO changes (at, pk, sk, before, after, expired) VALUES (?, ?, ?, ?, ?, ?)";

export class ItemRows {
  readonly #database: SqliteDatabase;
  #earliestTtl = Number.POSITIVE_INFINITY;

  constructor(database: SqliteDatabase) {
    this.#database = database;
  }

  /** Earliest time to live written here since expired items were last removed. */
  get earliestTtl(): number {
    return this.#earliestTtl;
  }

  read(key: Key): Stored | undefined {
    const row = this.#database.prepare(READ).get(key.PK, key.SK);
    return row === undefined ? undefined : decoded(row.data as string);
  }

  /** Returns the items after a key, or the first ones, in the order of their keys. */
  page(after: Key | undefined, size: number): Item[] {
    const rows =
      after === undefined
        ? this.#database.prepare(FIRST_PAGE).all(size)
        : this.#database.prepare(NEXT_PAGE).all(after.PK, after.SK, size);
    return rows.map((row) => decoded(row.data as string).item);
  }

  /** Counts the items of a partition of GSI2 whose sort key has this prefix. */
  countInGsi2(partition: string, prefix: string): number {
    // Sort keys are printable ASCII, so none of them sorts behind the last one with the prefix.
    const row = this.#database.prepare(COUNT_GSI2).get(partition, prefix, `${prefix}\u007f`);
    return Number(row?.items ?? 0);
  }

  plan(write: Write): Plan {
    const key = keyOfWrite(write);
    const before = this.read(key);
    const ok = holds(write.condition, before?.item);
    return { ok, key, before, after: ok ? outcome(write, before) : before };
  }

  /** Puts one state in the place of another, and logs that. Returns whether they differ. */
  replace(
    key: Key,
    before: Stored | undefined,
    after: Stored | undefined,
    atMs: number,
    expired = false,
  ): boolean {
    if (before?.text === after?.text) return false;
    if (after === undefined) this.#database.prepare(DELETE).run(key.PK, key.SK);
    else this.#store(key, before, after);
    this.#database
      .prepare(LOG)
      .run(atMs, key.PK, key.SK, before?.text ?? null, after?.text ?? null, expired ? 1 : 0);
    return true;
  }

  /** Removes items whose time is over, the oldest first. Returns how many. */
  dropExpired(atMs: number, atMost: number): number {
    this.#earliestTtl = Number.POSITIVE_INFINITY;
    const rows = this.#database.prepare(EXPIRED).all(Math.floor(atMs / 1000), atMost);
    for (const { data } of rows) {
      const before = decoded(data as string);
      this.replace(before.item, before, undefined, atMs, true);
    }
    return rows.length;
  }

  #store({ PK, SK }: Key, before: Stored | undefined, after: Stored): void {
    const indexed = indexedValues(after.item);
    if (before !== undefined && equal(indexed, indexedValues(before.item))) {
      // Leaving the indexed columns alone spares SQLite the indexes.
      this.#database.prepare(REWRITE).run(after.text, PK, SK);
      return;
    }
    this.#database.prepare(INSERT).run(PK, SK, after.text, ...indexed);
    const ttl = indexed.at(-1);
    if (typeof ttl === "number") this.#earliestTtl = Math.min(this.#earliestTtl, ttl);
  }
}

/** Returns the item in a `data` column. */
export function decoded(text: string): Stored {
  return { text, item: decodeItem(JSON.parse(text) as Record<string, unknown>) };
}

/** Returns the item for a `data` column; refused when it holds what cannot be stored. */
export function encoded(item: Item): Stored {
  return { text: JSON.stringify(encodeItem(item)), item };
}

function outcome(write: Write, before: Stored | undefined): Stored | undefined {
  if ("put" in write) return encoded(write.put);
  if ("update" in write) return encoded(applyChange(write.update, before?.item, write.change));
  return "delete" in write ? undefined : before;
}

/** Returns the values of an item for the index columns and the column of the time to live. */
function indexedValues(item: Item): Bindable[] {
  const values: Bindable[] = [];
  for (const index of INDEXES) {
    const partition = item[index.partition];
    const sort = item[index.sort];
    // An item is in an index only with both of its keys.
    if (typeof partition === "string" && typeof sort === "string") values.push(partition, sort);
    else values.push(null, null);
  }
  const ttl = item[TTL_ATTRIBUTE];
  values.push(typeof ttl === "number" ? Math.floor(ttl) : null);
  return values;
}

function equal(some: readonly Bindable[], others: readonly Bindable[]): boolean {
  return some.every((value, position) => value === others[position]);
}
