/// <reference lib="esnext.disposable" preserve="true" />

/** What is stored: entities, limits, namespaces, audit. The same on every store. */

import { show } from "../domain/check.ts";
import { NamespaceNotFoundError, ValidationError } from "../domain/errors.ts";
import { checkNamespace, checkStackName } from "../domain/names.ts";
import { systemTimer } from "../domain/timer.ts";
import { AuditLog } from "../records/audit.ts";
import { ConfigResolver } from "../records/config-resolver.ts";
import { EntityRecords } from "../records/entities.ts";
import { versionKey } from "../records/keys.ts";
import { LimitRecords } from "../records/limits.ts";
import { NamespaceRecords, NO_FOLLOWER } from "../records/namespaces.ts";
import { UsageRecords } from "../records/usage.ts";
import {
  decodeVersion,
  type NewVersion,
  newVersionItem,
  type VersionRecord,
} from "../records/version-record.ts";
import { listenTo } from "../storage/call-listeners.ts";
import { ITEM_ABSENT, type ItemStore } from "../storage/item-store.ts";
import {
  type Backend,
  type BackendCapabilities,
  backendOver,
  clockOf,
  dynamoOptions,
  openBackend,
} from "./backend.ts";
import { BalanceOperations } from "./balance-operations.ts";
import { entityBuckets, followLimits, stampFlags } from "./bucket-followers.ts";
import { BucketRecords } from "./bucket-records.ts";
import { environment } from "./environment.ts";
import { INTERNALS, type RepositoryInternals } from "./internals.ts";
import {
  type CreateTableOptions,
  checkCreateTableOptions,
  checkOpenOptions,
  type DynamoOptions,
  type OpenOptions,
  type ProvisionOptions,
} from "./options.ts";
import {
  activeNamespace,
  bucketsOf,
  cacheOf,
  closeShared,
  listenersOf,
  recordContext,
  recordsOf,
  refuseIncompatible,
  refuseOutdatedLambda,
  type Shared,
  sharedOver,
  TIMEOUT_MS,
} from "./shared-store.ts";
import { DEFAULT_URL, parseStoreUrl, type StoreLocation, tableAt } from "./store-url.ts";

const DEFAULT_NAMESPACE = "default";
const DEFAULT_STACK = "zae-limiter";

/** Internal: a repository over any store, which it prepares like an embedded one. */
export let repositoryOver: (
  store: ItemStore,
  options?: OpenOptions,
  openBuckets?: Backend["openBuckets"],
) => Promise<Repository>;

/** Internal: a store as it is. Nothing is written to it by opening, whatever its kind. */
export let openAsItIs: (location: StoreLocation, options?: DynamoOptions) => Promise<StoreAsItIs>;

/** An open store, and its namespaces if there are any. */
export interface StoreAsItIs {
  readonly namespaces: NamespaceRecords;
  /** The repository of a namespace; it ends with this store. */
  enter(name: string): Promise<Repository>;
  close(): Promise<void>;
}

/**
 * What is stored, in one namespace.
 *
 * @example
 * ```ts
 * import { Repository } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * await repo.limits.setSystem(['rpm:100', 'tpm:10000']);
 * await repo.entities.create({ id: 'key-1' });
 * const resolved = await repo.limits.resolve('key-1', 'gpt-4');
 * console.log(resolved?.limits.map(String).join(' ')); // rpm:100/min tpm:10000/min
 * await repo.close();
 * ```
 */
export class Repository {
  /** The namespace that this repository works in. */
  readonly namespaceName: string;
  /** The id of that namespace, with which the keys of its items begin. */
  readonly namespaceId: string;
  /** Entities: create, list, change, move and delete them. */
  readonly entities: EntityRecords;
  /** Stored limits and switches at all levels. */
  readonly limits: LimitRecords;
  /** Namespaces of the store: register, delete, recover and purge them. */
  readonly namespaces: NamespaceRecords;
  /** The audit log. */
  readonly audit: AuditLog;
  /** Balances: look at them, reset them, top them up. */
  readonly buckets: BucketRecords;
  /** Usage by hour, day and month. */
  readonly usage: UsageRecords;
  /**
   * For the limiter.
   *
   * @internal
   */
  readonly [INTERNALS]: RepositoryInternals;
  readonly #shared: Shared;
  /** A scoped repository borrows the store: closing it closes nothing. */
  readonly #scoped: boolean;

  static {
    repositoryOver = async (store, options = {}, openBuckets) => {
      const clock = clockOf(options);
      const backend = await backendOver("memory", "memory", store, clock, openBuckets);
      const location = { kind: "memory", namespace: undefined } as const;
      return Repository.#prepare(backend, options, [namespaceNameOf(location, options)]);
    };
    openAsItIs = async (location, options = {}) => {
      checkOpenOptions(options, location.kind === "dynamodb");
      const shared = sharedOver(await openBackend(location, options), options);
      const enter = async (name: string) =>
        new Repository(shared, await activeNamespace(shared, name), true);
      try {
        await refuseIncompatible(shared.backend);
      } catch (error) {
        await closeShared(shared);
        throw error;
      }
      return { namespaces: shared.namespaces, enter, close: () => closeShared(shared) };
    };
  }

  private constructor(
    shared: Shared,
    namespace: { name: string; namespaceId: string },
    scoped: boolean,
  ) {
    this.#shared = shared;
    this.#scoped = scoped;
    this.namespaceName = namespace.name;
    this.namespaceId = namespace.namespaceId;
    this.namespaces = shared.namespaces;
    const context = recordsOf(shared, namespace.namespaceId);
    const resolver = new ConfigResolver(context, cacheOf(shared, context));
    const buckets = bucketsOf(shared, namespace.namespaceId);
    this.audit = new AuditLog(context);
    this.entities = new EntityRecords(
      context,
      this.audit,
      resolver,
      entityBuckets(context, buckets, resolver),
    );
    this.limits = new LimitRecords(context, this.audit, resolver, {
      entityLimitsChanged: (id, resource) => followLimits(buckets, resolver, id, resource),
      stampFlags: (level, onStamped) => stampFlags(context, buckets, resolver, level, onStamped),
    });
    const operations = new BalanceOperations(context, this.audit, resolver, buckets);
    this.buckets = new BucketRecords(buckets, this.entities, operations);
    this.usage = new UsageRecords(context, (scope) => buckets.countUsage(scope));
    this[INTERNALS] = {
      buckets,
      resolver,
      records: context,
      clock: context.clock,
      timer: shared.options.timer ?? systemTimer,
      timeoutMs: shared.options.timeoutMs ?? TIMEOUT_MS,
      storeName: shared.backend.name,
      ping: (timeoutMs) => shared.backend.store.get(versionKey(), { timeoutMs }),
      onUnavailable: shared.options.onUnavailable,
      listeners: listenersOf(shared, namespace.namespaceId),
      listen: (listener) => listenTo(shared.backend.store, listener),
    };
  }

  /**
   * Opens a store by its address; without one, `ZAEL_URL`, else a file in the current folder.
   * An embedded store is created when it is not there; on DynamoDB nothing ever is.
   */
  static async open(url?: string, options: DynamoOptions = {}): Promise<Repository> {
    const location = parseStoreUrl(url ?? environment.url() ?? DEFAULT_URL);
    return Repository.#open(location, options);
  }

  /** Connects to a table on DynamoDB; without a name, `ZAEL_STACK`, else `zae-limiter`. */
  static async connect(table?: string, options: DynamoOptions = {}): Promise<Repository> {
    return Repository.#open(tableLocation(table), options);
  }

  /**
   * Creates a bare table on DynamoDB, without Lambda or IAM, for local engines and pipelines of
   * one's own; registers the namespaces and connects. Whatever is already there stays as it is.
   */
  static async createTable(table: string, options: CreateTableOptions = {}): Promise<Repository> {
    const location = tableLocation(table);
    const { namespaces, table: shape, connection } = checkCreateTableOptions(options);
    const { maxShards, pythonLambdaVersion, ...indexes } = shape;
    const name = namespaceNameOf(location, connection);
    const { createTable } = await import("../storage/dynamodb/create-table.ts");
    await createTable({ ...dynamoOptions(location, connection), ...indexes });
    const backend = await openBackend(location, connection);
    return Repository.#prepare(backend, connection, [name, ...namespaces], {
      ...(maxShards === undefined ? {} : { maxShards }),
      ...(pythonLambdaVersion === undefined ? {} : { pythonLambdaVersion }),
    });
  }

  /**
   * Deploys the stack or updates it, as `zae-limiter stack deploy` does; registers the namespaces
   * and connects.
   */
  static async provision(table: string, options: ProvisionOptions = {}): Promise<Repository> {
    const location = tableLocation(table);
    const { stack = {}, ...others } = options;
    const { namespaces, table: shape, connection } = checkCreateTableOptions(others);
    const { maxShards, pythonLambdaVersion, ...indexes } = shape;
    const { checkStackOptions } = await import("../infra/check-stack-options.ts");
    checkStackOptions(stack);
    const name = namespaceNameOf(location, connection);
    const { deployStack } = await import("../infra/deploy.ts");
    await deployStack({
      stackName: location.table,
      options: { ...indexes, ...stack },
      connection,
      ...(maxShards === undefined ? {} : { maxShards }),
      ...(pythonLambdaVersion === undefined ? {} : { pythonLambdaVersion }),
    });
    const backend = await openBackend(location, connection);
    return Repository.#prepare(backend, connection, [name, ...namespaces]);
  }

  /**
   * Opens any store that keeps the contract of an item store (`zae-limiter/testing` has it). What
   * is missing is created in it, as in an embedded one. The store belongs to the repository from
   * then on, and is closed with it.
   *
   * @example
   * ```ts
   * import { Repository } from 'zae-limiter';
   * import { MemoryItemStore } from 'zae-limiter/testing';
   * const repo = await Repository.over(new MemoryItemStore(), { namespace: 'tenant-a' });
   * console.log(repo.namespaceName); // tenant-a
   * await repo.close();
   * ```
   */
  static async over(store: ItemStore, options: OpenOptions = {}): Promise<Repository> {
    checkItemStore(store);
    checkOpenOptions(options, false);
    if (options.onCall !== undefined) listenTo(store, options.onCall);
    const backend = await backendOver("memory", "custom", store, clockOf(options));
    const location = { kind: "memory", namespace: undefined } as const;
    return Repository.#prepare(backend, options, [namespaceNameOf(location, options)]);
  }

  static async #open(location: StoreLocation, options: DynamoOptions): Promise<Repository> {
    checkOpenOptions(options, location.kind === "dynamodb");
    const name = namespaceNameOf(location, options);
    const backend = await openBackend(location, options);
    if (backend.kind !== "dynamodb") return Repository.#prepare(backend, options, [name]);
    try {
      return await Repository.#enter(backend, options, name);
    } catch (error) {
      await backend.store.close();
      throw error;
    }
  }

  /** Writes what a new store needs: its version and its namespaces. */
  static async #prepare(
    backend: Backend,
    options: OpenOptions,
    names: readonly string[],
    fresh: NewVersion = {},
  ): Promise<Repository> {
    try {
      const context = recordContext(backend, options);
      // A client that may not use a store must not change it either.
      if ((await refuseIncompatible(backend)) === undefined) {
        await backend.store.put(newVersionItem(context.clock(), fresh), [ITEM_ABSENT]);
      }
      await new NamespaceRecords(context, NO_FOLLOWER).register(DEFAULT_NAMESPACE, ...names);
      return await Repository.#enter(backend, options, names[0] as string);
    } catch (error) {
      await backend.store.close();
      throw error;
    }
  }

  static async #enter(backend: Backend, options: DynamoOptions, name: string): Promise<Repository> {
    const shared = sharedOver(backend, options);
    const [namespace, version] = await Promise.all([
      shared.namespaces.get(name),
      refuseIncompatible(backend),
    ]);
    if (options.outdatedLambda === "refuse") refuseOutdatedLambda(backend, version);
    if (namespace === undefined) throw new NamespaceNotFoundError(name);
    shared.maxShards = version?.maxShards;
    shared.keepsShards = version?.maxShards !== undefined || version?.lambdaVersion !== undefined;
    return new Repository(shared, namespace, false);
  }

  /** The same store, seen from another namespace. It ends with this repository. */
  async namespace(name: string): Promise<Repository> {
    return new Repository(this.#shared, await activeNamespace(this.#shared, name), true);
  }

  /** The version record of the table; `undefined` where none was written. */
  async version(): Promise<VersionRecord | undefined> {
    const item = await this.#shared.backend.store.get(versionKey(), { consistent: true });
    return item === undefined ? undefined : decodeVersion(item);
  }

  /** What the store can do. */
  get capabilities(): BackendCapabilities {
    return this.#shared.backend.capabilities;
  }

  /** Lets go of the store. Repositories scoped from this one end with it. */
  async close(): Promise<void> {
    if (this.#scoped) return;
    await closeShared(this.#shared);
  }

  /** Closes the repository at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
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

function tableLocation(table: string | undefined): Extract<StoreLocation, { kind: "dynamodb" }> {
  return tableAt(checkStackName(table ?? environment.stack() ?? DEFAULT_STACK));
}

function namespaceNameOf(location: StoreLocation, options: OpenOptions): string {
  return checkNamespace(
    options.namespace ?? location.namespace ?? environment.namespace() ?? DEFAULT_NAMESPACE,
  );
}
