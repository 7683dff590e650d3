/** Lists that are read a page at a time, with a cursor that is opaque text. */

import { defined } from "../base/defined.ts";
import { checkInteger } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { type Item, textAt } from "../storage/item.ts";
import type { Query } from "../storage/item-store.ts";
import { indexNamed } from "../storage/table.ts";
import { queryRecords } from "./query-records.ts";
import type { RecordContext } from "./record-context.ts";

const LIMIT_MAX = 10_000;

export interface Page {
  readonly items: readonly Item[];
  /** Cursor of the next page; `undefined` at the end. */
  readonly cursor: string | undefined;
}

/** Reads one page, and one item more than it returns, to know whether there is a next page. */
export async function listPage(
  context: RecordContext,
  query: Query,
  options: { limit: number; cursor: string | undefined },
): Promise<Page> {
  const limit = checkInteger("limit", options.limit, 1, LIMIT_MAX);
  const after = options.cursor === undefined ? {} : { after: decodeCursor(options.cursor, query) };
  const items: Item[] = [];
  for await (const item of queryRecords(context, { ...query, ...after, limit: limit + 1 })) {
    items.push(item);
  }
  if (items.length <= limit) return { items, cursor: undefined };
  const shown = items.slice(0, limit);
  return { items: shown, cursor: encodeCursor(shown[limit - 1] as Item, query) };
}

/** Reads a list to its end; `read` gets the cursor of the next page. */
export async function* pages<Result extends { readonly cursor?: string | undefined }>(
  read: (from: { readonly cursor?: string }) => Promise<Result>,
): AsyncGenerator<Result> {
  let cursor: string | undefined;
  do {
    const page = await read(defined({ cursor }));
    yield page;
    cursor = page.cursor;
  } while (cursor !== undefined);
}

export function encodeCursor(item: Item, query: Query): string {
  const keys = keyNames(query).map((name) => [name, textAt(item, name)]);
  return Buffer.from(JSON.stringify(Object.fromEntries(keys))).toString("base64url");
}

/** Decodes a cursor. One of another list is refused: a store would continue from a wrong place. */
export function decodeCursor(cursor: string, query: Query): Item {
  try {
    const keys = JSON.parse(Buffer.from(cursor, "base64url").toString()) as Item;
    const names = keyNames(query);
    const valid =
      names.every((name) => textAt(keys, name) !== undefined) &&
      Object.keys(keys).length === names.length &&
      textAt(keys, partitionName(query)) === query.partition;
    if (valid) return keys;
  } catch {
    // Not ours: refused below.
  }
  throw new ValidationError(
    "cursor",
    cursor,
    "expected the cursor of an earlier page of this list",
  );
}

/** Returns the attributes that say where an item is listed. */
function keyNames({ index }: Query): readonly string[] {
  if (index === undefined) return ["PK", "SK"];
  const { partition, sort } = indexNamed(index);
  return ["PK", "SK", partition, sort];
}

function partitionName({ index }: Query): string {
  return index === undefined ? "PK" : indexNamed(index).partition;
}
