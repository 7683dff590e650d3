/** Reads attributes of items that other writers may have written, checking type and range. */

import type { JsonValue } from "../domain/json.ts";
import { type Item, OpaqueValue, type Value } from "../storage/item.ts";

export function textAt(item: Item | undefined, name: string): string | undefined {
  const value = valueAt(item, name);
  return typeof value === "string" ? value : undefined;
}

/** A whole or decimal number; a bigint beyond 2^53 is rounded. */
export function numberAt(item: Item | undefined, name: string): number | undefined {
  const value = valueAt(item, name);
  if (typeof value === "bigint") return Number(value);
  return typeof value === "number" ? value : undefined;
}

/** A whole number from `min` to `max`; `undefined` when the attribute is anything else. */
export function integerAt(
  item: Item | undefined,
  name: string,
  min: number,
  max: number,
): number | undefined {
  const value = valueAt(item, name);
  return isIntegerIn(value, min, max) ? value : undefined;
}

export function isIntegerIn(value: Value | undefined, min: number, max: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}

export function flagAt(item: Item | undefined, name: string): boolean {
  return valueAt(item, name) === true;
}

/**
 * A copy of a map as JSON; empty when the attribute is no map. JSON has no sets and no integers
 * beyond 2^53: they become arrays and text.
 */
export function jsonAt(item: Item, name: string): Readonly<Record<string, JsonValue>> {
  const value = valueAt(item, name);
  const json = value === undefined ? undefined : jsonOf(value);
  const isMap = typeof json === "object" && json !== null && !Array.isArray(json);
  return isMap ? (json as Readonly<Record<string, JsonValue>>) : {};
}

function jsonOf(value: Value): JsonValue {
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Set) return [...value];
  if (value instanceof OpaqueValue) return null;
  if (Array.isArray(value)) return (value as readonly Value[]).map(jsonOf);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, jsonOf(part)]));
}

/**
 * Only what the item itself has: `constructor` is a legal name. What it inherits are functions and
 * an object. No item has no attributes.
 */
export function valueAt(item: Item | undefined, name: string): Value | undefined {
  const value: unknown = item?.[name];
  if (typeof value !== "object" && typeof value !== "function") return value as Value | undefined;
  return Object.hasOwn(item as Item, name) ? (value as Value) : undefined;
}
