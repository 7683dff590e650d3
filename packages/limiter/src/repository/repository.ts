/// <reference lib="esnext.disposable" preserve="true" />

/** The stored records: entities, limits, namespaces, audit. They are alike on every store. */

import { systemTimer } from "../base/time.ts";
import { BalanceOperations } from "../buckets/balance-operations.ts";
import { entityBuckets, limitFollower, pythonFollower } from "../buckets/bucket-followers.ts";
import { BucketRecords } from "../buckets/bucket-records.ts";
import { AlertRecords } from "../records/alerts/alerts.ts";
import { WebhookRecords } from "../records/alerts/webhooks.ts";
import { AuditLog } from "../records/audit.ts";
import { AuditedWrites } from "../records/audited-writes.ts";
import { ConfigResolver } from "../records/config/config-resolver.ts";
import { LimitRecords } from "../records/config/limits.ts";
import { EntityRecords } from "../records/entities/entities.ts";
import { versionKey } from "../records/keys.ts";
import type { NamespaceRecords } from "../records/namespaces/namespaces.ts";
import { Notes } from "../records/notes.ts";
import { PriceRecords } from "../records/prices.ts";
import { UsageRecords } from "../records/usage/usage.ts";
import { decodeVersion, type VersionRecord } from "../records/version-record.ts";
import { listenTo } from "../storage/call-listeners.ts";
import type { ItemStore } from "../storage/item-store.ts";
import type { ItemTable } from "../storage/item-table.ts";
import type { BackendCapabilities } from "./backend.ts";
import { INTERNALS, type RepositoryInternals } from "./internals.ts";
import {
  createdTable,
  migrateUrl,
  type Opened,
  openCustom,
  openTable,
  openUrl,
} from "./opening.ts";
import type {
  CreateTableOptions,
  DynamoOptions,
  MigrateOptions,
  OpenOptions,
  PostgresOptions,
  RedisOptions,
} from "./options.ts";
import {
  activeNamespace,
  alertsOf,
  bucketsOf,
  cacheOf,
  closeShared,
  listenersOf,
  recordsOf,
  type Shared,
  TIMEOUT_MS,
} from "./shared-store.ts";
import type { OpenableStore } from "./stores/opened-store.ts";

/** Internal: the repository of a store that is open. A scoped one borrows the store. */
export let repositoryOf: (opened: Opened, scoped?: boolean) => Repository;

/**
 * The stored records of one namespace.
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
  readonly namespaceName: string;
  /** The id of that namespace, with which the keys of its items begin. */
  readonly namespaceId: string;
  /** Entities: create, list, change, move and delete them. */
  readonly entities: EntityRecords;
  /** Stored limits and switches at all levels. */
  readonly limits: LimitRecords;
  /** Namespaces of the store: register, delete, recover and purge them. */
  readonly namespaces: NamespaceRecords;
  readonly audit: AuditLog;
  /** Balances: read them, reset them, top them up. */
  readonly buckets: BucketRecords;
  /** Usage by hour, day and month. */
  readonly usage: UsageRecords;
  /** Alerts: percentages of quotas and sessions that were used. */
  readonly alerts: AlertRecords;
  /** Addresses that alerts are posted to. */
  readonly webhooks: WebhookRecords;
  /** Own prices of models. */
  readonly prices: PriceRecords;
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
    repositoryOf = (opened, scoped = false) => new Repository(opened, scoped);
  }

  private constructor({ shared, namespace }: Opened, scoped: boolean) {
    this.#shared = shared;
    this.#scoped = scoped;
    this.namespaceName = namespace.name;
    this.namespaceId = namespace.namespaceId;
    this.namespaces = shared.namespaces;
    const context = recordsOf(shared, namespace.namespaceId);
    const resolver = new ConfigResolver(context, cacheOf(shared, context));
    const buckets = bucketsOf(shared, namespace.namespaceId);
    this.audit = new AuditLog(context);
    const python = pythonFollower(context, buckets, resolver);
    const ownBuckets = entityBuckets(buckets, python);
    this.entities = new EntityRecords(context, this.audit, resolver, ownBuckets);
    const follower = limitFollower(buckets, resolver, python);
    this.limits = new LimitRecords(context, this.audit, resolver, follower);
    const operations = new BalanceOperations(context, this.audit, resolver, buckets);
    this.buckets = new BucketRecords(buckets, this.entities, operations);
    this.usage = new UsageRecords(context, buckets.uncountedUsage);
    const alerts = alertsOf(shared, namespace.namespaceId);
    this.alerts = new AlertRecords(context, () => alerts.written());
    const writes = new AuditedWrites(context, this.audit, resolver);
    this.webhooks = new WebhookRecords(context, writes);
    this.prices = new PriceRecords(context, writes);
    this[INTERNALS] = {
      buckets,
      alerts,
      resolver,
      records: context,
      notes: new Notes(context),
      clock: context.clock,
      timer: shared.options.timer ?? systemTimer,
      timeoutMs: shared.options.timeoutMs ?? TIMEOUT_MS,
      storeName: shared.backend.name,
      database: shared.backend.database,
      ping: (timeoutMs) => shared.backend.store.get(versionKey(), { timeoutMs }),
      onUnavailable: shared.options.onUnavailable,
      listeners: listenersOf(shared, namespace.namespaceId),
      listen: (listener) => listenTo(shared.backend.store, listener),
    };
  }

  /**
   * Opens a store by its address; without one, `ZAEL_URL`, else a file in the current folder.
   * An embedded store is created when it is not there; a table on DynamoDB and a schema on
   * PostgreSQL never are.
   */
  static async open(
    url?: string,
    options: DynamoOptions & PostgresOptions & RedisOptions = {},
  ): Promise<Repository> {
    return repositoryOf(await openUrl(url, options));
  }

  /**
   * Creates the schema of a store on PostgreSQL, or brings it to this release, in one transaction.
   * Other stores have nothing to migrate, and are left alone.
   *
   * @example
   * ```ts
   * import { Repository } from 'zae-limiter';
   * await Repository.migrate('memory:'); // postgres://app@db/main
   * ```
   */
  static async migrate(url?: string, options: MigrateOptions = {}): Promise<void> {
    await migrateUrl(url, options);
  }

  /** Connects to a table on DynamoDB; without a name, `ZAEL_STACK`, else `zae-limiter`. */
  static async connect(table?: string, options: DynamoOptions = {}): Promise<Repository> {
    return repositoryOf(await openTable(table, options));
  }

  /**
   * Creates a bare table on DynamoDB, without Lambda or IAM, for local engines and pipelines of
   * one's own; registers the namespaces and connects. Whatever is already there stays as it is.
   */
  static async createTable(table: string, options: CreateTableOptions = {}): Promise<Repository> {
    return repositoryOf(await createdTable(table, options));
  }

  /**
   * Opens any store that keeps the contract of an item store or of an item table
   * (`zae-limiter/testing` has both), or a pool by `postgres(pool)` of `zae-limiter/postgres`.
   * Records that are missing are created in it, as in an embedded one. The store belongs to the
   * repository from then on, and is closed with it; a pool of yours is not.
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
  static async over(
    store: ItemStore | ItemTable | OpenableStore,
    options: OpenOptions = {},
  ): Promise<Repository> {
    return repositoryOf(await openCustom(store, options, "custom"));
  }

  /** Returns a repository of another namespace of the store. It ends with this one. */
  async namespace(name: string): Promise<Repository> {
    const shared = this.#shared;
    return new Repository({ shared, namespace: await activeNamespace(shared, name) }, true);
  }

  /** Reads the version record of the table; `undefined` where none was written. */
  async version(): Promise<VersionRecord | undefined> {
    const item = await this.#shared.backend.store.get(versionKey(), { consistent: true });
    return item === undefined ? undefined : decodeVersion(item);
  }

  /**
   * Abilities of the store.
   *
   * @deprecated Every store has an audit log, a stream of changes and batches; whether usage is
   * counted is an option of `open`, and only tables of DynamoDB can be deployed.
   */
  get capabilities(): BackendCapabilities {
    const { countsUsage, changes } = this.#shared.backend;
    return Object.freeze({
      supportsAuditLogging: true,
      supportsUsageSnapshots: countsUsage,
      supportsInfrastructureManagement: changes.by === "shards",
      supportsChangeStreams: true,
      supportsBatchOperations: true,
    });
  }

  /** Closes the store. Repositories scoped from this one end with it. */
  async close(): Promise<void> {
    if (this.#scoped) return;
    await closeShared(this.#shared);
  }

  /** Closes the repository at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
