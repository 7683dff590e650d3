/** Opens the two stores of a copy. */

import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { show } from "../domain/check.ts";
import { CopyRefusedError } from "../domain/errors/copy-refused.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { INTERNALS } from "../repository/internals.ts";
import type { DynamoOptions, PostgresOptions } from "../repository/options.ts";
import { Repository } from "../repository/repository.ts";
import { openAsItIs, type StoreAsItIs } from "../repository/store-as-it-is.ts";
import { fileOf } from "../repository/stores/sqlite.ts";
import {
  parseStoreUrl,
  placeName,
  type StoreLocation,
  traitsOf,
  urlOf,
} from "../repository/stores/stores.ts";

/** A store by its address, or one that is open already. */
export type StoreOrUrl = string | Repository;

export type StoreOptions = DynamoOptions & PostgresOptions;

export interface CopiedStore extends StoreAsItIs {
  /** The namespace that the address names. */
  readonly namespace: string | undefined;
  /** The name of the store in messages, without credentials. */
  readonly name: string;
}

/** A store before it is opened. */
interface Place {
  readonly name: string;
  /** Equal for two places that lead to one store. */
  readonly identity: unknown;
  readonly isMissing: boolean;
  readonly namespace: string | undefined;
  open(): Promise<StoreAsItIs>;
}

/** Opens both stores, and closes the first when the second cannot be opened. */
export async function openBoth(
  from: StoreOrUrl,
  to: StoreOrUrl,
  options: { readonly from: StoreOptions; readonly to: StoreOptions; readonly dryRun: boolean },
): Promise<readonly [CopiedStore, CopiedStore]> {
  const source = placeOf("from", from, options.from, false);
  const target = placeOf("to", to, options.to, !options.dryRun);
  if (source.identity === target.identity) {
    throw new CopyRefusedError("same-store", `Both stores are ${source.name}`);
  }
  if (source.isMissing) {
    throw new ValidationError(
      "from",
      source.name,
      `expected a store, got ${source.name}, which is not there`,
    );
  }
  // Opening a file creates it, and a dry run creates nothing.
  const isEmpty = options.dryRun && target.isMissing;
  const opened = await source.open();
  try {
    const other = isEmpty ? openStore(await Repository.open("memory:"), true) : await target.open();
    return [
      { ...opened, name: source.name, namespace: source.namespace },
      { ...other, name: target.name, namespace: target.namespace },
    ];
  } catch (error) {
    await opened.close();
    throw error;
  }
}

function placeOf(
  field: "from" | "to",
  store: StoreOrUrl,
  options: StoreOptions,
  prepares: boolean,
): Place {
  if (store instanceof Repository) {
    const { storeName: name, records } = store[INTERNALS];
    const open = async () => openStore(store, false);
    return { name, identity: records.store, isMissing: false, namespace: undefined, open };
  }
  if (typeof store !== "string") {
    const expected = "expected the address of a store, or an open repository";
    throw new ValidationError(field, store, `${expected}, got ${show(store)}`);
  }
  const location = parseStoreUrl(store);
  if (field === "to" && location.namespace !== undefined) {
    const reason = "expected an address without a namespace: each keeps the name that it has";
    throw new ValidationError(field, placeName(location), reason);
  }
  if (!traitsOf(location).isShared) {
    const reason = `expected a store that lasts, got ${store}, which ends with this process`;
    throw new ValidationError(field, store, reason);
  }
  return {
    name: placeName(location),
    identity: identityOf(location),
    isMissing: isMissing(location),
    namespace: location.namespace,
    open: () => openAsItIs(location, options, prepares),
  };
}

/** Returns an open store; `closes`: it ends with the copy. */
function openStore(repository: Repository, closes: boolean): StoreAsItIs {
  return {
    namespaces: repository.namespaces,
    enter: (name) => repository.namespace(name),
    close: async () => (closes ? repository.close() : undefined),
  };
}

function identityOf(location: StoreLocation): string {
  const path = fileOf(location)?.path;
  if (path === undefined) return urlOf(location);
  return isMissing(location) ? resolve(path) : realpathSync(path);
}

/** Returns whether the file of a store is not there. */
function isMissing(location: StoreLocation): boolean {
  const path = fileOf(location)?.path;
  return path !== undefined && statSync(path, { throwIfNoEntry: false }) === undefined;
}
