/** The snapshots of usage in the items of an embedded store. */

import type { Clock } from "../../base/time.ts";
import type { SnapshotItems } from "../../buckets/embedded/usage-book.ts";
import type { MemoryItemStore } from "../../storage/memory/item-store.ts";
import type { Housekeeping } from "../../storage/sqlite/housekeeping.ts";
import type { ItemRows } from "../../storage/sqlite/item-rows.ts";

export function memorySnapshots(store: MemoryItemStore): SnapshotItems {
  return {
    read: (key) => store.readNow(key),
    update: (key, change) => store.updateNow(key, change),
    remove: (key) => store.deleteNow(key),
    count: ({ partition, prefix }) =>
      store.countNow({ index: "GSI2", partition, sort: { beginsWith: prefix } }),
  };
}

/** Buckets are not items, so snapshots are all that a busy limiter writes: they tidy up, too. */
export function sqliteSnapshots(
  rows: ItemRows,
  housekeeping: Housekeeping,
  clock: Clock,
): SnapshotItems {
  return {
    read: (key) => rows.read(key)?.item,
    update: (update, change) => {
      const { key, before, after } = rows.plan({ update, change });
      rows.replace(key, before, after, clock());
      housekeeping.tidy(clock(), 1);
    },
    remove: (key) => {
      rows.replace(key, rows.read(key), undefined, clock());
    },
    count: ({ partition, prefix }) => rows.countInGsi2(partition, prefix),
  };
}
