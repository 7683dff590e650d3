/**
 * Where an item stands in the indexes, derived from the item's own key.
 *
 * IAM restricts the leading key of a write and does not look at `GSI1PK` to `GSI4PK`, so a tenant
 * can put an item under its own key and give it the index keys of another tenant. The key is the
 * only part of an item that a policy protects, and every index key of ours follows from it.
 */

import type { Item, Key } from "../storage/item.ts";
import type { Query } from "../storage/item-store.ts";
import { type IndexName, indexNamed } from "../storage/table.ts";
import { parseBucketKey } from "./bucket-key.ts";
import { textAt } from "./fields.ts";
import {
  BUCKET_PREFIX,
  childrenPartition,
  ENTITY_CONFIG_PREFIX,
  entityConfigPartition,
  entityPartition,
  META_SK,
  namespaceOf,
  parseEntityPartition,
  resourcePartition,
  STATE_SK,
  USAGE_INDEX_PREFIX,
  USAGE_PREFIX,
} from "./keys.ts";

/** Returns whether the item's own key puts it where the index shows it. */
export function standsWhereShown(query: Query & { index: IndexName }, item: Item): boolean {
  const { index, partition } = query;
  if (index === "GSI4") return namespaceOf(item.PK) === partition;
  const sort = textAt(item, indexNamed(index).sort) ?? "";
  switch (index) {
    case "GSI1":
      return isChild(item, partition, sort);
    case "GSI2":
      return isBucketOfResource(item, partition, sort) || isUsage(item, partition, sort);
    case "GSI3":
      return isBucketOfEntity(item, partition, sort) || isEntityConfig(item, partition, sort);
  }
}

/** The parent is not part of the key; the namespace and the child are. */
function isChild({ PK, SK }: Key, partition: string, sort: string): boolean {
  const entity = SK === META_SK ? parseEntityPartition(PK) : undefined;
  return (
    entity !== undefined &&
    sort === `CHILD#${entity.entityId}` &&
    partition.startsWith(childrenPartition(entity.namespaceId, ""))
  );
}

function isBucketOfResource({ PK, SK }: Key, partition: string, sort: string): boolean {
  const bucket = SK === STATE_SK ? parseBucketKey(PK) : undefined;
  if (bucket === undefined) return false;
  const { namespaceId, entityId, resource, shard } = bucket;
  return (
    partition === resourcePartition(namespaceId, resource) &&
    sort === `${BUCKET_PREFIX}${entityId}#${shard}`
  );
}

function isBucketOfEntity({ PK, SK }: Key, partition: string, sort: string): boolean {
  const bucket = SK === STATE_SK ? parseBucketKey(PK) : undefined;
  if (bucket === undefined) return false;
  const { namespaceId, entityId, resource, shard } = bucket;
  return (
    partition === entityPartition(namespaceId, entityId) &&
    sort === `${BUCKET_PREFIX}${resource}#${shard}`
  );
}

/** `#USAGE#{resource}#{window}#{start}`; the Python library writes no window. */
function isUsage({ PK, SK }: Key, partition: string, sort: string): boolean {
  const entity = parseEntityPartition(PK);
  if (entity === undefined || !SK.startsWith(USAGE_PREFIX)) return false;
  const [resource = "", ...window] = SK.slice(USAGE_PREFIX.length).split("#");
  return (
    partition === resourcePartition(entity.namespaceId, resource) &&
    sort === `${USAGE_INDEX_PREFIX}${window.join("#")}#${entity.entityId}`
  );
}

function isEntityConfig({ PK, SK }: Key, partition: string, sort: string): boolean {
  const entity = parseEntityPartition(PK);
  if (entity === undefined || !SK.startsWith(ENTITY_CONFIG_PREFIX)) return false;
  const resource = SK.slice(ENTITY_CONFIG_PREFIX.length);
  return (
    partition === entityConfigPartition(entity.namespaceId, resource) && sort === entity.entityId
  );
}
