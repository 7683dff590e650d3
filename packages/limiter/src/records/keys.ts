/**
 * The keys of every stored record, in one place. `namespaceId` is the opaque id that a namespace's
 * name leads to; records of the whole table live under the reserved namespace `_`.
 */

import { SHARDS_MAX } from "../core/bucket.ts";
import { RESERVED_NAMESPACE } from "../domain/names.ts";
import type { Key } from "../storage/item.ts";

export const META_SK = "#META";
export const STATE_SK = "#STATE";
export const CONFIG_SK = "#CONFIG";
export const ENTITY_CONFIG_PREFIX = "#CONFIG#";
/** Not below the prefix of an entity's own limits, which the Python library lists. */
export const CHILDREN_CONFIG_PREFIX = "#CHILDREN_CONFIG#";
export const AUDIT_PREFIX = "#AUDIT#";
export const PRICE_PREFIX = "#PRICE#";
export const WEBHOOK_PREFIX = "#WEBHOOK#";
export const NAMESPACE_PREFIX = "#NAMESPACE#";
export const NAMESPACE_ID_PREFIX = "#NSID#";
const ENTITY_PREFIX = "ENTITY#";
export const BUCKET_PREFIX = "BUCKET#";
export const USAGE_PREFIX = "#USAGE#";
export const ALERT_PREFIX = "#ALERT#";
/** In GSI2. */
export const USAGE_INDEX_PREFIX = "USAGE#";
/** Not below the prefix of snapshots, which the Python library lists. */
export const PERIOD_PREFIX = "#PERIOD#";
/** In GSI2. */
export const PERIOD_INDEX_PREFIX = "PERIOD#";

/** Returns the partition of an entity: its record, its limits, its usage. */
export function entityPartition(namespaceId: string, entityId: string): string {
  return `${namespaceId}/${ENTITY_PREFIX}${entityId}`;
}

/** Returns the namespace and the entity of an entity's partition; `undefined` for any other key. */
export function parseEntityPartition(
  partition: string,
): { readonly namespaceId: string; readonly entityId: string } | undefined {
  const slash = partition.indexOf("/");
  if (slash <= 0 || !partition.startsWith(ENTITY_PREFIX, slash + 1)) return undefined;
  const entityId = partition.slice(slash + 1 + ENTITY_PREFIX.length);
  return entityId === "" ? undefined : { namespaceId: partition.slice(0, slash), entityId };
}

/** Returns the namespace that a partition belongs to; no namespace id contains a slash. */
export function namespaceOf(partition: string): string {
  return partition.slice(0, Math.max(0, partition.indexOf("/")));
}

/** Returns the partition of what belongs to a whole namespace. */
export function systemPartition(namespaceId: string): string {
  return `${namespaceId}/SYSTEM#`;
}

export function resourcePartition(namespaceId: string, resource: string): string {
  return `${namespaceId}/RESOURCE#${resource}`;
}

/** Returns the partition of GSI1 with the children of an entity. */
export function childrenPartition(namespaceId: string, parentId: string): string {
  return `${namespaceId}/PARENT#${parentId}`;
}

/** Returns the partition of GSI3 with the entities that have limits of their own for a resource. */
export function entityConfigPartition(namespaceId: string, resource: string): string {
  return `${namespaceId}/ENTITY_CONFIG#${resource}`;
}

/** Returns the partition of GSI3 with the entities that store limits for their children. */
export function childrenConfigPartition(namespaceId: string, resource: string): string {
  return `${namespaceId}/CHILDREN_CONFIG#${resource}`;
}

export function auditPartition(namespaceId: string, subject: string): string {
  return `${namespaceId}/AUDIT#${subject}`;
}

export function entityKey(namespaceId: string, entityId: string): Key {
  return { PK: entityPartition(namespaceId, entityId), SK: META_SK };
}

export function entityConfigKey(namespaceId: string, entityId: string, resource: string): Key {
  return { PK: entityPartition(namespaceId, entityId), SK: ENTITY_CONFIG_PREFIX + resource };
}

/** Returns the key of the limits that an entity stores for the entities directly below it. */
export function childrenConfigKey(namespaceId: string, parentId: string, resource: string): Key {
  return { PK: entityPartition(namespaceId, parentId), SK: CHILDREN_CONFIG_PREFIX + resource };
}

export function resourceConfigKey(namespaceId: string, resource: string): Key {
  return { PK: resourcePartition(namespaceId, resource), SK: CONFIG_SK };
}

export function systemConfigKey(namespaceId: string): Key {
  return { PK: systemPartition(namespaceId), SK: CONFIG_SK };
}

/** Returns the set of resources that have limits. */
export function resourceRegistryKey(namespaceId: string): Key {
  return { PK: systemPartition(namespaceId), SK: "#RESOURCES" };
}

/** Returns the number of entities with limits of their own, per resource. */
export function entityConfigRegistryKey(namespaceId: string): Key {
  return { PK: systemPartition(namespaceId), SK: "#ENTITY_CONFIG_RESOURCES" };
}

/** Returns the number of entities with limits for their children, per resource. */
export function childrenConfigRegistryKey(namespaceId: string): Key {
  return { PK: systemPartition(namespaceId), SK: "#CHILDREN_CONFIG_RESOURCES" };
}

/** Returns the key of the record of declarative limits that were applied. */
export function provisionerKey(namespaceId: string): Key {
  return { PK: systemPartition(namespaceId), SK: "#PROVISIONER" };
}

export function bucketKey(
  namespaceId: string,
  entityId: string,
  resource: string,
  shard: number,
): Key {
  return { PK: `${namespaceId}/${BUCKET_PREFIX}${entityId}#${resource}#${shard}`, SK: STATE_SK };
}

export function auditKey(namespaceId: string, subject: string, eventId: string): Key {
  return { PK: auditPartition(namespaceId, subject), SK: AUDIT_PREFIX + eventId };
}

/** Returns the key of the mark of a deletion: of an entity, or of the whole namespace. */
export function deletionKey(namespaceId: string, entityId = ""): Key {
  return { PK: `${namespaceId}/DELETED#${entityId}`, SK: "#DELETED" };
}

/** Returns the partition of the prices of models. */
export function pricePartition(namespaceId: string): string {
  return `${namespaceId}/PRICES#`;
}

/** Returns the key of a price; `*` means all upstreams, and is the name of none. */
export function priceKey(namespaceId: string, model: string, upstream = "*"): Key {
  return { PK: pricePartition(namespaceId), SK: `${PRICE_PREFIX}${model}#${upstream}` };
}

/** Returns the partition of the alerts of an entity. Roles that may only acquire write there. */
export function alertPartition(namespaceId: string, entityId: string): string {
  return `${namespaceId}/ALERT#${entityId}`;
}

/** Returns the key of a webhook. */
export function webhookKey(namespaceId: string, name: string): Key {
  return { PK: `${namespaceId}/WEBHOOKS#`, SK: WEBHOOK_PREFIX + name };
}

/** Returns the key of a note; see `notes.ts`. */
export function noteKey(namespaceId: string, name: string): Key {
  return { PK: `${namespaceId}/NOTE#${name}`, SK: "#NOTE" };
}

export function versionKey(): Key {
  return { PK: systemPartition(RESERVED_NAMESPACE), SK: "#VERSION" };
}

/** Returns the key of the record that leads from the name of a namespace to its id. */
export function namespaceKey(name: string): Key {
  return { PK: systemPartition(RESERVED_NAMESPACE), SK: NAMESPACE_PREFIX + name };
}

/**
 * Returns the key of the record that leads from the id of a namespace to its name; it stays when
 * the name is taken away.
 */
export function namespaceIdKey(namespaceId: string): Key {
  return { PK: systemPartition(RESERVED_NAMESPACE), SK: NAMESPACE_ID_PREFIX + namespaceId };
}

/**
 * Returns the keys of GSI4, which leads from a namespace to everything in it; the sort key is the
 * partition by default.
 */
export function inNamespace(
  namespaceId: string,
  sort: string,
): { readonly GSI4PK: string; readonly GSI4SK: string } {
  return { GSI4PK: namespaceId, GSI4SK: sort };
}

/** A bucket with all its shards. */
export interface BucketName {
  readonly entityId: string;
  readonly resource: string;
}

/** The ids that were made last, by resource and entity; beyond a bound all are dropped. */
const bucketIds = new Map<string, Map<string, string>>();
const BUCKET_IDS_MAX = 20_000;
let bucketIdsCount = 0;

/**
 * Names a bucket within its namespace. The same name is the same text each time: a call reads
 * several maps by it, which would have to hash and compare a new text again and again.
 */
export function bucketId({ entityId, resource }: BucketName): string {
  const known = bucketIds.get(resource)?.get(entityId);
  return known ?? addBucketId(entityId, resource);
}

function addBucketId(entityId: string, resource: string): string {
  if (bucketIdsCount === BUCKET_IDS_MAX) {
    bucketIds.clear();
    bucketIdsCount = 0;
  }
  bucketIdsCount += 1;
  const id = `${entityId}#${resource}`;
  const ofResource = bucketIds.get(resource) ?? new Map<string, string>();
  bucketIds.set(resource, ofResource.set(entityId, id));
  return id;
}

/** The parts of the key of a bucket item: `{namespace}/BUCKET#{entity}#{resource}#{shard}`. */
export interface BucketPlace {
  readonly namespaceId: string;
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
}

const DIGIT_ZERO = 48;

/** Returns the shard number from `at` to the end, written without a sign or leading zeros. */
export function parseShard(partition: string, at: number): number | undefined {
  const tens = partition.charCodeAt(at) - DIGIT_ZERO;
  if (!(tens >= 0 && tens <= 9)) return undefined;
  if (at + 1 === partition.length) return tens;
  const ones = partition.charCodeAt(at + 1) - DIGIT_ZERO;
  const isTwoDigits = at + 2 === partition.length && tens > 0 && ones >= 0 && ones <= 9;
  const shard = 10 * tens + ones;
  return isTwoDigits && shard < SHARDS_MAX ? shard : undefined;
}

/** Reads a key; `undefined` when it is not that of a bucket: no id or resource contains a `#`. */
export function parseBucketKey(partition: string): BucketPlace | undefined {
  const slash = partition.indexOf("/");
  if (slash <= 0 || !partition.startsWith(BUCKET_PREFIX, slash + 1)) return undefined;
  const entityAt = slash + 1 + BUCKET_PREFIX.length;
  const resourceAt = partition.indexOf("#", entityAt) + 1;
  const shardAt = partition.lastIndexOf("#") + 1;
  const shard = parseShard(partition, shardAt);
  const entityId = partition.slice(entityAt, resourceAt - 1);
  const resource = partition.slice(resourceAt, shardAt - 1);
  const complete = resourceAt > 0 && shardAt > resourceAt && entityId !== "" && resource !== "";
  if (!complete || shard === undefined || resource.includes("#")) return undefined;
  return { namespaceId: partition.slice(0, slash), entityId, resource, shard };
}
