/** Opens stores: checks options, creates what an embedded store lacks, finds the namespace. */

import { show } from "../domain/check.ts";
import { NamespaceNotFoundError, ValidationError } from "../domain/errors/errors.ts";
import {
  checkNamespace,
  checkStackName,
  DEFAULT_NAMESPACE,
  DEFAULT_STACK,
} from "../domain/names.ts";
import type { Namespace } from "../records/namespaces/namespace-item.ts";
import { NamespaceRecords, NO_FOLLOWER } from "../records/namespaces/namespaces.ts";
import { type NewVersion, newVersionItem } from "../records/version-record.ts";
import { listenTo } from "../storage/call-listeners.ts";
import { ITEM_ABSENT, type ItemStore } from "../storage/item-store.ts";
import { type Backend, backendOver, clockOf, dynamoOptions, openBackend } from "./backend.ts";
import { environment } from "./environment.ts";
import {
  type CheckedTableOptions,
  type CreateTableOptions,
  checkCreateTableOptions,
  checkOpenOptions,
  type DynamoOptions,
  type OpenOptions,
} from "./options.ts";
import {
  recordContext,
  refuseIncompatible,
  refuseOutdatedLambda,
  type Shared,
  sharedOver,
} from "./shared-store.ts";
import { DEFAULT_URL, parseStoreUrl, type StoreLocation, tableAt } from "./store-url.ts";

type TableLocation = Extract<StoreLocation, { kind: "dynamodb" }>;

/** An open store, and the namespace that was asked for. */
export interface Opened {
  readonly shared: Shared;
  readonly namespace: Namespace;
}

/** Opens a store by its address, the environment's, or the default one. */
export async function openUrl(url: string | undefined, options: DynamoOptions): Promise<Opened> {
  return openAt(parseStoreUrl(url ?? environment.url() ?? DEFAULT_URL), options);
}

/** Opens a table on DynamoDB by its name, the environment's, or the default one. */
export async function openTable(
  table: string | undefined,
  options: DynamoOptions,
): Promise<Opened> {
  return openAt(tableLocation(table), options);
}

/** Creates a table where there is none, and opens it. */
export async function createdTable(table: string, options: CreateTableOptions): Promise<Opened> {
  return preparedTable(table, options, async ({ location, indexes, version, connection }) => {
    const { createTable } = await import("../storage/dynamodb/create-table.ts");
    await createTable({ ...dynamoOptions(location, connection), ...indexes });
    return version;
  });
}

/** A table that is about to be created: where, and with what. */
export interface TableToCreate extends CheckedTableOptions {
  readonly location: TableLocation;
}

/**
 * Opens a table that `create` makes sure is there, and registers its namespaces. `create` returns
 * what the version record is to say when it has not written that record itself.
 */
export async function preparedTable(
  table: string,
  options: CreateTableOptions,
  create: (table: TableToCreate) => Promise<NewVersion | undefined>,
): Promise<Opened> {
  const location = tableLocation(table);
  const checked = checkCreateTableOptions(options);
  const { namespaces, connection } = checked;
  const name = namespaceNameOf(location, connection);
  const version = await create({ ...checked, location });
  const backend = await openBackend(location, connection);
  return prepare(backend, connection, [name, ...namespaces], version);
}

/** Opens a store of the caller's, which is prepared like an embedded one. */
export async function openCustom(
  store: ItemStore,
  options: OpenOptions,
  name: "custom" | "memory",
  openBuckets?: Backend["openBuckets"],
): Promise<Opened> {
  checkItemStore(store);
  checkOpenOptions(options, false);
  if (options.onCall !== undefined) listenTo(store, options.onCall);
  const backend = await backendOver("memory", name, store, clockOf(options), openBuckets);
  const location = { kind: "memory", namespace: undefined } as const;
  return prepare(backend, options, [namespaceNameOf(location, options)]);
}

async function openAt(location: StoreLocation, options: DynamoOptions): Promise<Opened> {
  checkOpenOptions(options, location.kind === "dynamodb");
  const name = namespaceNameOf(location, options);
  const backend = await openBackend(location, options);
  if (backend.kind !== "dynamodb") return prepare(backend, options, [name]);
  return orClosed(backend, enter(backend, options, name));
}

/** Writes what a new store needs: its version and its namespaces. */
function prepare(
  backend: Backend,
  options: OpenOptions,
  names: readonly string[],
  fresh: NewVersion = {},
): Promise<Opened> {
  const prepared = async () => {
    const context = recordContext(backend, options);
    // A client that may not use a store must not change it either.
    if ((await refuseIncompatible(backend)) === undefined) {
      await backend.store.put(newVersionItem(context.clock(), fresh), [ITEM_ABSENT]);
    }
    await new NamespaceRecords(context, NO_FOLLOWER).register(DEFAULT_NAMESPACE, ...names);
    return enter(backend, options, names[0] as string);
  };
  return orClosed(backend, prepared());
}

/** A store that cannot be used is closed again. */
async function orClosed(backend: Backend, opened: Promise<Opened>): Promise<Opened> {
  try {
    return await opened;
  } catch (error) {
    await backend.store.close();
    throw error;
  }
}

async function enter(backend: Backend, options: DynamoOptions, name: string): Promise<Opened> {
  const shared = sharedOver(backend, options);
  const [namespace, version] = await Promise.all([
    shared.namespaces.get(name),
    refuseIncompatible(backend),
  ]);
  if (options.outdatedLambda === "refuse") refuseOutdatedLambda(backend, version);
  if (namespace === undefined) throw new NamespaceNotFoundError(name);
  shared.maxShards = version?.maxShards;
  shared.keepsShards = version?.maxShards !== undefined || version?.lambdaVersion !== undefined;
  return { shared, namespace };
}

const OPERATIONS = [
  "get",
  "getMany",
  "put",
  "update",
  "delete",
  "transact",
  "writeMany",
  "query",
  "changes",
  "close",
] as const satisfies readonly (keyof ItemStore)[];

function checkItemStore(store: ItemStore): void {
  const given: unknown = store;
  const isObject = typeof given === "object" && given !== null;
  const missing = OPERATIONS.filter((name) => !isObject || typeof store[name] !== "function");
  if (missing.length === 0) return;
  const reason = `expected an item store, got ${show(store)} without ${missing.join(", ")}`;
  throw new ValidationError("store", store, reason);
}

function tableLocation(table: string | undefined): TableLocation {
  return tableAt(checkStackName(table ?? environment.stack() ?? DEFAULT_STACK));
}

function namespaceNameOf(location: StoreLocation, options: OpenOptions): string {
  return checkNamespace(
    options.namespace ?? location.namespace ?? environment.namespace() ?? DEFAULT_NAMESPACE,
  );
}
