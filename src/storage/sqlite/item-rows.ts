/** Items as rows. Every method is a step of a transaction that the caller has begun. */

import { ValidationError } from "../../domain/errors.ts";
import { decodeItem, encodeItem } from "../attribute-value.ts";
import { applyChange, holds } from "../evaluate.ts";
import type { Item, Key } from "../item.ts";
import type { Write } from "../item-store.ts";
import { INDEXES, TTL_ATTRIBUTE } from "../table.ts";
import { keyOfWrite } from "../transaction.ts";
import type { SqliteDatabase } from "./database.ts";
import type { Bindable } from "./driver.ts";

/** An item as it is stored. */
interface Stored {
  readonly text: string;
  readonly item: Item;
}

/** What a write would do, worked out without doing it. */
export interface Plan {
  /** Whether the condition holds. */
  readonly ok: boolean;
  readonly key: Key;
  readonly before: Stored | undefined;
  readonly after: Item | undefined;
}

const COLUMNS = INDEXES.flatMap(({ partition, sort }) => [partition, sort]).map((name) =>
  name.toLowerCase(),
);

const READ = "SELECT data FROM items WHERE pk = ? AND sk = ?";
const INSERT = `INSERT OR REPLACE INTO items (pk, sk, data, ${COLUMNS.join(", ")}, ttl)
  VALUES (?, ?, ?, ${COLUMNS.map(() => "?").join(", ")}, ?)`;
const REWRITE = "UPDATE items SET data = ? WHERE pk = ? AND sk = ?";
const DELETE = "DELETE FROM items WHERE pk = ? AND sk = ?";
const EXPIRED = "SELECT data FROM items WHERE ttl < ? ORDER BY ttl LIMIT ?";
const LOG = "INSERT INTO changes (at, pk, sk, before, after, expired) VALUES (?, ?, ?, ?, ?, ?)";

export class ItemRows {
  readonly #database: SqliteDatabase;

  constructor(database: SqliteDatabase) {
    this.#database = database;
  }

  read(key: Key): Item | undefined {
    return this.#stored(key)?.item;
  }

  plan(write: Write): Plan {
    const key = keyOfWrite(write);
    const before = this.#stored(key);
    const ok = holds(write.condition, before?.item);
    if (!ok || "check" in write) return { ok, key, before, after: before?.item };
    if ("put" in write) return { ok, key, before, after: write.put };
    if ("delete" in write) return { ok, key, before, after: undefined };
    return { ok, key, before, after: applyChange(key, before?.item, write.change) };
  }

  /** Does what was planned, and logs it. Returns whether anything changed. */
  carryOut({ key, before, after }: Plan, atMs: number, expired = false): boolean {
    if (before?.item === after) return false;
    const { PK, SK } = key;
    const text = after === undefined ? undefined : JSON.stringify(encodeItem(after));
    if (before?.text === text) return false;
    if (after === undefined || text === undefined) {
      this.#database.prepare(DELETE).run(PK, SK);
    } else {
      const indexed = indexedValues(after);
      if (before !== undefined && equal(indexed, indexedValues(before.item))) {
        // Leaving the indexed columns alone spares SQLite the indexes.
        this.#database.prepare(REWRITE).run(text, PK, SK);
      } else {
        refuseNul(PK, SK, ...indexed);
        this.#database.prepare(INSERT).run(PK, SK, text, ...indexed);
      }
    }
    this.#database
      .prepare(LOG)
      .run(atMs, PK, SK, before?.text ?? null, text ?? null, expired ? 1 : 0);
    return true;
  }

  /** Removes items whose time is over, the oldest first. Returns how many. */
  dropExpired(atMs: number, atMost: number): number {
    const rows = this.#database.prepare(EXPIRED).all(Math.floor(atMs / 1000), atMost);
    for (const { data } of rows) {
      const before = stored(data as string);
      this.carryOut({ ok: true, key: before.item, before, after: undefined }, atMs, true);
    }
    return rows.length;
  }

  #stored(key: Key): Stored | undefined {
    const row = this.#database.prepare(READ).get(key.PK, key.SK);
    return row === undefined ? undefined : stored(row.data as string);
  }
}

/** The item in a `data` column. */
export function itemOf(text: string): Item {
  return decodeItem(JSON.parse(text) as Record<string, unknown>);
}

function stored(text: string): Stored {
  return { text, item: itemOf(text) };
}

/** The values of the index columns and the time to live, for the rows of the item. */
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

/** Two of the drivers cut text there when they read it, and pages would go on from a wrong key. */
function refuseNul(...keys: readonly Bindable[]): void {
  for (const key of keys) {
    if (typeof key === "string" && key.includes("\u0000")) {
      throw new ValidationError("key", key, "SQLite cannot keep the character NUL in keys");
    }
  }
}
