/** Opens a store of any kind without writing anything to it. */

import type { NamespaceRecords } from "../records/namespaces/namespaces.ts";
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

export async function openAsItIs(
  location: StoreLocation,
  options: DynamoOptions = {},
): Promise<StoreAsItIs> {
  checkOpenOptions(options, location);
  const shared = sharedOver(await openBackend(location, options), options);
  try {
    await refuseIncompatible(shared.backend);
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
