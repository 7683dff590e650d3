/** Keys of the maps of a memory store: texts that sort in the order of the table or an index. */

import { inByteOrder } from "../evaluate.ts";
import type { Item, Key } from "../item.ts";
import type { PageRange } from "../item-table.ts";
import { type IndexDefinition, TTL_ATTRIBUTE } from "../table.ts";

/** In no key, and lower than any character, so that a text sorts before those it is a prefix of. */
const SEPARATOR = "\u0000";
/** Higher than any unit that a key can contain. */
const LAST = "\uffff";
const EXPIRY_DIGITS = 12;

/** Returns the place of an item in the table. */
export function tableKey(key: Key): string {
  return join(inByteOrder(key.PK), inByteOrder(key.SK));
}

/** Returns the place of an item in an index; none without both of its keys. */
export function indexKey(index: IndexDefinition, item: Item | undefined): string | undefined {
  const partition = item?.[index.partition];
  const sort = item?.[index.sort];
  if (item === undefined || typeof partition !== "string" || typeof sort !== "string") {
    return undefined;
  }
  return join(inByteOrder(partition), inByteOrder(sort), tableKey(item));
}

/** Returns the place of an item among those that will expire; none without a time to live. */
export function expiryKey(item: Item | undefined): string | undefined {
  const ttl = item?.[TTL_ATTRIBUTE];
  if (item === undefined || typeof ttl !== "number") return undefined;
  return join(expiryText(ttl), tableKey(item));
}

/** Returns a text that sorts after everything that expires earlier than this second. */
export function expiryText(seconds: number): string {
  return String(Math.max(0, Math.floor(seconds))).padStart(EXPIRY_DIGITS, "0");
}

/** Returns the lowest text above another. */
export function after(text: string): string {
  return text + SEPARATOR;
}

/** Returns the ends of a range, the low one included, in the table as in an index. */
export function bounds({
  partition,
  from = "",
  before,
}: Pick<PageRange, "partition" | "from" | "before">): [low: string, high: string] {
  const within = inByteOrder(partition);
  const high = before === undefined ? LAST : inByteOrder(before);
  return [join(within, inByteOrder(from)), join(within, high)];
}

function join(...parts: readonly string[]): string {
  return parts.join(SEPARATOR);
}
