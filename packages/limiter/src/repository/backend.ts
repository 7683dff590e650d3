/** Opens the store that a location names, and loads the adapter that it needs. */

import { type Clock, systemClock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import { processRandom, type Random, systemRandom } from "../base/random.ts";
import type { BucketStore } from "../buckets/bucket-store.ts";
import type { DistributedBucketStoreOptions } from "../buckets/distributed/distributed-bucket-store.ts";
import { EmbeddedBucketStore } from "../buckets/embedded/embedded-bucket-store.ts";
import { MemoryBucketTable } from "../buckets/embedded/memory-table.ts";
import { type SnapshotItems, type UsageBounds, usageBook } from "../buckets/embedded/usage-book.ts";
import type { CountUsage } from "../buckets/embedded/usage-tally.ts";
import { linkInRecord } from "../buckets/link.ts";
import { wholeClock } from "../domain/whole-clock.ts";
import { lifeKeys, wasDeleted } from "../records/entities/deletion-mark.ts";
import { entityKey, namespaceIdKey } from "../records/keys.ts";
import { refuseInactive } from "../records/namespaces/namespace-state.ts";
import type { RecordContext } from "../records/record-context.ts";
import type { Item, Key } from "../storage/item.ts";
import type { ItemStore } from "../storage/item-store.ts";
import { MemoryItemStore } from "../storage/memory/item-store.ts";
import type { DynamoOptions, OpenOptions } from "./options.ts";
import { serverClock } from "./server-clock.ts";
import { memorySnapshots, sqliteSnapshots } from "./snapshot-items.ts";
import type { StoreLocation } from "./store-url.ts";
import { usageBounds } from "./usage-options.ts";

/**
 * What a store can do.
 *
 * @example
 * ```ts
 * import { Repository, type BackendCapabilities } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * const { supportsInfrastructureManagement }: BackendCapabilities = repo.capabilities;
 * console.log(supportsInfrastructureManagement); // false
 * await repo.close();
 * ```
 */
export interface BackendCapabilities {
  /** Whether changes are written to an audit log. */
  readonly supportsAuditLogging: boolean;
  /** Whether usage can be counted and read. */
  readonly supportsUsageSnapshots: boolean;
  /** Whether `Repository.provision` can deploy it. */
  readonly supportsInfrastructureManagement: boolean;
  /** Whether the store has a stream of changes that another process can read. */
  readonly supportsChangeStreams: boolean;
  /** Whether several items can be read or written in one request. */
  readonly supportsBatchOperations: boolean;
}

/** An open store, and what is known of it. */
export interface Backend {
  readonly kind: StoreLocation["kind"];
  /** The table on DynamoDB; the file on SQLite. */
  readonly name: string;
  readonly store: ItemStore;
  readonly clock: Clock;
  /** Where ids come from, unless a source was passed in. */
  readonly random: Random;
  readonly capabilities: BackendCapabilities;
  /** The buckets of one namespace. */
  openBuckets(context: RecordContext, options: BucketOptions): BucketStore;
}

/** What every bucket store is given. */
type BucketOptions = DistributedBucketStoreOptions;

export async function openBackend(
  location: StoreLocation,
  options: DynamoOptions,
): Promise<Backend> {
  const clock = clockOf(options);
  const { kind } = location;
  const random = options.random ?? (kind === "memory" ? processRandom : systemRandom);
  const { timeoutMs, onCall } = options;
  const shared = { clock, random, ...defined({ timeoutMs, onCall }) };
  if (kind === "memory") {
    const store = new MemoryItemStore(shared);
    const items = memorySnapshots(store);
    const countUsage = usageCounter(items, usageBounds(kind, options.usage));
    return {
      ...partsOf(kind, "memory", store, shared, options.usage !== false),
      openBuckets: (context, bucketOptions) => {
        const { namespaceId } = context;
        const table = new MemoryBucketTable({
          ...recordsIn((key) => store.readNow(key), namespaceId),
          namespaceId,
          clock,
          countUsage,
          items,
          refuseClosed: () => store.refuseClosed(),
        });
        return new EmbeddedBucketStore(table, { clock, random, ...bucketOptions });
      },
    };
  }
  if (kind === "sqlite") {
    const { openSqlite } = await import("../storage/sqlite/connection.ts");
    const { ItemRows } = await import("../storage/sqlite/item-rows.ts");
    const { Housekeeping } = await import("../storage/sqlite/housekeeping.ts");
    const { SqliteBucketTable } = await import("../buckets/embedded/sqlite-table.ts");
    const { store, database } = await openSqlite({ path: location.path, ...shared });
    const rows = new ItemRows(database);
    const snapshots = sqliteSnapshots(rows, new Housekeeping(database, rows), clock);
    const countUsage = usageCounter(snapshots, usageBounds(kind, options.usage));
    return {
      ...partsOf(kind, location.path, store, shared, options.usage !== false),
      openBuckets: ({ namespaceId }, bucketOptions) => {
        const records = recordsIn((key) => rows.read(key)?.item, namespaceId);
        const place = { database, namespaceId, clock, countUsage, items: snapshots };
        const table = new SqliteBucketTable({ ...place, ...records });
        return new EmbeddedBucketStore(table, { clock, random, ...bucketOptions });
      },
    };
  }
  const { DynamoItemStore } = await import("../storage/dynamodb/item-store.ts");
  const store = new DynamoItemStore({ ...dynamoOptions(location, options), ...shared });
  // A clock that was passed in is an argument, not a machine's clock: it is never corrected.
  const corrected = options.clock === undefined ? serverClock(clock, store) : clock;
  return backendOver(kind, location.table, store, corrected);
}

/** The clock that was passed in, made whole; else the one of this machine. */
export function clockOf(options: OpenOptions): Clock {
  return options.clock === undefined ? systemClock : wholeClock(options.clock);
}

/** Opens buckets that several processes share; loaded with the first store that needs them. */
async function sharedBuckets(): Promise<Backend["openBuckets"]> {
  const { DistributedBucketStore } = await import(
    "../buckets/distributed/distributed-bucket-store.ts"
  );
  return (context, options) => new DistributedBucketStore(context, options);
}

/** Wraps an open store. Tests with virtual time pass the buckets: they cannot await an import. */
export async function backendOver(
  kind: Backend["kind"],
  name: string,
  store: ItemStore,
  clock: Clock,
  openBuckets?: Backend["openBuckets"],
): Promise<Backend> {
  return {
    // Other processes may use the store too, whatever it is.
    ...partsOf(kind, name, store, { clock, random: systemRandom }),
    openBuckets: openBuckets ?? (await sharedBuckets()),
  };
}

function partsOf(
  kind: Backend["kind"],
  name: string,
  store: ItemStore,
  { clock, random }: Pick<Backend, "clock" | "random">,
  keepsUsage = true,
): Omit<Backend, "openBuckets"> {
  return { kind, name, store, clock, random, capabilities: capabilitiesOf(kind, keepsUsage) };
}

/** What buckets read of the records of their entity, without leaving the step of the caller. */
function recordsIn(read: (key: Key) => Item | undefined, namespaceId: string) {
  return {
    /**
     * Returns the parent of an entity. A bucket is created only after this, so a namespace that was
     * deleted is refused here: nothing would ever remove its bucket.
     */
    recordedLink: (entityId: string) => {
      refuseInactive(namespaceId, read(namespaceIdKey(namespaceId)));
      return linkInRecord(read(entityKey(namespaceId, entityId)));
    },
    /** Returns whether an entity or its namespace was deleted. */
    wasDeleted: (entityId: string) => {
      const [mark, namespace] = lifeKeys(namespaceId, entityId);
      return wasDeleted(read(mark), read(namespace));
    },
  };
}

/** Counts usage, or nothing where none is kept. */
function usageCounter(items: SnapshotItems, bounds: UsageBounds | undefined): CountUsage {
  return bounds === undefined ? () => undefined : usageBook(items, bounds);
}

/** Where the table is: options beat the URL. */
export function dynamoOptions(
  location: Extract<StoreLocation, { kind: "dynamodb" }>,
  options: DynamoOptions,
) {
  const region = options.region ?? location.region;
  const endpoint = options.endpoint ?? location.endpoint;
  const { credentials, requestHandler, maxAttempts, transport } = options;
  const { table } = location;
  return defined({ table, region, endpoint, credentials, requestHandler, maxAttempts, transport });
}

function capabilitiesOf(kind: StoreLocation["kind"], keepsUsage: boolean): BackendCapabilities {
  return Object.freeze({
    supportsAuditLogging: true,
    supportsUsageSnapshots: keepsUsage,
    supportsInfrastructureManagement: kind === "dynamodb",
    supportsChangeStreams: true,
    supportsBatchOperations: true,
  });
}
