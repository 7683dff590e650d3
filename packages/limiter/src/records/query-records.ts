/**
 * The one way to read an index. Items that are in an index without belonging there are dropped
 * and counted in a warning; the types of `RecordContext` leave no other way.
 */

import { type Item, type Key, keyOf } from "../storage/item.ts";
import type { ItemStore, Query } from "../storage/item-store.ts";
import type { IndexName } from "../storage/table.ts";
import { standsWhereShown } from "./index-place.ts";
import type { RecordContext } from "./record-context.ts";

/** How many items are read at a time, at least, once a page was not enough. */
const PAGE_MIN = 100;

/** Reads a partition of the table or of an index; of an index only the items that belong there. */
export function queryRecords(context: RecordContext, query: Query): AsyncIterable<Item> {
  const { index } = query;
  // Only this file passes an index on, so it takes the store by its full type.
  const store = context.store as ItemStore;
  return index === undefined ? store.query(query) : queryIndex(store, { ...query, index }, context);
}

async function* queryIndex(
  store: ItemStore,
  query: Query & { index: IndexName },
  { onWarning }: RecordContext,
): AsyncGenerator<Item> {
  const { index, partition, limit = Number.POSITIVE_INFINITY } = query;
  let shown = 0;
  let dropped = 0;
  let example: Key | undefined;
  try {
    for await (const item of pages(store, query)) {
      if (standsWhereShown(query, item)) {
        yield item;
        shown += 1;
        if (shown === limit) return;
      } else {
        dropped += 1;
        example ??= keyOf(item);
      }
    }
  } finally {
    if (example !== undefined) {
      onWarning?.({ kind: "foreign_items", index, partition, dropped, example });
    }
  }
}

/** Reads all items, also beyond the limit of the query: dropped items count toward it. */
async function* pages(store: ItemStore, query: Query): AsyncGenerator<Item> {
  let asked = query;
  for (;;) {
    let found = 0;
    let last: Item | undefined;
    for await (const item of store.query(asked)) {
      found += 1;
      last = item;
      yield item;
    }
    if (asked.limit === undefined || found < asked.limit || last === undefined) return;
    asked = { ...asked, after: last, limit: Math.max(asked.limit, PAGE_MIN) };
  }
}
