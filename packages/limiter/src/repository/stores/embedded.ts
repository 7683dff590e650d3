/** The parts of stores whose buckets are changed in one step of this process. */

import {
  type CountUsage,
  type SnapshotItems,
  type StepEvents,
  usageBook,
} from "../../buckets/embedded/usage-book.ts";
import { linkInRecord } from "../../buckets/leg.ts";
import { lifeKeys, wasDeleted } from "../../records/entities/deletion-mark.ts";
import { entityKey, namespaceIdKey } from "../../records/keys.ts";
import { refuseInactive } from "../../records/namespaces/namespace-state.ts";
import type { Item, Key } from "../../storage/item.ts";
import type { ItemStore } from "../../storage/item-store.ts";
import type { AdapterOptions } from "../backend.ts";
import type { OpenOptions } from "../options.ts";
import type { UsageOptions } from "../usage-options.ts";

/** Counts usage in snapshots, or nothing where none is kept. */
export function usageCounter(
  items: SnapshotItems,
  usage: OpenOptions["usage"],
  defaults: Required<UsageOptions>,
  events?: StepEvents,
): CountUsage {
  return usage === false ? () => undefined : usageBook(items, { ...defaults, ...usage }, events);
}

/**
 * Returns how buckets read the records of their entity within the step of the caller. `along` are
 * keys that are asked for next.
 */
export function recordsIn(
  read: (key: Key, along: readonly Key[]) => Item | undefined,
  namespaceId: string,
) {
  const recordKeys = (entityId: string): readonly [Key, Key] => [
    namespaceIdKey(namespaceId),
    entityKey(namespaceId, entityId),
  ];
  return {
    /** Returns the keys of what `recordedLink` reads. */
    recordKeys,
    /**
     * Returns the parent of an entity. A bucket is created only after this, so a namespace that was
     * deleted is refused here: nothing would ever remove its bucket.
     */
    recordedLink: (entityId: string) => {
      const [namespace, entity] = recordKeys(entityId);
      refuseInactive(namespaceId, read(namespace, [entity]));
      return linkInRecord(read(entity, []));
    },
    /** Returns whether an entity or its namespace was deleted. */
    wasDeleted: (entityId: string) => {
      const [mark, namespace] = lifeKeys(namespaceId, entityId);
      return wasDeleted(read(mark, [namespace]), read(namespace, []));
    },
  };
}

/** Returns the parts of an open store that counts usage itself, whichever kind it is. */
export function countingParts<Store extends ItemStore>(
  store: Store,
  { clock, random }: AdapterOptions,
  { usage }: OpenOptions,
) {
  return {
    store,
    changes: { by: "feed", store },
    clock,
    random,
    countsUsage: usage !== false,
  } as const;
}
