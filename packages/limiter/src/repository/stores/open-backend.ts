/** Opens the store at a location. */

import type { Backend } from "../backend.ts";
import type { DynamoOptions } from "../options.ts";
import { memory } from "./memory.ts";
import { openMemory } from "./open-memory.ts";
import type { StoreKind, StoreLocation } from "./store-kind.ts";
import { kindOf } from "./stores.ts";

/**
 * Kinds that are loaded with the library, so that opening one awaits no module: a module cannot be
 * loaded while virtual time is stopped. All others are loaded when a store is opened.
 */
const LOADED: ReadonlyMap<string, StoreKind["open"]> = new Map([[memory.name, openMemory]]);

/** Opens the store at a location. Writes nothing. */
export function openBackend(location: StoreLocation, options: DynamoOptions): Promise<Backend> {
  const kind = kindOf(location);
  const open = LOADED.get(kind.name) ?? kind.open;
  return open(location, options);
}
