/** The port of administration: listing, following changes of records, operators, deletion. */

import type { Operation, OperationResult } from "../records/operation-record.ts";
import type { Item } from "../storage/item.ts";
import type { BucketConfig, Link } from "./leg.ts";

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
}

/** What a deletion of buckets has removed. */
export interface DeletedBuckets {
  readonly count: number;
  /** The latest base time among them; 0 where no stream tells of buckets. */
  readonly lastBaseMs: number;
}

/** What the levels say about a bucket, for clients of the Python library. */
export interface FlagStamps {
  /** Absent: stamps of switches stay as they are. */
  readonly state?: "enabled" | "disabled" | "bypass";
  /** Absent: the stamps of the owner stay as they are. */
  readonly owner?: OwnerStamps;
  /** Whether each limit is soft; absent: the stamps of soft limits stay as they are. */
  readonly soft?: ReadonlyMap<string, boolean>;
}

/** Which parent a bucket cascades to, and the generation of its entity that says so. */
export interface OwnerStamps {
  readonly link: Link;
  readonly generation: number;
  readonly incarnation: string;
  /** Whether a policy or a move decides it, not the entity alone; Python clients need a stamp. */
  readonly isStamped: boolean;
}

/** The buckets to stamp: of an entity, of a resource, of both, or all of the namespace. */
export interface StampScope {
  readonly entityId?: string | undefined;
  readonly resource?: string | undefined;
  /** What the levels say about a bucket, as it is stored now. */
  readonly stampsOf: (entityId: string, resource: string) => Promise<FlagStamps>;
  readonly onStamped: () => void;
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
  /** The buckets of an entity. */
  list(entityId: string, resource?: string): Promise<StoredState[]>;
  /** The buckets of a resource. */
  listResource(resource: string): AsyncIterable<StoredState>;
  /** All buckets of the namespace; the shards of a bucket need not follow each other. */
  listAll(): AsyncIterable<StoredState>;
  /** Brings live buckets of an entity in line with limits that were just stored. */
  reconfigure(entityId: string, resource: string, config: BucketConfig): Promise<void>;
  /**
   * Tells live buckets of an entity which parent it has from now on. Returns whether all were told:
   * those that carry stamps of the Python library are left to `stamp`.
   */
  relink(entityId: string, link: Link): Promise<boolean>;
  /**
   * Writes what the levels say into live buckets, where clients of the Python library read it.
   * Returns false, with nothing done, on stores that such clients cannot use.
   */
  stamp(scope: StampScope): Promise<boolean>;
  /** Resets or tops up the balances of a bucket, all shards or none, once per key. */
  operate(operation: BalanceOperation): Promise<OperationResult>;
  /** Removes all buckets of the namespace that are not items of their own. */
  deleteAll(): Promise<void>;
  /** Removes all buckets of an entity. */
  deleteEntity(entityId: string): Promise<DeletedBuckets>;
  /** Adds usage that the buckets have counted to its snapshots, where no aggregator does it. */
  countUsage(scope: { readonly entityId?: string; readonly resource?: string }): Promise<void>;
}
