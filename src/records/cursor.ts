/** Lists that are read a page at a time, with a cursor that is opaque text. */

import { checkInteger } from "../domain/check.ts";
import { ValidationError } from "../domain/errors.ts";
import type { Item } from "../storage/item.ts";
import type { ItemStore, Query } from "../storage/item-store.ts";

const LIMIT_MAX = 10_000;
const KEY_PATTERN = /^(PK|SK|GSI[1-4][PS]K)$/;

export interface Page {
  readonly items: readonly Item[];
  /** Where the next page begins; `undefined` at the end. */
  readonly cursor: string | undefined;
}

/** One page. It reads one item more than it shows, to know whether there is a next page. */
export async function listPage(
  store: ItemStore,
  query: Query,
  options: { limit: number; cursor: string | undefined },
): Promise<Page> {
  const limit = checkInteger("limit", options.limit, 1, LIMIT_MAX);
  const after = options.cursor === undefined ? {} : { after: decodeCursor(options.cursor) };
  const items: Item[] = [];
  for await (const item of store.query({ ...query, ...after, limit: limit + 1 })) items.push(item);
  if (items.length <= limit) return { items, cursor: undefined };
  const shown = items.slice(0, limit);
  return { items: shown, cursor: encodeCursor(shown[limit - 1] as Item) };
}

function encodeCursor(item: Item): string {
  const keys = Object.entries(item).filter(([name]) => KEY_PATTERN.test(name));
  return Buffer.from(JSON.stringify(Object.fromEntries(keys))).toString("base64url");
}

function decodeCursor(cursor: string): Item {
  try {
    const keys = JSON.parse(Buffer.from(cursor, "base64url").toString()) as Record<string, unknown>;
    const valid =
      typeof keys.PK === "string" &&
      typeof keys.SK === "string" &&
      Object.entries(keys).every(
        ([name, key]) => KEY_PATTERN.test(name) && typeof key === "string",
      );
    if (valid) return keys as unknown as Item;
  } catch {
    // Not ours: refused below.
  }
  throw new ValidationError("cursor", cursor, "expected the cursor of an earlier page");
}
