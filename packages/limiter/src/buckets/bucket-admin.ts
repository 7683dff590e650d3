/**
 * The port of administration: listing, following changes of records, operators, deletion.
 *
 * Each actor calls it in this order:
 *
 * 1. `LimitRecords` stores limits of an entity; its follower then calls `list` for the live buckets
 *    and `reconfigure` for each of them.
 * 2. `EntityRecords` stores an entity with its parent; its follower then calls `relink`. It deletes
 *    the limits of an entity first, then calls `deleteEntity`, and removes the record last.
 * 3. `BalanceOperations` checks the names of limits, with `list` where none are stored, then calls
 *    `operate`, whose records make it happen once.
 * 4. `NamespaceRecords` marks a namespace as purged, calls `deleteAll`, then deletes its items.
 * 5. `BucketRecords` and the dashboard call the three lists at any time.
 */

import type { PeriodRule } from "../core/period-rule.ts";
import type { Operation, OperationResult } from "../records/operation-record.ts";
import type { Item } from "../storage/item.ts";
import type { BucketConfig, Link, SeenPeriod } from "./leg.ts";

/** One limit of one bucket, as it is stored. */
export interface StoredState {
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
  readonly shardCount: number;
  readonly limitName: string;
  readonly capacityMilli: number;
  readonly refillMilli: number;
  readonly periodMs: number;
  readonly balanceMilli: number;
  readonly consumedMilli: number | bigint;
  readonly refilledAtMs: number;
  /** Absent where the limit refills evenly. */
  readonly rule?: PeriodRule | undefined;
  /** The period in force; absent also where a session is not open. */
  readonly period?: SeenPeriod | undefined;
  /** The number of slots that each holder has; absent where none are held. */
  readonly holders?: Readonly<Record<string, number>>;
}

/** The result of a deletion of buckets. */
export interface DeletedBuckets {
  readonly count: number;
  /** The latest base time among them; 0 where no stream reports buckets. */
  readonly lastBaseMs: number;
}

/** A change of balances by an operator, made once per key. */
export interface BalanceOperation extends Operation {
  /** Milli-tokens to add to a limit, at most up to full; `undefined` leaves it alone. */
  readonly additionOf: (limitName: string) => number | undefined;
  /** The items that record the operation, the one of its key first; written with the balances. */
  readonly recordsOf: (
    result: OperationResult,
    made: { readonly incarnation: string; readonly nowMs: number },
  ) => readonly Item[];
}

export interface BucketAdmin {
  list(entityId: string, resource?: string): Promise<StoredState[]>;
  listResource(resource: string): AsyncIterable<StoredState>;
  /** Lists all buckets of the namespace; the shards of a bucket need not follow each other. */
  listAll(): AsyncIterable<StoredState>;
  /** Brings live buckets of an entity in line with limits that were just stored. */
  reconfigure(entityId: string, resource: string, config: BucketConfig): Promise<void>;
  /**
   * Writes the parent of an entity into its live buckets. Those that carry an owner's stamp of the
   * Python library are left to `PythonStamps`.
   */
  relink(entityId: string, link: Link): Promise<void>;
  /** Resets or tops up the balances of a bucket, all shards or none, once per key. */
  operate(operation: BalanceOperation): Promise<OperationResult>;
  /**
   * Removes what the purge of a namespace's items does not find: rows that are no items, and the
   * cached states of this process.
   */
  deleteAll(): Promise<void>;
  /** Removes all buckets of an entity. */
  deleteEntity(entityId: string): Promise<DeletedBuckets>;
}
