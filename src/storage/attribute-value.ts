/**
 * Items in DynamoDB's JSON, where every value carries its type: `{ "S": "text" }`, `{ "N": "1" }`.
 * It goes over the wire to DynamoDB and into the rows of SQLite.
 */

import { ValidationError } from "../domain/errors.ts";
import type { Item, Value } from "./item.ts";

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
export type AttributeMap = Record<string, AttributeValue>;

/** Types every attribute. */
export function encodeItem(item: Readonly<Record<string, Value>>): AttributeMap {
  // `fromEntries` defines its properties, so that an attribute named `__proto__` is only a name.
  return Object.fromEntries(
    Object.entries(item)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, encodeValue(value)]),
  );
}

/** The opposite of `encodeItem`. */
export function decodeItem(attributes: Readonly<Record<string, unknown>>): Item {
  return decodeMap(attributes) as unknown as Item;
}

/** Types one value. */
export function encodeValue(value: Value): AttributeValue {
  switch (typeof value) {
    case "string":
      return { S: value };
    case "number":
      if (!Number.isFinite(value)) {
        throw new ValidationError("number", value, "only finite numbers can be stored");
      }
      return { N: String(value) };
    case "bigint":
      return { N: String(value) };
    case "boolean":
      return { BOOL: value };
    default:
      break;
  }
  if (value === null) return { NULL: true };
  if (value instanceof Set) return { SS: [...value].sort() };
  if (Array.isArray(value)) return { L: value.map(encodeValue) };
  return { M: encodeItem(value as Readonly<Record<string, Value>>) };
}

/** Reads one typed value. */
export function decodeValue(attribute: unknown): Value {
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
      throw new ValidationError("attribute", attribute, `the type "${type}" is not supported`);
  }
}

function decodeMap(attributes: Readonly<Record<string, unknown>>): Record<string, Value> {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, attribute]) => [name, decodeValue(attribute)]),
  );
}

function decodeNumber(digits: string): number | bigint {
  const value = Number(digits);
  if (Number.isSafeInteger(value) || !/^-?[0-9]+$/.test(digits)) return value;
  return BigInt(digits);
}
