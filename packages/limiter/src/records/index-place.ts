/**
 * The place of an item in the indexes, derived from the item's own key.
 *
 * IAM restricts the leading key of a write and does not check `GSI1PK` to `GSI4PK`, so a tenant
 * can put an item under its own key and give it the index keys of another tenant. The key is the
 * only part of an item that a policy protects, and every index key of ours follows from it.
 */

import { type Item, type Key, textAt } from "../storage/item.ts";
import type { Query } from "../storage/item-store.ts";
import { type IndexName, indexNamed } from "../storage/table.ts";
import {
  BUCKET_PREFIX,
  CHILDREN_CONFIG_PREFIX,
  childrenConfigPartition,
  childrenPartition,
  ENTITY_CONFIG_PREFIX,
  entityConfigPartition,
  entityPartition,
  META_SK,
  namespaceOf,
  PERIOD_INDEX_PREFIX,
  PERIOD_PREFIX,
  parseBucketKey,
  parseEntityPartition,
  resourcePartition,
  STATE_SK,
  USAGE_INDEX_PREFIX,
  USAGE_PREFIX,
} from "./keys.ts";

/** The keys that an index shows an item under. */
type IndexPlace = readonly [partition: string, sort: string] | undefined;

/** Returns whether the item's own key puts it where the index shows it. */
export function standsWhereShown(query: Query & { index: IndexName }, item: Item): boolean {
  const { index, partition } = query;
  if (index === "GSI4") return namespaceOf(item.PK) === partition;
  const sort = textAt(item, indexNamed(index).sort) ?? "";
  if (index === "GSI1") return isChild(item, partition, sort);
  const [ownPartition, ownSort] =
    (index === "GSI2"
      ? (bucketOfResource(item) ?? usageOfResource(item) ?? periodOfResource(item))
      : (bucketOfEntity(item) ?? configOfEntity(item))) ?? [];
  return ownPartition === partition && ownSort === sort;
}

/**
 * Returns whether a place is that of a child: its key has the namespace and the child, not the
 * parent.
 */
function isChild({ PK, SK }: Key, partition: string, sort: string): boolean {
  const entity = SK === META_SK ? parseEntityPartition(PK) : undefined;
  return (
    entity !== undefined &&
    sort === `CHILD#${entity.entityId}` &&
    partition.startsWith(childrenPartition(entity.namespaceId, ""))
  );
}

function bucketOfResource({ PK, SK }: Key): IndexPlace {
  const bucket = SK === STATE_SK ? parseBucketKey(PK) : undefined;
  if (bucket === undefined) return undefined;
  const { namespaceId, entityId, resource, shard } = bucket;
  return [resourcePartition(namespaceId, resource), `${BUCKET_PREFIX}${entityId}#${shard}`];
}

function bucketOfEntity({ PK, SK }: Key): IndexPlace {
  const bucket = SK === STATE_SK ? parseBucketKey(PK) : undefined;
  if (bucket === undefined) return undefined;
  const { namespaceId, entityId, resource, shard } = bucket;
  return [entityPartition(namespaceId, entityId), `${BUCKET_PREFIX}${resource}#${shard}`];
}

/** Reads `#USAGE#{resource}#{window}#{start}`; the Python library writes no window. */
function usageOfResource({ PK, SK }: Key): IndexPlace {
  const entity = SK.startsWith(USAGE_PREFIX) ? parseEntityPartition(PK) : undefined;
  if (entity === undefined) return undefined;
  const { namespaceId, entityId } = entity;
  const [resource = "", ...window] = SK.slice(USAGE_PREFIX.length).split("#");
  const sort = `${USAGE_INDEX_PREFIX}${window.join("#")}#${entityId}`;
  return [resourcePartition(namespaceId, resource), sort];
}

/** Reads `#PERIOD#{end}#{resource}#{limit}`. */
function periodOfResource({ PK, SK }: Key): IndexPlace {
  const entity = SK.startsWith(PERIOD_PREFIX) ? parseEntityPartition(PK) : undefined;
  if (entity === undefined) return undefined;
  const { namespaceId, entityId } = entity;
  const [end, resource = "", limitName] = SK.slice(PERIOD_PREFIX.length).split("#");
  const sort = `${PERIOD_INDEX_PREFIX}${end}#${limitName}#${entityId}`;
  return [resourcePartition(namespaceId, resource), sort];
}

/** Reads the limits of an entity, and those that it stores for its children. */
function configOfEntity({ PK, SK }: Key): IndexPlace {
  const isOwn = SK.startsWith(ENTITY_CONFIG_PREFIX);
  const prefix = isOwn ? ENTITY_CONFIG_PREFIX : CHILDREN_CONFIG_PREFIX;
  const entity = SK.startsWith(prefix) ? parseEntityPartition(PK) : undefined;
  if (entity === undefined) return undefined;
  const partitionOf = isOwn ? entityConfigPartition : childrenConfigPartition;
  return [partitionOf(entity.namespaceId, SK.slice(prefix.length)), entity.entityId];
}
