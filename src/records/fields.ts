/** Reading attributes of items that somebody else may have written: by type, never by trust. */

import type { Item, Value } from "../storage/item.ts";

export function textAt(item: Item, name: string): string | undefined {
  const value = valueAt(item, name);
  return typeof value === "string" ? value : undefined;
}

/** A whole or decimal number; a bigint beyond 2^53 is rounded. */
export function numberAt(item: Item, name: string): number | undefined {
  const value = valueAt(item, name);
  if (typeof value === "bigint") return Number(value);
  return typeof value === "number" ? value : undefined;
}

export function flagAt(item: Item, name: string): boolean {
  return valueAt(item, name) === true;
}

/** Only what the item itself has: `constructor` is a legal name. */
export function valueAt(item: Item, name: string): Value | undefined {
  return Object.hasOwn(item, name) ? item[name] : undefined;
}
