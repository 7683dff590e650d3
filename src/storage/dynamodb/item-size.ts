/** The size of an item as DynamoDB bills it. */

import { type AttributeValue, encodeItem } from "../attribute-value.ts";
import type { Item } from "../item.ts";

/** Names and texts count in UTF-8, a number about one byte per two digits. */
export function itemSizeBytes(item: Item): number {
  return mapSize(encodeItem(item));
}

function mapSize(attributes: Readonly<Record<string, AttributeValue>>): number {
  return total(
    Object.entries(attributes).map(([name, value]) => Buffer.byteLength(name) + valueSize(value)),
  );
}

function valueSize(value: AttributeValue): number {
  if ("S" in value) return Buffer.byteLength(value.S);
  if ("N" in value) return numberSize(value.N);
  if ("SS" in value) return total(value.SS.map((member) => Buffer.byteLength(member)));
  // Lists and maps cost three bytes, and one more for each member.
  if ("L" in value) return 3 + total(value.L.map((member) => 1 + valueSize(member)));
  if ("M" in value) return 3 + Object.keys(value.M).length + mapSize(value.M);
  return 1;
}

function numberSize(digits: string): number {
  const significant = digits.replace(/[^0-9]/g, "").replace(/^0+|0+$/g, "");
  return Math.ceil(significant.length / 2) + (digits.startsWith("-") ? 2 : 1);
}

function total(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + size, 0);
}
