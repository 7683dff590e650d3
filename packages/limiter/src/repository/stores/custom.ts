/** A store of the caller's, which no address names: `Repository.over`. */

import { systemRandom } from "../../base/random.ts";
import { NO_TRAITS } from "../../buckets/distributed/table-traits.ts";
import { listenTo } from "../../storage/call-listeners.ts";
import type { ItemStore } from "../../storage/item-store.ts";
import { type ItemTable, isItemTable } from "../../storage/item-table.ts";
import { type Backend, clockOf, type StoreTraits } from "../backend.ts";
import type { OpenOptions } from "../options.ts";
import { isOpenable, OPENS, type OpenableStore } from "./opened-store.ts";

/** Other processes may use the store too, whatever it is. */
const TRAITS: StoreTraits = {
  isShared: true,
  createsItself: true,
  writesPerPartition: NO_TRAITS.writesPerPartition,
};

/** Wraps an open store. Tests with virtual time pass the buckets: they cannot await an import. */
export async function customBackend(
  name: string,
  store: ItemStore | ItemTable | OpenableStore,
  options: OpenOptions,
  openBuckets?: Backend["openBuckets"],
): Promise<Backend> {
  if (isOpenable(store)) return store[OPENS](options);
  const database = { system: name };
  if (isItemTable(store)) {
    const { openItemTable } = await import("./open-item-table.ts");
    return openItemTable({ name, database, traits: TRAITS }, store, options);
  }
  if (options.onCall !== undefined) listenTo(store, options.onCall);
  return {
    name,
    database,
    traits: TRAITS,
    store,
    scannable: undefined,
    changes: { by: "feed", store },
    clock: clockOf(options),
    random: systemRandom,
    countsUsage: true,
    openBuckets: openBuckets ?? (await distributedBuckets()),
  };
}

/** Loads the buckets that are items of the store. */
async function distributedBuckets(): Promise<Backend["openBuckets"]> {
  const { DistributedBucketStore } = await import(
    "../../buckets/distributed/distributed-bucket-store.ts"
  );
  return (context, options) => new DistributedBucketStore(context, { ...options, ...NO_TRAITS });
}
