/** What is stored: entities, limits, namespaces, audit. The same on every store. */

import type { BucketStore, BucketWarning } from "../buckets/bucket-store.ts";
import { systemRandom } from "../domain/chance.ts";
import {
  IncompatibleSchemaError,
  InfrastructureError,
  NamespaceNotFoundError,
} from "../domain/errors.ts";
import { checkNamespace, checkStackName, DEFAULT_RESOURCE } from "../domain/names.ts";
import { systemTimer } from "../domain/timer.ts";
import { CLIENT_VERSION, checkCompatibility } from "../domain/version.ts";
import { AuditLog } from "../records/audit.ts";
import { ConfigCache } from "../records/config-cache.ts";
import { ConfigResolver } from "../records/config-resolver.ts";
import { EntityRecords } from "../records/entities.ts";
import { versionKey } from "../records/keys.ts";
import { LimitRecords } from "../records/limits.ts";
import { NamespaceRecords } from "../records/namespaces.ts";
import type { RecordContext } from "../records/record-context.ts";
import { UsageRecords } from "../records/usage.ts";
import { decodeVersion, newVersionItem, type VersionRecord } from "../records/version-record.ts";
import { ITEM_ABSENT, type ItemStore } from "../storage/item-store.ts";
import {
  type Backend,
  type BackendCapabilities,
  backendOver,
  clockOf,
  dynamoOptions,
  openBackend,
} from "./backend.ts";
import { BucketRecords } from "./bucket-records.ts";
import { environment } from "./environment.ts";
import { INTERNALS, type RepositoryInternals, type RepositoryListener } from "./internals.ts";
import {
  type CreateTableOptions,
  checkCreateTableOptions,
  checkOpenOptions,
  type DynamoOptions,
  type OpenOptions,
} from "./options.ts";
import { DEFAULT_URL, parseStoreUrl, type StoreLocation } from "./store-url.ts";

const DEFAULT_NAMESPACE = "default";
const DEFAULT_STACK = "zae-limiter";
const CONFIG_CACHE_TTL_SECONDS = 60;
const BUCKET_TTL_MULTIPLIER = 7;
const TIMEOUT_MS = 2000;

/** What the repositories of one open store share. */
interface Shared {
  readonly backend: Backend;
  readonly options: OpenOptions;
  readonly namespaces: NamespaceRecords;
  readonly listeners: Set<RepositoryListener>;
  /** One per namespace, whichever repository uses it. */
  readonly buckets: Map<string, BucketStore>;
  /** One cache per namespace, whichever repository uses it. */
  readonly caches: Map<string, ConfigCache>;
}

/** Internal: a repository over any store, which it prepares like an embedded one. */
export let repositoryOver: (store: ItemStore, options?: OpenOptions) => Promise<Repository>;

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
  readonly namespaceName: string;
  readonly namespaceId: string;
  readonly entities: EntityRecords;
  readonly limits: LimitRecords;
  readonly namespaces: NamespaceRecords;
  readonly audit: AuditLog;
  readonly buckets: BucketRecords;
  readonly usage: UsageRecords;
  /** For the limiter. */
  readonly [INTERNALS]: RepositoryInternals;
  readonly #shared: Shared;
  /** A scoped repository borrows the store: closing it closes nothing. */
  readonly #scoped: boolean;

  static {
    repositoryOver = async (store, options = {}) => {
      const backend = backendOver("memory", "memory", store, clockOf(options));
      const location = { kind: "memory", namespace: undefined } as const;
      return Repository.#prepare(backend, options, [namespaceNameOf(location, options)]);
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
    const context: RecordContext = {
      ...recordContext(shared.backend, shared.options),
      namespaceId: namespace.namespaceId,
    };
    const resolver = new ConfigResolver(context, cacheOf(shared, context));
    const buckets = bucketsOf(shared, namespace.namespaceId);
    this.audit = new AuditLog(context);
    this.entities = new EntityRecords(context, this.audit, resolver, buckets);
    this.limits = new LimitRecords(context, this.audit, resolver, {
      entityLimitsChanged: (id, resource) => followLimits(buckets, resolver, id, resource),
    });
    this.buckets = new BucketRecords(buckets, this.entities);
    this.usage = new UsageRecords(context);
    this[INTERNALS] = {
      buckets,
      resolver,
      clock: context.clock,
      timer: shared.options.timer ?? systemTimer,
      timeoutMs: shared.options.timeoutMs ?? TIMEOUT_MS,
      storeName: shared.backend.name,
      ping: (timeoutMs) => shared.backend.store.get(versionKey(), { timeoutMs }),
      onUnavailable: shared.options.onUnavailable,
      listeners: shared.listeners,
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
    const { namespaces, ...rest } = checkCreateTableOptions(options);
    const name = namespaceNameOf(location, rest);
    const { createTable } = await import("../storage/dynamodb/create-table.ts");
    await createTable(dynamoOptions(location, rest));
    return Repository.#prepare(await openBackend(location, rest), rest, [name, ...namespaces]);
  }

  /** Deploys or updates the stack, then connects. */
  static async provision(table: string, options: DynamoOptions = {}): Promise<Repository> {
    checkStackName(table);
    checkOpenOptions(options, true);
    throw new InfrastructureError(
      "Repository.provision is not there yet: this version cannot deploy stacks. " +
        "Use Repository.createTable for a bare table",
    );
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
  ): Promise<Repository> {
    try {
      const context = recordContext(backend, options);
      const version = await backend.store.get(versionKey(), { consistent: true });
      // Whoever may not use a store does not change it either.
      if (version !== undefined) refuseIncompatible(decodeVersion(version));
      else await backend.store.put(newVersionItem(context.clock()), [ITEM_ABSENT]);
      await new NamespaceRecords(context, nothingToDelete).register(DEFAULT_NAMESPACE, ...names);
      return await Repository.#enter(backend, options, names[0] as string);
    } catch (error) {
      await backend.store.close();
      throw error;
    }
  }

  static async #enter(backend: Backend, options: OpenOptions, name: string): Promise<Repository> {
    const namespaces = new NamespaceRecords(recordContext(backend, options), (namespaceId) =>
      bucketsOf(shared, namespaceId).deleteAll(),
    );
    const shared: Shared = {
      backend,
      options,
      namespaces,
      listeners: new Set(),
      buckets: new Map(),
      caches: new Map(),
    };
    const [version, namespace] = await Promise.all([
      backend.store.get(versionKey(), { consistent: true }),
      namespaces.get(name),
    ]);
    if (version !== undefined) refuseIncompatible(decodeVersion(version));
    if (namespace === undefined) throw new NamespaceNotFoundError(name);
    return new Repository(shared, namespace, false);
  }

  /** The same store, seen from another namespace. It ends with this repository. */
  async namespace(name: string): Promise<Repository> {
    const namespace = await this.namespaces.get(name);
    if (namespace === undefined) throw new NamespaceNotFoundError(name);
    return new Repository(this.#shared, namespace, true);
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
    await Promise.all([...this.#shared.buckets.values()].map((buckets) => buckets.close()));
    await this.#shared.backend.store.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function recordContext(backend: Backend, options: OpenOptions): Omit<RecordContext, "namespaceId"> {
  return {
    store: backend.store,
    clock: backend.clock,
    random: options.random ?? systemRandom,
  };
}

function cacheOf(shared: Shared, context: RecordContext): ConfigCache {
  const { caches, options } = shared;
  const known = caches.get(context.namespaceId);
  if (known !== undefined) return known;
  const ttlSeconds = options.configCacheTtlSeconds ?? CONFIG_CACHE_TTL_SECONDS;
  const cache = new ConfigCache({ ttlSeconds, clock: context.clock });
  caches.set(context.namespaceId, cache);
  return cache;
}

/** The buckets of a namespace; all repositories on it share what they have seen. */
function bucketsOf(shared: Shared, namespaceId: string): BucketStore {
  const { backend, options, buckets } = shared;
  const known = buckets.get(namespaceId);
  if (known !== undefined) return known;
  const context = { ...recordContext(backend, options), namespaceId };
  const opened = backend.openBuckets(context, {
    ttlMultiplier: options.bucketTtlMultiplier ?? BUCKET_TTL_MULTIPLIER,
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    timer: options.timer ?? systemTimer,
    onWarning: (warning) => warn(shared, warning),
    onRestored: (leg) => {
      for (const listener of shared.listeners) listener.onRestored?.(leg);
    },
    onSplit: (notice) => {
      for (const listener of shared.listeners) listener.onSplit?.(notice);
    },
  });
  buckets.set(namespaceId, opened);
  return opened;
}

/** Somebody must hear of it: the process, where no limiter listens. */
function warn(shared: Shared, warning: BucketWarning): void {
  const heard = [...shared.listeners].filter((listener) => listener.onWarning !== undefined);
  for (const listener of heard) listener.onWarning?.(warning);
  if (heard.length > 0) return;
  if (warning.kind === "shards_exhausted") {
    process.emitWarning(
      `The bucket of ${warning.entityId} for ${warning.resource} cannot be split any further`,
      { code: "ZAEL_SHARDS_EXHAUSTED" },
    );
    return;
  }
  process.emitWarning(
    `What ${warning.entityId} had taken of ${warning.resource} could not be given back`,
    { code: "ZAEL_RESTORE_FAILED", detail: String(warning.cause) },
  );
}

/** Limits of an entity reach its live buckets at once, whatever level applies to them now. */
async function followLimits(
  buckets: BucketStore,
  resolver: ConfigResolver,
  entityId: string,
  resource: string,
): Promise<void> {
  const scope = resource === DEFAULT_RESOURCE ? undefined : resource;
  const states = await buckets.list(entityId, scope);
  for (const name of new Set(states.map((state) => state.resource))) {
    const resolved = await resolver.resolve(entityId, name);
    if (resolved !== undefined) await buckets.reconfigure(entityId, name, resolved);
  }
}

async function nothingToDelete(): Promise<void> {}

function tableLocation(table: string | undefined): Extract<StoreLocation, { kind: "dynamodb" }> {
  const name = checkStackName(table ?? environment.stack() ?? DEFAULT_STACK);
  return {
    kind: "dynamodb",
    table: name,
    region: undefined,
    endpoint: undefined,
    namespace: undefined,
  };
}

function namespaceNameOf(location: StoreLocation, options: OpenOptions): string {
  return checkNamespace(
    options.namespace ?? location.namespace ?? environment.namespace() ?? DEFAULT_NAMESPACE,
  );
}

/** Only what makes working together impossible; an older Lambda is the deployer's business. */
function refuseIncompatible(version: VersionRecord): void {
  const { compatible, message } = checkCompatibility({
    client: CLIENT_VERSION,
    schema: version.schemaVersion,
    clientMin: version.clientMinVersion,
    lambda: version.lambdaVersion,
  });
  if (compatible) return;
  throw new IncompatibleSchemaError({
    clientVersion: CLIENT_VERSION,
    schemaVersion: version.schemaVersion,
    message,
  });
}
