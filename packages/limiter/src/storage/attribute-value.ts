/**
 * Items in DynamoDB's JSON, where every value carries its type: `{ "S": "text" }`, `{ "N": "1" }`.
 * It goes over the wire to DynamoDB and into the rows of SQLite.
 */

import { ValidationError } from "../domain/errors/errors.ts";
import { type Item, OpaqueValue, type Value } from "./item.ts";

/** One typed value. */
export type AttributeValue =
  | { S: string }
  | { N: string }
  | { BOOL: boolean }
  | { NULL: true }
  | { SS: string[] }
  | { L: AttributeValue[] }
  | { M: Record<string, AttributeValue> };

/** An item as DynamoDB writes it. */
type AttributeMap = Record<string, AttributeValue>;

/** Returns the item with the type of every attribute. */
export function encodeItem(item: Readonly<Record<string, Value>>): AttributeMap {
  // `fromEntries` defines its properties, so that an attribute named `__proto__` is only a name.
  return Object.fromEntries(
    Object.entries(item)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, encodeValue(value)]),
  );
}

/** Decodes an item that `encodeItem` has encoded. */
export function decodeItem(attributes: Readonly<Record<string, unknown>>): Item {
  return decodeMap(attributes) as unknown as Item;
}

/** Types one value. */
export function encodeValue(value: Value): AttributeValue {
  switch (typeof value) {
    case "string":
      return { S: value };
    case "number":
    case "bigint":
      return { N: encodeNumber(value) };
    case "boolean":
      return { BOOL: value };
    default:
      break;
  }
  if (value === null) return { NULL: true };
  if (value instanceof OpaqueValue) return value.wire as AttributeValue;
  if (value instanceof Set) {
    if (value.size > 0) return { SS: [...value].sort() };
    throw new ValidationError("set", "", "a set must not be empty; remove the attribute instead");
  }
  if (Array.isArray(value)) return { L: value.map(encodeValue) };
  return { M: encodeItem(value as Readonly<Record<string, Value>>) };
}

/**
 * Returns the value as it is read again: every number in its one form, nothing shared with the
 * caller.
 */
export function storedValue(value: Value): Value {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return value;
  // By far the most attributes are such numbers; the sum turns -0 into 0.
  if (Number.isSafeInteger(value)) return (value as number) + 0;
  return decodeValue(encodeValue(value));
}

/** Reads one typed value. */
export function decodeValue(attribute: unknown): Value {
  // Nearly all attributes are one of these two.
  const { N, S } = attribute as { readonly N?: unknown; readonly S?: unknown };
  if (typeof N === "string") return decodeNumber(N);
  if (typeof S === "string") return S;
  const [type, value] = Object.entries(attribute as Record<string, unknown>).find(
    ([, candidate]) => candidate !== undefined,
  ) ?? ["", undefined];
  switch (type) {
    case "S":
      return value as string;
    case "N":
      return decodeNumber(value as string);
    case "BOOL":
      return value as boolean;
    case "NULL":
      return null;
    case "SS":
      return new Set(value as string[]);
    case "L":
      return (value as unknown[]).map(decodeValue);
    case "M":
      return decodeMap(value as Record<string, unknown>);
    default:
      return new OpaqueValue(attribute as object);
  }
}

function decodeMap(attributes: Readonly<Record<string, unknown>>): Record<string, Value> {
  const decoded: Record<string, Value> = {};
  for (const name of Object.keys(attributes)) {
    if (name === "__proto__") defineProto(decoded, decodeValue(attributes[name]));
    else decoded[name] = decodeValue(attributes[name]);
  }
  return decoded;
}

/** Defines `__proto__`: assigning to it would change the prototype of the object. */
function defineProto(decoded: Record<string, Value>, value: Value): void {
  const property = { value, writable: true, enumerable: true, configurable: true };
  Object.defineProperty(decoded, "__proto__", property);
}

/** Bounds of a number of DynamoDB. */
const DIGITS_MAX = 38;
const MAGNITUDE_MIN = 1e-130;

function encodeNumber(value: number | bigint): string {
  if (typeof value === "bigint") {
    const digits = String(value);
    if (digits.replace("-", "").length <= DIGITS_MAX) return digits;
    throw new ValidationError("number", value, `expected at most ${DIGITS_MAX} digits`);
  }
  if (!Number.isFinite(value)) {
    throw new ValidationError("number", value, "only finite numbers can be stored");
  }
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new ValidationError("number", value, "a whole number beyond 2^53 must be a bigint");
  }
  if (value !== 0 && Math.abs(value) < MAGNITUDE_MIN) {
    throw new ValidationError("number", value, "expected 0 or at least 10^-130");
  }
  return String(value);
}

function decodeNumber(digits: string): number | bigint {
  const value = Number(digits);
  if (Number.isSafeInteger(value) || !/^-?[0-9]+$/.test(digits)) return value;
  return BigInt(digits);
}
