/** The size of an item as DynamoDB bills it; worked out from the values, without encoding them. */

import type { Item, Value } from "./item.ts";

export function itemSizeBytes(item: Item): number {
  let size = 0;
  for (const name in item) size += Buffer.byteLength(name) + valueSize(item[name] as Value);
  return size;
}

function valueSize(value: Value): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value === "number" || typeof value === "bigint") return numberSize(String(value));
  if (typeof value !== "object" || value === null) return 1;
  if (value instanceof Set) {
    let size = 0;
    for (const member of value as ReadonlySet<string>) size += Buffer.byteLength(member);
    return size;
  }
  // Lists and maps cost three bytes, and one more for each member.
  let size = 3;
  if (Array.isArray(value)) {
    for (const member of value as readonly Value[]) size += 1 + valueSize(member);
    return size;
  }
  for (const [name, member] of Object.entries(value as Readonly<Record<string, Value>>)) {
    size += 1 + Buffer.byteLength(name) + valueSize(member);
  }
  return size;
}

/** Returns about one byte per two digits; zeros at the ends do not count. */
function numberSize(text: string): number {
  const digits = text.replace(/[^0-9]/g, "").replace(/^0+/, "");
  let length = digits.length;
  while (digits[length - 1] === "0") length -= 1;
  return Math.ceil(length / 2) + (text.startsWith("-") ? 2 : 1);
}
