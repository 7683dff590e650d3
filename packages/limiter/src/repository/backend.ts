/** An open store as its kind hands it to the repository, and the parts that all kinds share. */

import { defined } from "../base/defined.ts";
import { type Random, systemRandom } from "../base/random.ts";
import { type Clock, systemClock } from "../base/time.ts";
import type { BucketStore } from "../buckets/bucket-store.ts";
import type { DistributedBucketStoreOptions } from "../buckets/distributed/distributed-bucket-store.ts";
import type { TableTraits } from "../buckets/distributed/table-traits.ts";
import { show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import type { RecordContext } from "../records/record-context.ts";
import type { ChangeSource } from "../storage/change-source.ts";
import type { CallListener, ItemStore } from "../storage/item-store.ts";
import type { ScanStore } from "../storage/scan-store.ts";
import type { OpenOptions } from "./options.ts";

/**
 * Abilities of a store. Nearly all are the same for every store.
 *
 * @deprecated Kept for programs that read `repo.capabilities`.
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

/** Properties that all stores of a kind have; code for any store asks for these, not for a kind. */
export interface StoreTraits {
  /** Several processes can use one store; otherwise it ends with the process that opened it. */
  readonly isShared: boolean;
  /** Opening a store writes its version and its namespaces where they are missing. */
  readonly createsItself: boolean;
  /**
   * Writes per second that one partition takes. `undefined`: the store has no partitions, so a
   * bucket is never split.
   */
  readonly writesPerPartition: number | undefined;
}

/** A store as telemetry names it. */
export interface DatabaseName {
  /** The value of `db.system.name`. */
  readonly system: string;
  /** The value of `db.collection.name`, where the database has a name for it. */
  readonly table?: string;
}

/** An open store, and what is known of it. */
export interface Backend {
  /** The table on DynamoDB; the file on SQLite. */
  readonly name: string;
  readonly database: DatabaseName;
  readonly traits: StoreTraits;
  readonly store: ItemStore;
  /** The store, where it can return everything that it holds: migrations need that. */
  readonly scannable: ScanStore | undefined;
  /** How an aggregator follows the changes of the store. */
  readonly changes: ChangeSource;
  readonly clock: Clock;
  /** Source of ids, unless one was passed in. */
  readonly random: Random;
  /** Whether usage is counted: `usage: false` switches it off where the store counts it itself. */
  readonly countsUsage: boolean;
  /** Opens the buckets of one namespace. */
  openBuckets(context: RecordContext, options: BucketOptions): BucketStore;
}

/** Options that every bucket store is given. */
type BucketOptions = Omit<DistributedBucketStoreOptions, keyof TableTraits>;

/** Returns the clock that was passed in, made whole; else the one of this machine. */
export function clockOf(options: OpenOptions): Clock {
  return options.clock === undefined ? systemClock : wholeClock(options.clock);
}

/** Options that every adapter takes. */
export interface AdapterOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly timeoutMs?: number;
  readonly onCall?: CallListener;
}

/** Returns the options of an adapter; `random` is used where the caller passed none. */
export function adapterOptions(
  options: OpenOptions,
  random: Random = systemRandom,
): AdapterOptions {
  const { timeoutMs, onCall } = options;
  const clock = clockOf(options);
  return { clock, random: options.random ?? random, ...defined({ timeoutMs, onCall }) };
}

/**
 * Returns a clock from a user, made whole: a fraction of a millisecond would turn tokens into
 * fractions, and what is no number at all would empty a bucket for good.
 */
export function wholeClock(clock: Clock): Clock {
  return () => {
    const nowMs = Math.floor(clock());
    if (Number.isSafeInteger(nowMs)) return nowMs;
    throw new ValidationError("clock", nowMs, `expected epoch milliseconds, got ${show(nowMs)}`);
  };
}
