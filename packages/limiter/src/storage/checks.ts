/** Checks that every store makes before a request starts: all stores refuse the same. */

import { ValidationError } from "../domain/errors/errors.ts";
import { checkKey, checkKeyPart, type Item, type Key } from "./item.ts";
import { type Change, type ItemStore, type Query, TRANSACT_MAX, type Write } from "./item-store.ts";
import { INDEXES } from "./table.ts";

const INDEX_KEYS = new Set(INDEXES.flatMap((index) => [index.partition, index.sort]));

/** The unconditional puts and deletes that `writeMany` takes. */
export type ManyWrites = Parameters<ItemStore["writeMany"]>[0];

/** Returns these writes as a list. */
export function writesIn({ puts = [], deletes = [] }: ManyWrites): Write[] {
  return [...puts.map((put) => ({ put })), ...deletes.map((key) => ({ delete: key }))];
}

/** Returns the key that a write goes to. */
export function keyOfWrite(write: Write): Key {
  if ("put" in write) return write.put;
  if ("update" in write) return write.update;
  return "delete" in write ? write.delete : write.check;
}

/** Refuses more than 100 writes, and two writes to one item. */
export function checkTransaction(writes: readonly Write[]): void {
  checkAtMost("writes", writes.length);
  checkDistinct(writes.map(keyOfWrite));
  for (const write of writes) checkWrite(write);
}

/** Refuses more than 100 keys in one snapshot. */
export function checkSnapshot(keys: readonly Key[]): void {
  checkAtMost("keys", keys.length);
}

/** Refuses two writes to one item. */
export function checkDistinct(keys: readonly Key[]): void {
  const different = new Set(keys.map((key) => JSON.stringify([key.PK, key.SK])));
  if (different.size === keys.length) return;
  throw new ValidationError("keys", keys.length, "each write must go to another item");
}

/** Refuses a write that could never work; its values are checked where they are encoded. */
export function checkWrite(write: Write): void {
  checkKey(keyOfWrite(write));
  if ("put" in write) checkIndexKeys(write.put);
  if ("update" in write) checkChange(write.change);
}

/** Refuses a change of the key, and two changes of one attribute. */
function checkChange(change: Change): void {
  const seen = new Set(["PK", "SK"]);
  for (const name of namesOf(change)) {
    if (seen.has(name)) {
      const reason = `"${name}" is part of the key, or is changed in two ways at once`;
      throw new ValidationError("change", name, reason);
    }
    seen.add(name);
  }
  checkIndexKeys({ ...change.set, ...change.setIfAbsent });
  for (const name of Object.keys({ ...change.add, ...change.addToSet })) {
    if (INDEX_KEYS.has(name)) throw new ValidationError("change", name, "a key must be text");
  }
}

/** Refuses a consistent read of an index, which follows the table with a delay. */
export function checkQuery(query: Query): void {
  if (query.index === undefined || query.consistent !== true) return;
  throw new ValidationError("consistent", query.index, "an index cannot be read consistently");
}

function namesOf(change: Change): string[] {
  const { set, setIfAbsent, add, remove = [], addToSet, deleteFromSet } = change;
  const named = [set, setIfAbsent, add, addToSet, deleteFromSet];
  return [...named.flatMap((record) => Object.keys(record ?? {})), ...remove];
}

function checkIndexKeys(attributes: Partial<Item>): void {
  for (const name of INDEX_KEYS) {
    if (attributes[name] !== undefined) checkKeyPart(name, attributes[name]);
  }
}

function checkAtMost(what: string, count: number): void {
  if (count <= TRANSACT_MAX) return;
  throw new ValidationError(
    "transaction",
    count,
    `expected at most ${TRANSACT_MAX} ${what}, got ${count}`,
  );
}
