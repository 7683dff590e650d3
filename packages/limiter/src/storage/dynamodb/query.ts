/** The items of one partition, or of the whole table, page by page. */

import { ValidationError } from "../../domain/errors/errors.ts";
import { decodeItem, encodeItem } from "../attribute-value.ts";
import { checkQuery } from "../checks.ts";
import { type Item, keyOf } from "../item.ts";
import type { Query } from "../item-store.ts";
import type { ScanOptions } from "../scan-store.ts";
import { isEmpty, placeOf, rangeOf } from "../sort-range.ts";
import { type IndexDefinition, indexNamed, project } from "../table.ts";
import { Expressions } from "./expression.ts";
import type { Calls } from "./transport/calls.ts";
import type { Input } from "./transport/operations.ts";

/** Fetches a page when the one before is used up; each page has the time of one call. */
export async function* queryItems(calls: Calls, query: Query): AsyncGenerator<Item> {
  checkQuery(query);
  const index = query.index === undefined ? undefined : indexNamed(query.index);
  const start = startOf(query, index);
  if (start === "nothing left" || isEmpty(rangeOf(query.sort))) return;
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  let page: Input<"Query"> = { ...inputOf(calls.table, query, index), ...start };
  while (left > 0) {
    const input = Number.isFinite(left) ? { ...page, Limit: left } : page;
    const { Items = [], LastEvaluatedKey } = await calls.read("Query", input);
    for (const attributes of Items) {
      const item = decodeItem(attributes);
      // A table of the Python library copies more into an index than ours does.
      yield index === undefined ? item : project(index, item);
    }
    if (LastEvaluatedKey === undefined) return;
    left -= Items.length;
    page = { ...page, ExclusiveStartKey: LastEvaluatedKey };
  }
}

/** Yields all items. The last one read may be gone: its key still says where to continue. */
export async function* scanItems(calls: Calls, { after }: ScanOptions): AsyncGenerator<Item> {
  let page: Input<"Scan"> = {
    TableName: calls.table,
    ConsistentRead: true,
    ...(after !== undefined && { ExclusiveStartKey: encodeItem({ ...keyOf(after) }) }),
  };
  for (;;) {
    const { Items = [], LastEvaluatedKey } = await calls.read("Scan", page);
    for (const attributes of Items) yield decodeItem(attributes);
    if (LastEvaluatedKey === undefined) return;
    page = { ...page, ExclusiveStartKey: LastEvaluatedKey };
  }
}

function inputOf(table: string, query: Query, index: IndexDefinition | undefined): Input<"Query"> {
  const { partition, sort } = index ?? TABLE;
  const expressions = new Expressions();
  return {
    TableName: table,
    ...expressions.keys([partition, query.partition], sort, rangeOf(query.sort)),
    ...expressions.attributes(),
    ...(index !== undefined && { IndexName: index.name }),
    ...(query.descending === true && { ScanIndexForward: false }),
    ...(query.consistent === true && { ConsistentRead: true }),
  };
}

/** Returns the key that the first page begins after. */
function startOf(
  query: Query,
  index: IndexDefinition | undefined,
): Pick<Input<"Query">, "ExclusiveStartKey"> | "nothing left" {
  if (query.after === undefined) return {};
  const keys = keysOf(query.after, index);
  const sort = keys[(index ?? TABLE).sort] as string;
  const place = placeOf(sort, rangeOf(query.sort), query.descending === true);
  if (place === "before") return {};
  // In an index, other items may have the same sort key.
  if (place === "after" || (place === "end" && index === undefined)) return "nothing left";
  return { ExclusiveStartKey: encodeItem(keys) };
}

function keysOf(item: Item, index: IndexDefinition | undefined): Record<string, string> {
  const names = ["PK", "SK", ...(index === undefined ? [] : [index.partition, index.sort])];
  const keys = names.map((name) => [name, item[name]] as const);
  const missing = keys.find(([, value]) => typeof value !== "string");
  if (missing !== undefined) {
    throw new ValidationError("after", item, `the item has no ${missing[0]} to continue from`);
  }
  return Object.fromEntries(keys) as Record<string, string>;
}

const TABLE = { partition: "PK", sort: "SK" } as const;
