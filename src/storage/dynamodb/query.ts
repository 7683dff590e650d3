/** The items of one partition, page by page. */

import { ValidationError } from "../../domain/errors.ts";
import { type AttributeMap, decodeItem, encodeItem } from "../attribute-value.ts";
import type { Item } from "../item.ts";
import type { Query } from "../item-store.ts";
import { type IndexDefinition, indexNamed, project } from "../table.ts";
import type { Calls } from "./calls.ts";
import { Expressions } from "./expression.ts";
import type { Input } from "./operations.ts";

/** Fetches a page when the one before is used up; each page has the time of one call. */
export async function* queryItems(calls: Calls, query: Query): AsyncGenerator<Item> {
  if (matchesNothing(query)) return;
  const index = query.index === undefined ? undefined : indexNamed(query.index);
  const expressions = new Expressions();
  const input: Input<"Query"> = {
    TableName: calls.table,
    ...expressions.keys(index?.partition ?? "PK", index?.sort ?? "SK", query),
    ...expressions.attributes(),
    ...(query.index !== undefined && { IndexName: query.index }),
    ...(query.descending === true && { ScanIndexForward: false }),
    ...(query.consistent === true && { ConsistentRead: true }),
  };
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  let start: Input<"Query">["ExclusiveStartKey"] =
    query.after === undefined ? undefined : startAfter(query.after, index);
  do {
    const page: Input<"Query"> = { ...input, ExclusiveStartKey: start };
    if (Number.isFinite(left)) page.Limit = left;
    const deadline = await calls.start("Query");
    const { Items = [], LastEvaluatedKey } = await calls.read("Query", page, deadline);
    for (const attributes of Items) {
      const item = decodeItem(attributes);
      left -= 1;
      // A table of the reference copies more into an index than ours does.
      yield index === undefined ? item : project(index, item);
      if (left <= 0) return;
    }
    start = LastEvaluatedKey;
  } while (start !== undefined);
}

/** Ranges that DynamoDB would refuse as malformed, though their answer is clear: nothing. */
function matchesNothing(query: Query): boolean {
  if (query.limit !== undefined && query.limit <= 0) return true;
  const sort = query.sort ?? {};
  if ("beginsWith" in sort || sort.to === undefined) return false;
  return Buffer.compare(Buffer.from(sort.from ?? "\u0001"), Buffer.from(sort.to)) > 0;
}

function startAfter(item: Item, index: IndexDefinition | undefined): AttributeMap {
  const names = ["PK", "SK", ...(index === undefined ? [] : [index.partition, index.sort])];
  const keys = names.map((name) => [name, item[name]] as const);
  const missing = keys.find(([, value]) => typeof value !== "string");
  if (missing !== undefined) {
    throw new ValidationError("after", item, `the item has no ${missing[0]} to go on from`);
  }
  return encodeItem(Object.fromEntries(keys) as Record<string, string>);
}
