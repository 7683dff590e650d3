/**
 * Buckets move out of the partition of their entity into one of their own, as shard 0 of 1.
 *
 * The balance moves along, so that no bucket is filled by the migration. The total consumed starts
 * at 0 again: usage aggregation counts the total of a new item as new consumption, and has counted
 * the old total already.
 */

import {
  encodeBucket,
  type StoredBucket,
  WRITES_RATE,
} from "@zae-limiter/limiter/records/bucket-item.ts";
import { flagAt, numberAt, textAt } from "@zae-limiter/limiter/records/fields.ts";
import { bucketKey, META_SK } from "@zae-limiter/limiter/records/keys.ts";
import { listedBucket } from "@zae-limiter/limiter/records/listed-bucket.ts";
import type { Item, Value } from "@zae-limiter/limiter/storage/item.ts";
import { ITEM_ABSENT } from "@zae-limiter/limiter/storage/item-store.ts";
import type { MigrationTable, Rule } from "./migration.ts";
import { isThere, oldBucket, removal } from "./old-keys.ts";

const TTL_SECONDS_MIN = 3600;
/** Old keys have no namespace of their own; only the other parts of this key are used. */
const ANY_NAMESPACE = "any";
const BURST_PATTERN = /^b_(.+)_bx$/;

export const bucketPartitions: Rule = {
  name: "buckets",
  concerns: (item, { namespaces }) =>
    oldBucket(item) !== undefined && namespaces.homeOf(item.PK) !== undefined,
  writes: async (item, table) => {
    const remove = removal(item);
    const bucket = await bucketIn(item, table);
    if (bucket === undefined) return [remove];
    const namespaceId = table.namespaces.homeOf(item.PK)?.namespaceId as string;
    const key = bucketKey(namespaceId, bucket.entityId, bucket.resource, 0);
    // A bucket that is in use is current; the old item is outdated since that one was created.
    if (await isThere(table.store, key)) return [remove];
    return [{ put: encodeBucket(namespaceId, bucket), condition: [ITEM_ABSENT] }, remove];
  },
};

/** Returns `undefined` when there is nothing to keep: an incomplete or expired bucket. */
async function bucketIn(item: Item, table: MigrationTable): Promise<StoredBucket | undefined> {
  const nowSeconds = Math.floor(table.clock() / 1000);
  const { entityId = "", resource = "" } = oldBucket(item) ?? {};
  const { PK } = bucketKey(ANY_NAMESPACE, entityId, resource, 0);
  const said = { ...withBursts(item), PK, entity_id: entityId, resource, shard_count: 1 };
  const bucket = listedBucket(said);
  if (bucket === undefined || bucket.limits.size === 0) return undefined;
  if (bucket.ttl !== undefined && bucket.ttl <= nowSeconds) return undefined;
  const limits = [...bucket.limits].map(
    ([name, limit]) => [name, { ...limit, totalConsumedMilli: 0 }] as const,
  );
  return {
    ...bucket,
    ...(await parentOf(item, table)),
    shard: 0,
    shardCount: 1,
    ttl: bucket.ttl === undefined ? undefined : Math.max(bucket.ttl, nowSeconds + TTL_SECONDS_MIN),
    limits: new Map(limits),
    writes: {
      tokensMilli: WRITES_RATE.capacityMilli,
      rate: WRITES_RATE,
      totalConsumedMilli: 0,
      remainder: 0,
    },
  };
}

/** Returns the parent link of the bucket; older buckets have none, so the entity record has it. */
async function parentOf(
  item: Item,
  { store, namespaces }: MigrationTable,
): Promise<Pick<StoredBucket, "cascade" | "parentId">> {
  const said = (source: Item) => ({
    cascade: flagAt(source, "cascade"),
    parentId: textAt(source, "parent_id"),
  });
  if (item.cascade !== undefined) return said(item);
  const home = namespaces.homeOf(item.PK);
  // The record may have moved before the bucket.
  const places = new Set([item.PK, `${home?.namespaceId}/${home?.partition.rest}`]);
  const keys = [...places].map((PK) => ({ PK, SK: META_SK }));
  const record = (await store.getMany(keys, { consistent: true })).find(
    (found) => found !== undefined,
  );
  return record === undefined ? { cascade: false, parentId: undefined } : said(record);
}

/** What was called burst is the most that the bucket can hold. */
function withBursts(item: Item): Item {
  const capacities: Record<string, Value> = {};
  for (const attribute of Object.keys(item)) {
    const name = BURST_PATTERN.exec(attribute)?.[1];
    const burst = numberAt(item, attribute) ?? 0;
    if (name !== undefined && burst > 0) capacities[`b_${name}_cp`] = burst;
  }
  return { ...item, ...capacities };
}
