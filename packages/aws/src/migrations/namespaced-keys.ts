/**
 * To 0.9.0: everything lies in a namespace, and every bucket in a partition of its own.
 *
 * What had no namespace goes to the one called `default`. The count of entities with limits of
 * their own is not moved but computed again by the next migration, which finds every one of them
 * by the index keys it does not have: old counts were wrong after entities had been deleted.
 */

import { numberAt, textAt, valueAt } from "@zae-limiter/limiter/records/fields.ts";
import {
  ENTITY_CONFIG_PREFIX,
  entityConfigRegistryKey,
  inNamespace,
  resourceRegistryKey,
} from "@zae-limiter/limiter/records/keys.ts";
import { unprefixedVersionKey } from "@zae-limiter/limiter/records/version-record.ts";
import { type Item, keyOf, type Value } from "@zae-limiter/limiter/storage/item.ts";
import { ITEM_ABSENT, type Write } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Home } from "./known-namespaces.ts";
import type { Migration, Rule } from "./migration.ts";
import { asRead, isThere, partitionOf, removal } from "./old-keys.ts";
import { bucketPartitions } from "./sharded-buckets.ts";

const BURST_PATTERN = /^l_(.+)_bx$/;
const CONFIG_PATTERN = /^#CONFIG(?:#|$)/;
const INDEX_PARTITIONS = ["GSI1PK", "GSI2PK", "GSI3PK"];
const ANY_NAMESPACE = "any";
const RESOURCES = resourceRegistryKey(ANY_NAMESPACE).SK;
const COUNTS = entityConfigRegistryKey(ANY_NAMESPACE).SK;

const bursts: Rule = {
  name: "bursts of limits",
  concerns: (item, { namespaces }) =>
    CONFIG_PATTERN.test(item.SK) &&
    namespaces.homeOf(item.PK) !== undefined &&
    Object.keys(item).some((name) => BURST_PATTERN.test(name)),
  writes: (item) => {
    const names = Object.keys(item).filter((name) => BURST_PATTERN.test(name));
    const set: Record<string, Value> = {};
    for (const name of names) {
      const burst = numberAt(item, name) ?? 0;
      if (burst > 0) set[name.replace(BURST_PATTERN, "l_$1_cp")] = burst;
    }
    return [{ update: keyOf(item), change: { set, remove: names }, condition: asRead(item) }];
  },
};

const namespaceKeys: Rule = {
  name: "namespaces",
  concerns: (item, { namespaces }) =>
    item.SK !== unprefixedVersionKey().SK && namespaces.homeOf(item.PK)?.isOutside === true,
  writes: async (item, table) => {
    const home = table.namespaces.homeOf(item.PK) as Home;
    const remove = removal(item);
    if (item.SK === COUNTS) return [remove];
    if (item.SK === RESOURCES) return [...resourcesInto(home.namespaceId, item), remove];
    const moved = movedTo(home, item);
    // Another process has already moved it, and may have changed it since.
    if (await isThere(table.store, keyOf(moved))) return [remove];
    return [{ put: moved, condition: [ITEM_ABSENT] }, remove];
  },
};

export const toNamespacedKeys: Migration = {
  version: "0.9.0",
  description: "everything in a namespace, every bucket in a partition of its own",
  rules: [bursts, bucketPartitions, namespaceKeys],
  needsNamespace: true,
  atLast: [{ delete: unprefixedVersionKey() }],
};

function movedTo({ namespaceId, partition }: Home, item: Item): Item {
  const PK = `${namespaceId}/${partition.rest}`;
  const indexed: Record<string, Value> = {};
  for (const name of INDEX_PARTITIONS) {
    const value = textAt(item, name);
    if (value !== undefined) indexed[name] = `${namespaceId}/${partitionOf(value).rest}`;
  }
  const moved = { ...item, ...indexed, PK, ...inNamespace(namespaceId, PK) };
  if (!item.SK.startsWith(ENTITY_CONFIG_PREFIX)) return moved;
  const { GSI3PK, GSI3SK, ...uncounted } = moved as Item;
  return uncounted as Item;
}

function resourcesInto(namespaceId: string, item: Item): Write[] {
  const resources = valueAt(item, "resources");
  if (!(resources instanceof Set)) return [];
  const key = resourceRegistryKey(namespaceId);
  return [
    {
      update: key,
      change: {
        addToSet: { resources: [...(resources as ReadonlySet<string>)] },
        setIfAbsent: inNamespace(namespaceId, key.PK),
      },
    },
  ];
}
