/** Opens stores: checks options, creates what an embedded store lacks, finds the namespace. */

import { show } from "../domain/check.ts";
import { NamespaceNotFoundError, ValidationError } from "../domain/errors/errors.ts";
import {
  checkNamespace,
  checkStackName,
  DEFAULT_NAMESPACE,
  DEFAULT_STACK,
} from "../domain/names.ts";
import { checkByTable, FLAG, type OptionTable, TEXT, whole } from "../domain/options.ts";
import type { Namespace } from "../records/namespaces/namespace-item.ts";
import { NamespaceRecords, NO_FOLLOWER } from "../records/namespaces/namespaces.ts";
import { type NewVersion, newVersionItem } from "../records/version-record.ts";
import { ITEM_ABSENT, type ItemStore } from "../storage/item-store.ts";
import { type ItemTable, isItemTable } from "../storage/item-table.ts";
import type { Backend } from "./backend.ts";
import { environment } from "./environment.ts";
import type { CreateTableOptions, DynamoOptions, MigrateOptions, OpenOptions } from "./options.ts";
import {
  recordContext,
  refuseIncompatible,
  refuseOutdatedLambda,
  type Shared,
  sharedOver,
} from "./shared-store.ts";
import { customBackend } from "./stores/custom.ts";
import { type TableLocation, tableAt } from "./stores/dynamodb.ts";
import { openBackend } from "./stores/open-backend.ts";
import { isOpenable, type OpenableStore } from "./stores/opened-store.ts";
import {
  checkCustomOptions,
  checkOpenOptions,
  DEFAULT_URL,
  migrateStore,
  parseStoreUrl,
  type StoreLocation,
} from "./stores/stores.ts";
import { type CheckedTableOptions, checkCreateTableOptions } from "./stores/table-options.ts";

/** An open store, and the namespace that was asked for. */
export interface Opened {
  readonly shared: Shared;
  readonly namespace: Namespace;
}

/** Opens a store by its address, the environment's, or the default one. */
export async function openUrl(url: string | undefined, options: DynamoOptions): Promise<Opened> {
  return openAt(parseStoreUrl(url ?? environment.url() ?? DEFAULT_URL), options);
}

const MIGRATE_OPTIONS: OptionTable<MigrateOptions> = {
  grant: { check: TEXT },
  rls: { check: FLAG },
  timeoutMs: { check: whole(1, 3_600_000) },
};

/** Creates or upgrades the schema of a store that needs one. */
export async function migrateUrl(url: string | undefined, options: MigrateOptions): Promise<void> {
  checkByTable(options, MIGRATE_OPTIONS);
  await migrateStore(parseStoreUrl(url ?? environment.url() ?? DEFAULT_URL), options);
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
    const [{ createTable }, { connectionTo }] = await Promise.all([
      import("../storage/dynamodb/create-table.ts"),
      import("./stores/open-dynamodb.ts"),
    ]);
    await createTable({ ...connectionTo(location, connection), ...indexes });
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
  const checked = checkCreateTableOptions(options, location);
  const { namespaces, connection } = checked;
  const name = namespaceNameOf(location.namespace, connection);
  const version = await create({ ...checked, location });
  const backend = await openBackend(location, connection);
  return prepare(backend, connection, [name, ...namespaces], version);
}

/** Opens a store of the caller's, which is prepared like an embedded one. */
export async function openCustom(
  store: ItemStore | ItemTable | OpenableStore,
  options: OpenOptions,
  name: "custom" | "memory",
  openBuckets?: Backend["openBuckets"],
): Promise<Opened> {
  checkItemStore(store);
  checkCustomOptions(options);
  const backend = await customBackend(name, store, options, openBuckets);
  return prepare(backend, options, [namespaceNameOf(undefined, options)]);
}

async function openAt(location: StoreLocation, options: DynamoOptions): Promise<Opened> {
  checkOpenOptions(options, location);
  const name = namespaceNameOf(location.namespace, options);
  const backend = await openBackend(location, options);
  if (backend.traits.createsItself) return prepare(backend, options, [name]);
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

/** Closes a store that cannot be used. */
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

const TABLE_OPERATIONS = [
  "read",
  "commit",
  "page",
  "log",
  "close",
] as const satisfies readonly (keyof ItemTable)[];

function checkItemStore(store: ItemStore | ItemTable | OpenableStore): void {
  const given: unknown = store;
  if (typeof given === "object" && given !== null && isOpenable(given)) return;
  const methods = (typeof given === "object" && given !== null ? given : {}) as Record<
    string,
    unknown
  >;
  const isTable = isItemTable(methods);
  const expected: readonly string[] = isTable ? TABLE_OPERATIONS : OPERATIONS;
  const missing = expected.filter((name) => typeof methods[name] !== "function");
  if (missing.length === 0) return;
  const what = isTable ? "an item table" : "an item store";
  const reason = `expected ${what}, got ${show(store)} without ${missing.join(", ")}`;
  throw new ValidationError("store", store, reason);
}

function tableLocation(table: string | undefined): TableLocation {
  return tableAt(checkStackName(table ?? environment.stack() ?? DEFAULT_STACK));
}

/** Returns the namespace of the options, else `named`, else the one of the environment. */
function namespaceNameOf(named: string | undefined, options: OpenOptions): string {
  return checkNamespace(options.namespace ?? named ?? environment.namespace() ?? DEFAULT_NAMESPACE);
}
