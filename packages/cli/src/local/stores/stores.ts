/** The kinds of stores that `local up` can start. */

import { dynamodb } from "./dynamodb.ts";
import { postgres } from "./postgres.ts";
import type { LocalStore } from "./store.ts";
import { valkey } from "./valkey.ts";

const STORES = { dynamodb, postgres, valkey } satisfies Record<string, LocalStore>;

export type StoreName = keyof typeof STORES;

export const STORE_NAMES = Object.keys(STORES) as StoreName[];
export const ENGINE_NAMES = Object.values(STORES).flatMap(({ engines }) => engines);

export function storeByName(name: StoreName): LocalStore {
  return STORES[name];
}

/** Returns the kind of store that an engine is of. */
export function storeNameOf(engine: string): StoreName {
  const name = STORE_NAMES.find((each) => storeByName(each).engines.includes(engine));
  if (name === undefined) throw new Error(`no store has the engine ${engine}`);
  return name;
}
