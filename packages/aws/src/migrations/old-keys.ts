/** The keys of older tables, and conditions on what was read from them. */

import { type Item, type Key, keyOf } from "@zae-limiter/limiter/storage/item.ts";
import type { Condition, ItemStore, Test, Write } from "@zae-limiter/limiter/storage/item-store.ts";

/** The parts of a partition key: `n1/ENTITY#key-1`, or `ENTITY#key-1` in older tables. */
export interface Partition {
  readonly namespaceId: string | undefined;
  /** `ENTITY#key-1`. */
  readonly rest: string;
}

const BUCKET_PATTERN = /^#BUCKET#([^#]+)(?:#([^#]+))?$/;
const USAGE_PATTERN = /^#USAGE#([^#]+)#([^#]+)$/;
const ENTITY_PREFIX = "ENTITY#";
const KINDS = [ENTITY_PREFIX, "SYSTEM#", "RESOURCE#", "AUDIT#", "BUCKET#"];
/** DynamoDB takes 300 operators and 4 KB in one expression. */
const TESTS_MAX = 80;

/** Names may contain slashes, but only behind the `#` that ends the kind. */
export function partitionOf(pk: string): Partition {
  const slash = pk.indexOf("/");
  const hash = pk.indexOf("#");
  if (slash === -1 || slash > hash) return { namespaceId: undefined, rest: pk };
  return { namespaceId: pk.slice(0, slash), rest: pk.slice(slash + 1) };
}

/** Whether a partition is of a kind that this library or the Python library writes. */
export function isOurs({ rest }: Partition): boolean {
  return KINDS.some((kind) => rest.startsWith(kind));
}

export function entityOf({ rest }: Partition): string | undefined {
  return rest.startsWith(ENTITY_PREFIX) ? rest.slice(ENTITY_PREFIX.length) : undefined;
}

/** A bucket that lies with its entity. */
export interface OldBucket {
  readonly entityId: string;
  readonly resource: string;
  /** The name of the limit, where each limit had an item of its own. */
  readonly limit: string | undefined;
}

export function oldBucket(item: Item): OldBucket | undefined {
  const entityId = entityOf(partitionOf(item.PK));
  const [, resource, limit] = BUCKET_PATTERN.exec(item.SK) ?? [];
  if (entityId === undefined || resource === undefined) return undefined;
  return { entityId, resource, limit };
}

/** A snapshot of usage whose key does not say the type of its window. */
export function oldUsage(item: Item): { entityId: string; resource: string } | undefined {
  const entityId = entityOf(partitionOf(item.PK));
  const resource = USAGE_PATTERN.exec(item.SK)?.[1];
  return entityId === undefined || resource === undefined ? undefined : { entityId, resource };
}

/** Returns the write that deletes the item, if it is as it was read. */
export function removal(item: Item): Write {
  return { delete: keyOf(item), condition: asRead(item) };
}

/** Whether the store has an item with that key. */
export async function isThere(store: ItemStore, key: Key): Promise<boolean> {
  return (await store.get(key, { consistent: true })) !== undefined;
}

/** Passes only while the item is as it was read. Numbers first: they are what changes most. */
export function asRead(item: Item): Condition {
  const tests = Object.entries(item).flatMap(([name, value]): Test[] =>
    typeof value === "string" ||
    typeof value === "number" ||
    typeof value === "bigint" ||
    typeof value === "boolean"
      ? [{ is: "=", name, value }]
      : [],
  );
  const rank = (test: Test) => ("value" in test && typeof test.value === "string" ? 1 : 0);
  return tests.sort((one, other) => rank(one) - rank(other)).slice(0, TESTS_MAX);
}
