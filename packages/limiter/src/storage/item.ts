/**
 * Items: named attributes under a two-part key. Other writers may have written them, so readers of
 * an attribute check its type and range.
 */

import { ValidationError } from "../domain/errors/errors.ts";
import type { JsonValue } from "../domain/json.ts";

/** The key of an item. */
export interface Key {
  /** The partition key. */
  readonly PK: string;
  /** The sort key. */
  readonly SK: string;
}

/**
 * An attribute. Numbers are integers or decimals as JavaScript holds them; an integer beyond 2^53
 * is read as a bigint, so that no digit is lost. A set is never empty: it is absent instead.
 */
export type Value =
  | string
  | number
  | bigint
  | boolean
  | null
  | ReadonlySet<string>
  | readonly Value[]
  | OpaqueValue
  | { readonly [name: string]: Value };

/** An attribute of a type that this library never writes. It is kept unchanged. */
export class OpaqueValue {
  readonly wire: object;

  constructor(wire: object) {
    this.wire = wire;
  }
}

/** An item: its key and any other attributes. Immutable; stores share the objects they hand out. */
export interface Item extends Key {
  /** The attributes by name. */
  readonly [name: string]: Value;
}

/** Returns the key of an item, without its other attributes. */
export function keyOf(item: Key): Key {
  return { PK: item.PK, SK: item.SK };
}

/** Refuses a key with an empty or missing part. */
export function checkKey(key: Key): void {
  checkKeyPart("PK", key.PK);
  checkKeyPart("SK", key.SK);
}

/** Refuses an empty text, which is no key for DynamoDB, and a NUL, where SQLite would cut it. */
export function checkKeyPart(name: string, value: unknown): void {
  if (typeof value === "string" && value !== "" && !value.includes("\u0000")) return;
  throw new ValidationError(name, value, "a key must be text, not empty, and without a NUL");
}

/** Returns a text; `undefined` when the attribute is anything else. */
export function textAt(item: Item | undefined, name: string): string | undefined {
  const value = valueAt(item, name);
  return typeof value === "string" ? value : undefined;
}

/** Returns a whole or decimal number; a bigint beyond 2^53 is rounded. */
export function numberAt(item: Item | undefined, name: string): number | undefined {
  const value = valueAt(item, name);
  if (typeof value === "bigint") return Number(value);
  return typeof value === "number" ? value : undefined;
}

/** Returns a whole number from `min` to `max`; `undefined` when it is anything else. */
export function integerAt(
  item: Item | undefined,
  name: string,
  min: number,
  max: number,
): number | undefined {
  const value = valueAt(item, name);
  return isIntegerIn(value, min, max) ? value : undefined;
}

/** Returns whether a value is a whole number from `min` to `max`. */
export function isIntegerIn(value: Value | undefined, min: number, max: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}

/** Returns whether the attribute is `true`. */
export function flagAt(item: Item | undefined, name: string): boolean {
  return valueAt(item, name) === true;
}

/**
 * Returns a copy of a map as JSON; empty when the attribute is no map. JSON has no sets and no
 * integers beyond 2^53: they become arrays and text.
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
 * Returns an attribute that the item itself has: `constructor` is a legal name, and everything that
 * an item inherits is a function or an object.
 */
export function valueAt(item: Item | undefined, name: string): Value | undefined {
  const value: unknown = item?.[name];
  if (typeof value !== "object" && typeof value !== "function") return value as Value | undefined;
  return Object.hasOwn(item as Item, name) ? (value as Value) : undefined;
}
