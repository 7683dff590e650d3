/** Conditions and changes, evaluated in process: what DynamoDB does, for the embedded stores. */

import { ValidationError } from "../domain/errors.ts";
import type { Item, Key, Value } from "./item.ts";
import type { Change, Comparable, Condition, Test } from "./item-store.ts";

/** Whether all tests pass. */
export function holds(condition: Condition | undefined, item: Item | undefined): boolean {
  return condition === undefined || condition.every((test) => passes(test, item));
}

/** The item after a change. */
export function applyChange(key: Key, item: Item | undefined, change: Change): Item {
  const next = new Map<string, Value>(Object.entries(item ?? key));
  for (const [name, value] of Object.entries(change.set ?? {})) next.set(name, value);
  for (const [name, value] of Object.entries(change.setIfAbsent ?? {})) {
    if (!next.has(name)) next.set(name, value);
  }
  for (const [name, amount] of Object.entries(change.add ?? {})) {
    next.set(name, sum(name, next.get(name), amount));
  }
  for (const name of change.remove ?? []) next.delete(name);
  for (const [name, members] of Object.entries(change.addToSet ?? {})) {
    const union = new Set([...setAt(name, next), ...members]);
    if (union.size > 0) next.set(name, union);
  }
  for (const [name, members] of Object.entries(change.deleteFromSet ?? {})) {
    const left = new Set(setAt(name, next));
    for (const member of members) left.delete(member);
    if (left.size > 0) next.set(name, left);
    else next.delete(name);
  }
  return Object.fromEntries(next) as unknown as Item;
}

function passes(test: Test, item: Item | undefined): boolean {
  const value = item !== undefined && Object.hasOwn(item, test.name) ? item[test.name] : undefined;
  if (test.is === "exists") return value !== undefined;
  if (test.is === "absent") return value === undefined;
  if (value === undefined) return test.orAbsent === true;
  if (!sameType(value, test.value)) return false;
  switch (test.is) {
    case "=":
      // biome-ignore lint/suspicious/noDoubleEquals: 1n == 1 is wanted, and the types are known to fit.
      return value == test.value;
    case "<":
      return value < test.value;
    case "<=":
      return value <= test.value;
    case ">":
      return value > test.value;
    case ">=":
      return value >= test.value;
  }
}

function sameType(value: Value, other: Comparable): value is Comparable {
  const numeric = (candidate: unknown) =>
    typeof candidate === "number" || typeof candidate === "bigint";
  return numeric(value) ? numeric(other) : typeof value === typeof other;
}

function sum(name: string, value: Value | undefined, amount: number | bigint): number | bigint {
  if (value === undefined) return amount;
  if (typeof value !== "number" && typeof value !== "bigint") {
    throw new ValidationError(name, value, "only a number can be added to");
  }
  if (typeof value === "number" && typeof amount === "number") {
    const total = value + amount;
    if (Math.abs(total) <= Number.MAX_SAFE_INTEGER || !Number.isInteger(total)) return total;
  }
  const total = BigInt(value) + BigInt(amount);
  return Number.isSafeInteger(Number(total)) ? Number(total) : total;
}

function setAt(name: string, item: ReadonlyMap<string, Value>): ReadonlySet<string> {
  const value = item.get(name);
  if (value === undefined) return new Set();
  if (value instanceof Set) return value;
  throw new ValidationError(name, value, "only a set can gain or lose members");
}
