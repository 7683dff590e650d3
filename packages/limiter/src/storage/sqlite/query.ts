/** Queries page by page. Each page is a statement of its own, so nothing stays open in between. */

import { ValidationError } from "../../domain/errors/errors.ts";
import type { Item } from "../item.ts";
import type { Query } from "../item-store.ts";
import { type IndexDefinition, indexNamed } from "../table.ts";
import type { SqliteDatabase } from "./database.ts";
import type { Bindable, Row } from "./driver.ts";
import { decoded } from "./item-rows.ts";

/** Conditions of a WHERE clause, with what is bound to them. */
interface Filter {
  readonly conditions: readonly string[];
  readonly values: readonly Bindable[];
}

export class ItemPages {
  readonly #query: Query;
  readonly #index: IndexDefinition | undefined;
  /** The columns that order the rows of a partition. */
  readonly #order: readonly string[];
  readonly #partition: string;
  #after: readonly string[] | undefined;
  /** The end of the range that the pages start from is tested for the first page only. */
  #isFirst = true;

  constructor(query: Query) {
    this.#query = query;
    this.#index = query.index === undefined ? undefined : indexNamed(query.index);
    this.#partition = this.#index === undefined ? "pk" : this.#index.partition.toLowerCase();
    this.#order = this.#index === undefined ? ["sk"] : [this.#index.sort.toLowerCase(), "pk", "sk"];
    if (query.after !== undefined) this.#after = this.#placeOf(query.after);
  }

  /** The next items; fewer than asked for at the end. */
  next(database: SqliteDatabase, size: number): Item[] {
    const { conditions, values } = this.#filter();
    const direction = this.#query.descending === true ? " DESC" : "";
    const columns = this.#keysOnly() ? [this.#partition, ...this.#order].join(", ") : "data";
    const sql = `SELECT ${columns} FROM items WHERE ${conditions.join(" AND ")}
      ORDER BY ${this.#order.map((column) => column + direction).join(", ")} LIMIT ?`;
    const items = database
      .prepare(sql)
      .all(...values, size)
      .map((row) => this.#itemOf(row));
    const last = items.at(-1);
    if (last !== undefined) this.#after = this.#placeOf(last);
    this.#isFirst = false;
    return items;
  }

  #filter(): Filter {
    const descending = this.#query.descending === true;
    const sort = this.#order[0] as string;
    const { low, high, highIsIn } = rangeOf(this.#query);
    const conditions = [`${this.#partition} = ?`];
    const values: Bindable[] = [this.#query.partition];
    if (low !== undefined && (descending || this.#isFirst)) {
      conditions.push(`${sort} >= ?`);
      values.push(low);
    }
    if (high !== undefined && (!descending || this.#isFirst)) {
      conditions.push(`${sort} ${highIsIn ? "<=" : "<"} ?`);
      values.push(high);
    }
    if (this.#after !== undefined) {
      const places = this.#order.map(() => "?").join(", ");
      conditions.push(`(${this.#order.join(", ")}) ${descending ? "<" : ">"} (${places})`);
      values.push(...this.#after);
    }
    return { conditions, values };
  }

  #keysOnly(): boolean {
    return this.#index?.projection === "KEYS_ONLY";
  }

  #itemOf(row: Row): Item {
    const index = this.#index;
    if (index === undefined || !this.#keysOnly()) return decoded(row.data as string).item;
    return {
      PK: row.pk as string,
      SK: row.sk as string,
      [index.partition]: row[index.partition.toLowerCase()] as string,
      [index.sort]: row[index.sort.toLowerCase()] as string,
    };
  }

  /** Returns the position of an item in the order. */
  #placeOf(item: Item): string[] {
    if (this.#index === undefined) return [item.SK];
    const sort = item[this.#index.sort];
    if (typeof sort === "string") return [sort, item.PK, item.SK];
    throw new ValidationError("after", item, `expected an item of the index ${this.#index.name}`);
  }
}

interface Range {
  readonly low: string | undefined;
  readonly high: string | undefined;
  readonly highIsIn: boolean;
}

function rangeOf({ sort = {} }: Query): Range {
  if (!("beginsWith" in sort)) return { low: sort.from, high: sort.to, highIsIn: true };
  return { low: sort.beginsWith, high: afterPrefix(sort.beginsWith), highIsIn: false };
}

/** The least text greater than all that begin with the prefix; none when there is no greater. */
function afterPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) as number);
  while (points.length > 0) {
    const last = points.pop() as number;
    // Between U+D7FF and U+E000 there are only halves of characters, which are not text.
    const next = last === 0xd7ff ? 0xe000 : last + 1;
    if (next <= 0x10ffff) return String.fromCodePoint(...points, next);
  }
  return undefined;
}
