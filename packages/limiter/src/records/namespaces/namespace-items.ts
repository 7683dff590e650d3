/** Finds everything that is stored under a namespace's id. */

import { type Item, type Key, valueAt } from "../../storage/item.ts";
import {
  entityPartition,
  provisionerKey,
  resourcePartition,
  resourceRegistryKey,
  systemPartition,
} from "../keys.ts";
import { queryRecords } from "../query-records.ts";
import type { RecordContext } from "../record-context.ts";

/**
 * Yields the keys of all items of a namespace, buckets included, each once. GSI4 leads to those
 * that have its keys; the others are found through the registries.
 */
export async function* keysInNamespace(context: RecordContext): AsyncGenerator<Key> {
  const { namespaceId } = context;
  yield* queryRecords(context, { index: "GSI4", partition: namespaceId });
  const unindexed = await unindexedPartitions(context);
  for (const partition of [...unindexed, systemPartition(namespaceId)]) {
    for await (const item of queryRecords(context, { partition })) {
      if (valueAt(item, "GSI4PK") !== namespaceId) yield item;
    }
  }
}

/**
 * Returns the partitions where writers have left out the keys of GSI4: the declarative limits of
 * the Python library, their configs and their own record.
 */
export async function unindexedPartitions(context: RecordContext): Promise<string[]> {
  const { namespaceId, store } = context;
  const [registry, provisioner] = await store.getMany(
    [resourceRegistryKey(namespaceId), provisionerKey(namespaceId)],
    { consistent: true },
  );
  const resources = new Set([
    ...textsAt(registry, "resources"),
    ...textsAt(provisioner, "managed_resources"),
  ]);
  return [
    ...[...resources].map((resource) => resourcePartition(namespaceId, resource)),
    ...textsAt(provisioner, "managed_entities").map((id) => entityPartition(namespaceId, id)),
  ];
}

/** Returns the texts in a set or a list, or the names in a map. */
function textsAt(item: Item | undefined, name: string): string[] {
  const value = valueAt(item, name);
  if (value instanceof Set) return [...(value as ReadonlySet<string>)];
  if (Array.isArray(value)) return value.filter((part) => typeof part === "string");
  return typeof value === "object" && value !== null ? Object.keys(value) : [];
}
