/**
 * The keys of usage contain the type of the window. Without it, the first hour of a day and the day
 * itself shared an item, and each counted what belonged to the other.
 *
 * Counts that were added up in one item cannot be separated: the item moves under the window type
 * that it has.
 */

import { WINDOW_TYPES, type WindowType } from "@zae-limiter/limiter/core/windows.ts";
import {
  inNamespace,
  resourcePartition,
  USAGE_INDEX_PREFIX,
  USAGE_PREFIX,
} from "@zae-limiter/limiter/records/keys.ts";
import { usageKey } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { type Item, type Key, textAt, valueAt } from "@zae-limiter/limiter/storage/item.ts";
import { ITEM_ABSENT, ITEM_EXISTS } from "@zae-limiter/limiter/storage/item-store.ts";
import { removal } from "./as-read.ts";
import { entityOf } from "./known-namespaces.ts";
import type { MigrationTable, Rule } from "./migration.ts";

/** The key of a snapshot of the Python library, without the type of its window. */
const UNWINDOWED_PATTERN = /^#USAGE#([^#]+)#([^#]+)$/;
const WINDOWED_PATTERN = /^#USAGE#([^#]+)#([^#]+)#([^#]+)$/;

/** A snapshot in one of the two forms. */
interface Snapshot {
  readonly namespaceId: string;
  readonly entityId: string;
  readonly resource: string;
  readonly window: WindowType;
  readonly start: string;
}

export const usageWindows: Rule = {
  name: "usage keys",
  concerns: (item, table) => unwindowedIn(item, table) !== undefined,
  writes: async (item, table) => {
    const snapshot = unwindowedIn(item, table) as Snapshot;
    const { entityId, window, start } = snapshot;
    const key = usageKey(snapshot, window, Date.parse(start));
    if (await isThere(table, key)) {
      const add = counters(item);
      return [{ update: key, change: { add }, condition: [ITEM_EXISTS] }, removal(item)];
    }
    const put = movedTo(key, `${USAGE_INDEX_PREFIX}${window}#${start}#${entityId}`, item, snapshot);
    return [{ put, condition: [ITEM_ABSENT] }, removal(item)];
  },
};

/** The way back. Of two that would share an item again, the second stays: readers find both. */
export const usageWithoutWindows: Rule = {
  name: "usage keys",
  concerns: (item, table) => windowedIn(item, table) !== undefined,
  writes: async (item, table) => {
    const snapshot = windowedIn(item, table) as Snapshot;
    const { entityId, resource, start } = snapshot;
    const key = { PK: item.PK, SK: `${USAGE_PREFIX}${resource}#${start}` };
    if (await isThere(table, key)) return [];
    const put = movedTo(key, `${USAGE_INDEX_PREFIX}${start}#${entityId}`, item, snapshot);
    return [{ put, condition: [ITEM_ABSENT] }, removal(item)];
  },
};

function movedTo(key: Key, sort: string, item: Item, { namespaceId, resource }: Snapshot): Item {
  return {
    ...item,
    ...key,
    GSI2PK: resourcePartition(namespaceId, resource),
    GSI2SK: sort,
    ...inNamespace(namespaceId, key.PK),
  };
}

function unwindowedIn(item: Item, table: MigrationTable): Snapshot | undefined {
  return snapshotIn(item, UNWINDOWED_PATTERN.exec(item.SK)?.[1], table);
}

function windowedIn(item: Item, table: MigrationTable): Snapshot | undefined {
  return snapshotIn(item, WINDOWED_PATTERN.exec(item.SK)?.[1], table);
}

/** Returns `undefined` for an item that is not a snapshot, or whose window is unknown. */
function snapshotIn(
  item: Item,
  resource: string | undefined,
  { namespaces }: MigrationTable,
): Snapshot | undefined {
  const home = namespaces.homeOf(item.PK);
  const entityId = home?.isMisplaced === false ? entityOf(home) : undefined;
  const window = WINDOW_TYPES.find((type) => type === textAt(item, "window"));
  const start = textAt(item, "window_start");
  if (home === undefined || entityId === undefined || resource === undefined) return undefined;
  if (window === undefined || start === undefined || !item.SK.endsWith(`#${start}`)) {
    return undefined;
  }
  if (Number.isNaN(Date.parse(start))) return undefined;
  return { namespaceId: home.namespaceId, entityId, resource, window, start };
}

async function isThere({ store }: MigrationTable, key: Key): Promise<boolean> {
  return (await store.get(key, { consistent: true })) !== undefined;
}

/** Returns all counters of a snapshot, events included. */
function counters(item: Item): Record<string, number | bigint> {
  const counted: Record<string, number | bigint> = {};
  for (const name of Object.keys(item)) {
    const value = valueAt(item, name);
    if (name === "ttl" || (typeof value !== "number" && typeof value !== "bigint")) continue;
    counted[name] = value;
  }
  return counted;
}
