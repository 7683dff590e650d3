/** Deletes all that belongs to an entity: limits, buckets, usage, records of operations. */

import { type Item, type Key, textAt } from "../../storage/item.ts";
import { changeConfig, unchanged } from "../config/config-change.ts";
import { deregistration, isCounted } from "../config/config-registry.ts";
import type { ConfigResolver } from "../config/config-resolver.ts";
import { slotNames } from "../config/config-slots.ts";
import { deleteAll } from "../delete-all.ts";
import {
  alertPartition,
  CHILDREN_CONFIG_PREFIX,
  childrenConfigRegistryKey,
  ENTITY_CONFIG_PREFIX,
  entityConfigRegistryKey,
  entityPartition,
  META_SK,
} from "../keys.ts";
import { operationsOf } from "../operation-record.ts";
import { queryRecords } from "../query-records.ts";
import type { RecordContext } from "../record-context.ts";
import { entityMark, unlessMarkedLater } from "./deletion-mark.ts";
import type { EntityBuckets } from "./entities.ts";

/** Leaves room in one transaction for the registry and the system config. */
const CONFIGS_PER_TRANSACTION = 50;

/** Limits that an entity stores: its own, or those of its children. */
interface StoredConfigs {
  readonly prefix: string;
  readonly registryKey: Key;
  readonly slotOf: (id: string, resource: string) => string;
}

/** Deletes an entity's limits, and those that it stores for its children; returns how many. */
export async function deleteConfigs(
  context: RecordContext,
  resolver: ConfigResolver,
  id: string,
): Promise<number> {
  const { namespaceId } = context;
  const own = await deleteStored(context, resolver, id, {
    prefix: ENTITY_CONFIG_PREFIX,
    registryKey: entityConfigRegistryKey(namespaceId),
    slotOf: slotNames.entity,
  });
  const ofChildren = await deleteStored(context, resolver, id, {
    prefix: CHILDREN_CONFIG_PREFIX,
    registryKey: childrenConfigRegistryKey(namespaceId),
    slotOf: slotNames.children,
  });
  return own + ofChildren;
}

/** Deletes limits in transactions with the registry that counts them; returns how many. */
async function deleteStored(
  context: RecordContext,
  resolver: ConfigResolver,
  id: string,
  { prefix, registryKey, slotOf }: StoredConfigs,
): Promise<number> {
  const { store, namespaceId } = context;
  const partition = entityPartition(namespaceId, id);
  const keys: Key[] = [];
  const sort = { beginsWith: prefix };
  for await (const item of store.query({ partition, sort, consistent: true })) keys.push(item);
  let deleted = 0;
  for (let start = 0; start < keys.length; start += CONFIGS_PER_TRANSACTION) {
    const some = keys
      .slice(start, start + CONFIGS_PER_TRANSACTION)
      .map(({ PK, SK }) => ({ PK, SK }));
    let count = 0;
    const version = await changeConfig(context, [...some, registryKey], ({ items }) => {
      const configs = items.slice(0, -1).filter((item) => item !== undefined);
      count = configs.length;
      if (count === 0) return undefined;
      const resources = configs.filter(isCounted).map((item) => resourceOfConfig(item, prefix));
      const unregister = deregistration(registryKey, items.at(-1), resources);
      return {
        writes: [
          ...configs.map((item) => ({
            delete: { PK: item.PK, SK: item.SK },
            condition: unchanged(item),
          })),
          ...(unregister === undefined ? [] : [unregister]),
        ],
      };
    });
    deleted += count;
    resolver.changed(
      version,
      some.map(({ SK }) => slotOf(id, SK.slice(prefix.length))),
    );
  }
  return deleted;
}

/** Returns the resource of an item, from its key where another writer left the attribute out. */
function resourceOfConfig(item: Item, prefix: string): string {
  return textAt(item, "resource") ?? item.SK.slice(prefix.length);
}

/**
 * Deletes buckets, and leaves a mark before usage is deleted: changes of these buckets that the
 * stream still delivers are not counted. A bucket that is created later has a later base time, and
 * is counted.
 */
export async function deleteBuckets(
  { store, namespaceId, clock }: RecordContext,
  buckets: EntityBuckets,
  id: string,
): Promise<number> {
  const startedAtMs = clock();
  const { count, lastBaseMs } = await buckets.deleteEntity(id);
  const untilMs = Math.max(startedAtMs, lastBaseMs);
  const mark = entityMark(namespaceId, id, untilMs, clock());
  await store.put(mark, unlessMarkedLater(untilMs));
  return count;
}

/** Deletes usage, alerts and records of operations, page by page; returns how many there were. */
export async function deleteLeftovers(context: RecordContext, id: string): Promise<number> {
  let deleted = 0;
  await deleteAll(context.store, leftovers(context, id), (count) => {
    deleted += count;
  });
  return deleted;
}

async function* leftovers(context: RecordContext, id: string): AsyncGenerator<Key> {
  const { store, namespaceId } = context;
  const query = { partition: entityPartition(namespaceId, id), consistent: true };
  for await (const item of store.query(query)) {
    // Limits that were set meanwhile are counted, and go only together with their count.
    const isConfig = [ENTITY_CONFIG_PREFIX, CHILDREN_CONFIG_PREFIX].some((prefix) =>
      item.SK.startsWith(prefix),
    );
    if (item.SK !== META_SK && !isConfig) yield item;
  }
  yield* store.query({ partition: alertPartition(namespaceId, id), consistent: true });
  const sort = { beginsWith: operationsOf(id) };
  yield* queryRecords(context, { index: "GSI4", partition: namespaceId, sort });
}
