/**
 * The table: one key, four indexes, a time to live. Every store has the same, and an index returns
 * only what it projects, so that code which works on one store works on all.
 */

import type { Item } from "./item.ts";

/** The indexes that can be queried. */
export const INDEX_NAMES = ["GSI1", "GSI2", "GSI3", "GSI4"] as const;
/** The name of an index that can be queried. */
export type IndexName = (typeof INDEX_NAMES)[number];

/** How an index is keyed and what it copies. */
export interface IndexDefinition {
  readonly name: IndexName;
  readonly partition: string;
  readonly sort: string;
  /** `KEYS_ONLY` costs nothing when other attributes change; readers then fetch by key. */
  readonly projection: "ALL" | "KEYS_ONLY";
}

/**
 * GSI1 leads from a parent to its children, GSI2 from a resource to its buckets and usage, GSI3
 * from an entity to its buckets and from a resource to entities with limits of their own, GSI4 from
 * a namespace to everything in it. GSI2 is KEYS_ONLY because an index with a copy of the balance
 * would double the cost of every acquire.
 */
export const INDEXES: readonly IndexDefinition[] = INDEX_NAMES.map((name) => ({
  name,
  partition: `${name}PK`,
  sort: `${name}SK`,
  projection: name === "GSI1" ? "ALL" : "KEYS_ONLY",
}));

/** Epoch seconds after which the store may remove the item. */
export const TTL_ATTRIBUTE = "ttl";

export function indexNamed(name: IndexName): IndexDefinition {
  return INDEXES[INDEX_NAMES.indexOf(name)] as IndexDefinition;
}

/** Returns the attributes of an item that an index holds. */
export function project(index: IndexDefinition, item: Item): Item {
  if (index.projection === "ALL") return item;
  const projected: Record<string, Item[string]> & { PK: string; SK: string } = {
    PK: item.PK,
    SK: item.SK,
  };
  for (const name of [index.partition, index.sort]) {
    const value = item[name];
    if (value !== undefined) projected[name] = value;
  }
  return projected;
}
