/** Opens a store of any kind without writing anything to it, unless it is to be prepared. */

import type { NamespaceRecords } from "../records/namespaces/namespaces.ts";
import { newVersionItem } from "../records/version-record.ts";
import { ITEM_ABSENT } from "../storage/item-store.ts";
import type { DynamoOptions } from "./options.ts";
import { type Repository, repositoryOf } from "./repository.ts";
import { activeNamespace, closeShared, refuseIncompatible, sharedOver } from "./shared-store.ts";
import { openBackend } from "./stores/open-backend.ts";
import { checkOpenOptions, type StoreLocation } from "./stores/stores.ts";

/** An open store, and its namespaces if there are any. */
export interface StoreAsItIs {
  readonly namespaces: NamespaceRecords;
  /** Returns the repository of a namespace; it ends with this store. */
  enter(name: string): Promise<Repository>;
  close(): Promise<void>;
}

/**
 * Opens a store. `prepares`: a new store that creates itself gets its version record, and no
 * namespace.
 */
export async function openAsItIs(
  location: StoreLocation,
  options: DynamoOptions = {},
  prepares = false,
): Promise<StoreAsItIs> {
  checkOpenOptions(options, location);
  const shared = sharedOver(await openBackend(location, options), options);
  const { store, clock, traits } = shared.backend;
  try {
    const version = await refuseIncompatible(shared.backend);
    if (prepares && traits.createsItself && version === undefined) {
      await store.put(newVersionItem(clock()), [ITEM_ABSENT]);
    }
  } catch (error) {
    await closeShared(shared);
    throw error;
  }
  return {
    namespaces: shared.namespaces,
    enter: async (name) =>
      repositoryOf({ shared, namespace: await activeNamespace(shared, name) }, true),
    close: () => closeShared(shared),
  };
}
