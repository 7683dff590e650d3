/**
 * To 0.11.0: what the Python library leaves behind is completed, and usage says its window.
 *
 * Tables of 0.9.0 and 0.10.0 work as they are, also while this runs, with clients of either
 * library. It removes what misleads readers: unused buckets and remains of deleted ones. It adds
 * limits that are in no index, and so in no list, to their index.
 */

import { CONFIG_VERSION } from "@zae-limiter/limiter/records/config/config-change.ts";
import { isCounted, registration } from "@zae-limiter/limiter/records/config/config-registry.ts";
import {
  CONFIG_SK,
  ENTITY_CONFIG_PREFIX,
  entityConfigPartition,
  entityConfigRegistryKey,
  inNamespace,
  resourceConfigKey,
  resourceRegistryKey,
  STATE_SK,
  systemConfigKey,
} from "@zae-limiter/limiter/records/keys.ts";
import { type Item, keyOf, numberAt, textAt } from "@zae-limiter/limiter/storage/item.ts";
import type { Write } from "@zae-limiter/limiter/storage/item-store.ts";
import { asRead, removal } from "./as-read.ts";
import { entityOf, type Home } from "./known-namespaces.ts";
import type { Migration, MigrationTable, Rule } from "./migration.ts";
import { usageWindows, usageWithoutWindows } from "./usage-windows.ts";

const RETENTION = "audit_retention_days";

/** The retention of audit events was written under the name of a namespace instead of its id. */
const lostRetention: Rule = {
  name: "audit retention",
  concerns: (item, { namespaces }) => {
    const home = namespaces.homeOf(item.PK);
    return home?.isMisplaced === true && home.partition === "SYSTEM#" && item.SK === CONFIG_SK;
  },
  writes: (item, table) => {
    const { namespaceId } = homeIn(table, item);
    const key = systemConfigKey(namespaceId);
    const remove = removal(item);
    const days = numberAt(item, RETENTION);
    if (days === undefined) return [remove];
    const setIfAbsent = { [RETENTION]: days, ...inNamespace(namespaceId, key.PK) };
    return [{ update: key, change: { setIfAbsent, add: { [CONFIG_VERSION]: 1 } } }, remove];
  },
};

/** Before 0.9.0, buckets lay with their entity. No client reads or writes them there any more. */
const unusedBuckets: Rule = {
  name: "unused buckets",
  concerns: (item, table) =>
    isInside(item, table) &&
    item.SK.startsWith("#BUCKET#") &&
    entityOf(homeIn(table, item)) !== undefined,
  writes: (item) => [removal(item)],
};

/** Attributes that every bucket has, and the remains of a deleted one lack. */
const STATE = ["entity_id", "resource", "rf"];

/** Refunds to a deleted bucket have made items with a balance and nothing else. */
const bucketStubs: Rule = {
  name: "remains of buckets",
  concerns: (item, table) =>
    isInside(item, table) &&
    item.SK === STATE_SK &&
    !STATE.every((name) => Object.hasOwn(item, name)),
  writes: (item) => [removal(item)],
};

/** Declarative limits of entities were in no index and not counted. */
const entityLimits: Rule = {
  name: "limits of entities",
  concerns: (item, table) =>
    isInside(item, table) &&
    item.SK.startsWith(ENTITY_CONFIG_PREFIX) &&
    entityOf(homeIn(table, item)) !== undefined &&
    !isCounted(item),
  writes: (item, table) => {
    const home = homeIn(table, item);
    const { namespaceId } = home;
    const entityId = entityOf(home) as string;
    const resource = item.SK.slice(ENTITY_CONFIG_PREFIX.length);
    return [
      {
        update: keyOf(item),
        change: {
          set: {
            entity_id: entityId,
            resource,
            GSI3PK: entityConfigPartition(namespaceId, resource),
            GSI3SK: entityId,
            ...inNamespace(namespaceId, item.PK),
          },
          // A concurrent change of these limits must read again, so that it does not count twice.
          add: { [CONFIG_VERSION]: 1 },
        },
        condition: asRead(item),
      },
      registration(entityConfigRegistryKey(namespaceId), namespaceId, resource),
    ];
  },
};

/** Without both keys of GSI4, a purge does not find the item. */
const indexKeys: Rule = {
  name: "index keys",
  concerns: (item, table) =>
    isInside(item, table) &&
    (textAt(item, "GSI4PK") === undefined || textAt(item, "GSI4SK") === undefined),
  writes: (item, table) => {
    const { namespaceId, partition } = homeIn(table, item);
    const sort = item.SK === STATE_SK ? partition : item.PK;
    return [
      {
        update: keyOf(item),
        change: { set: inNamespace(namespaceId, sort) },
        condition: asRead(item),
      },
      ...listedResource(namespaceId, item),
    ];
  },
};

export const toCompleteRecords: Migration = {
  version: "0.11.0",
  description: "complete index keys and lists, no remains of old buckets, usage by type of window",
  rules: [lostRetention, unusedBuckets, bucketStubs, entityLimits, indexKeys, usageWindows],
  // The other changes add attributes that readers of 0.10.0 ignore.
  rollback: [usageWithoutWindows],
};

function homeIn({ namespaces }: MigrationTable, item: Item): Home {
  return namespaces.homeOf(item.PK) as Home;
}

function isInside(item: Item, { namespaces }: MigrationTable): boolean {
  return namespaces.homeOf(item.PK)?.isMisplaced === false;
}

/** Returns the entry of a resource in the list, which declarative limits lacked. */
function listedResource(namespaceId: string, item: Item): Write[] {
  const resource = textAt(item, "resource");
  if (resource === undefined || item.SK !== CONFIG_SK) return [];
  if (item.PK !== resourceConfigKey(namespaceId, resource).PK) return [];
  const key = resourceRegistryKey(namespaceId);
  const setIfAbsent = inNamespace(namespaceId, key.PK);
  return [{ update: key, change: { addToSet: { resources: [resource] }, setIfAbsent } }];
}
