/** Pages of a partition. Each is a statement of its own, so nothing stays open in between. */

import type { Item } from "../item.ts";
import type { PageRange } from "../item-table.ts";
import { type IndexDefinition, indexNamed } from "../table.ts";
import type { SqliteDatabase } from "./database.ts";
import type { Bindable, Row } from "./driver.ts";
import { decoded } from "./item-rows.ts";

/** Returns the items of a range; of an index with keys only, their keys. */
export function pageOf(database: SqliteDatabase, range: PageRange): Item[] {
  const index = range.index === undefined ? undefined : indexNamed(range.index);
  const partition = index === undefined ? "pk" : index.partition.toLowerCase();
  const order = index === undefined ? ["sk"] : [index.sort.toLowerCase(), "pk", "sk"];
  const keysOnly = index?.projection === "KEYS_ONLY" ? index : undefined;
  const { conditions, values } = filterOf(range, partition, order, index);
  const direction = range.descending ? " DESC" : "";
  const columns = keysOnly === undefined ? "data" : [partition, ...order].join(", ");
  const sql = `SELECT ${columns} FROM items WHERE ${conditions.join(" AND ")}
    ORDER BY ${order.map((column) => column + direction).join(", ")} LIMIT ?`;
  const rows = database.prepare(sql).all(...values, range.limit);
  return rows.map((row) =>
    keysOnly === undefined ? decoded(row.data as string).item : keysIn(row, keysOnly),
  );
}

function filterOf(
  { from, before, descending, after, partition }: PageRange,
  partitionColumn: string,
  order: readonly string[],
  index: IndexDefinition | undefined,
): { readonly conditions: readonly string[]; readonly values: readonly Bindable[] } {
  const [sort] = order;
  const conditions = [`${partitionColumn} = ?`];
  const values: Bindable[] = [partition];
  if (from !== undefined) {
    conditions.push(`${sort} >= ?`);
    values.push(from);
  }
  if (before !== undefined) {
    conditions.push(`${sort} < ?`);
    values.push(before);
  }
  if (after !== undefined) {
    const places = order.map(() => "?").join(", ");
    conditions.push(`(${order.join(", ")}) ${descending ? "<" : ">"} (${places})`);
    const keys = index === undefined ? [after.SK] : [after[index.sort], after.PK, after.SK];
    values.push(...(keys as string[]));
  }
  return { conditions, values };
}

function keysIn(row: Row, index: IndexDefinition): Item {
  return {
    PK: row.pk as string,
    SK: row.sk as string,
    [index.partition]: row[index.partition.toLowerCase()] as string,
    [index.sort]: row[index.sort.toLowerCase()] as string,
  };
}
