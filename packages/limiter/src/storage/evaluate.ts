/** Conditions and changes, evaluated in process: what DynamoDB does, for the embedded stores. */

import { ValidationError } from "../domain/errors/errors.ts";
import { storedValue } from "./attribute-value.ts";
import { type Item, type Key, keyOf, type Value } from "./item.ts";
import type { Change, Comparable, Condition, Test } from "./item-store.ts";

/** Whether all tests pass. */
export function holds(condition: Condition | undefined, item: Item | undefined): boolean {
  return condition === undefined || condition.every((test) => passes(test, item));
}

/** Returns the item after a change, which the store has checked. */
export function applyChange(key: Key, item: Item | undefined, change: Change): Item {
  const next = new Map<string, Value>(Object.entries(item ?? keyOf(key)));
  changeValues(next, change);
  changeSets(next, change);
  for (const name of change.remove ?? []) next.delete(name);
  return Object.fromEntries(next) as unknown as Item;
}

/** Returns the item as it will be read; refuses values that DynamoDB could not store. */
export function storedItem(item: Item): Item {
  return Object.fromEntries(
    Object.entries(item)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, storedValue(value)]),
  ) as unknown as Item;
}

/**
 * Returns a text whose UTF-16 units sort as the UTF-8 bytes of the given one, which is the order of
 * DynamoDB and SQLite: characters beyond U+FFFF come last, but their units lie before U+E000.
 */
export function inByteOrder(text: string): string {
  return text.replace(/[\ud800-\uffff]/g, (unit) => {
    const code = unit.charCodeAt(0);
    return String.fromCharCode(code < 0xe000 ? code + 0x2000 : code - 0x800);
  });
}

function changeValues(next: Map<string, Value>, change: Change): void {
  for (const [name, value] of Object.entries(change.set ?? {})) {
    next.set(name, storedValue(value));
  }
  for (const [name, value] of Object.entries(change.setIfAbsent ?? {})) {
    // Refused even where it would not be used, as DynamoDB does.
    const stored = storedValue(value);
    if (!next.has(name)) next.set(name, stored);
  }
  for (const [name, amount] of Object.entries(change.add ?? {})) {
    next.set(name, storedValue(sum(name, next.get(name), amount)));
  }
}

function changeSets(next: Map<string, Value>, change: Change): void {
  for (const [name, members] of Object.entries(change.addToSet ?? {})) {
    const union = new Set([...setAt(name, next), ...members]);
    if (union.size > 0) next.set(name, storedValue(union));
  }
  for (const [name, members] of Object.entries(change.deleteFromSet ?? {})) {
    const left = new Set(setAt(name, next));
    for (const member of members) left.delete(member);
    if (left.size > 0) next.set(name, left);
    else next.delete(name);
  }
}

function passes(test: Test, item: Item | undefined): boolean {
  const value = item !== undefined && Object.hasOwn(item, test.name) ? item[test.name] : undefined;
  if (test.is === "exists") return value !== undefined;
  if (test.is === "absent") return value === undefined;
  if (value === undefined) return test.orAbsent === true;
  return sameType(value, test.value) && compares(test.is, ordered(value), ordered(test.value));
}

function compares(
  is: "=" | "<" | "<=" | ">" | ">=",
  value: Comparable,
  other: Comparable,
): boolean {
  switch (is) {
    case "=":
      // biome-ignore lint/suspicious/noDoubleEquals: 1n == 1 is wanted, and the types fit.
      return value == other;
    case "<":
      return value < other;
    case "<=":
      return value <= other;
    case ">":
      return value > other;
    case ">=":
      return value >= other;
  }
}

function ordered(value: Comparable): Comparable {
  return typeof value === "string" ? inByteOrder(value) : value;
}

function sameType(value: Value, other: Comparable): value is Comparable {
  const numeric = (candidate: unknown) =>
    typeof candidate === "number" || typeof candidate === "bigint";
  return numeric(value) ? numeric(other) : typeof value === typeof other;
}

function sum(name: string, value: Value | undefined, given: number | bigint): number | bigint {
  const amount = storedValue(given) as number | bigint;
  if (value === undefined) return amount;
  if (typeof value !== "number" && typeof value !== "bigint") {
    throw new ValidationError(name, value, "only a number can be added to");
  }
  if (typeof value === "number" && typeof amount === "number") {
    // The sum of two safe integers is exact where it is a safe integer itself.
    const total = value + amount;
    if (Number.isSafeInteger(total)) return total;
  }
  if (!isWhole(value) || !isWhole(amount)) return Number(value) + Number(amount);
  return BigInt(value) + BigInt(amount);
}

function isWhole(value: number | bigint): boolean {
  return typeof value === "bigint" || Number.isInteger(value);
}

function setAt(name: string, item: ReadonlyMap<string, Value>): ReadonlySet<string> {
  const value = item.get(name);
  if (value === undefined) return new Set();
  if (value instanceof Set) return value;
  throw new ValidationError(name, value, "only a set can gain or lose members");
}
