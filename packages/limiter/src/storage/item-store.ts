/**
 * The port to everything that stores items: what DynamoDB does, as data instead of expressions.
 *
 * A failed condition is a result that carries the stored item, not an exception. Exceptions are
 * `RateLimiterUnavailable` when the infrastructure failed (with `nothingWritten` when that is
 * certain, and `keyRange` when only the partition of that item was throttled),
 * `InfrastructureNotFoundError` when the table is missing, `ValidationError` for a request that
 * could never work, and `InfrastructureError` for anything else the store refused.
 *
 * Each actor calls it in this order:
 *
 * 1. Opening a repository reads the version record with `get` before anything else. Where there is
 *    none, it writes the version and the namespaces, each on condition that it is still absent.
 * 2. Records read with `get`, `getMany` or `query`, plan, and write with `transact` on condition
 *    that what they read is unchanged; when a condition fails, they begin again.
 * 3. Buckets write with `update` from what they remember, and decide again from the item that a
 *    failed condition returns. A `transact` with a token may be repeated: it is applied once.
 * 4. An aggregator calls `changes` with the position that it has stored last, and stores the next
 *    one after it has written what the changes amount to.
 * 5. The repository calls `close` last, after its buckets are closed; every later call is refused.
 */

import type { UnavailableReason } from "../domain/errors/errors.ts";
import type { Item, Key, Value } from "./item.ts";
import type { IndexName } from "./table.ts";

/** How an update changes an item; an item that is not there is created. */
export interface Change {
  /** Sets attributes. */
  readonly set?: Readonly<Record<string, Value>>;
  /** Sets attributes that are absent, and leaves the others as they are. */
  readonly setIfAbsent?: Readonly<Record<string, Value>>;
  /** Adds to numbers; an absent attribute counts as 0. */
  readonly add?: Readonly<Record<string, number | bigint>>;
  /** Removes attributes. */
  readonly remove?: readonly string[];
  /** Adds members to sets of texts; an absent attribute becomes a set. */
  readonly addToSet?: Readonly<Record<string, readonly string[]>>;
  /** A set that loses its last member is removed. */
  readonly deleteFromSet?: Readonly<Record<string, readonly string[]>>;
}

/** A value that comparisons take. */
export type Comparable = string | number | bigint | boolean;

/** One test of an item. A comparison with an absent attribute, or one of another type, fails. */
export type Test =
  | { readonly is: "exists"; readonly name: string }
  | { readonly is: "absent"; readonly name: string }
  | {
      readonly is: "=" | "<" | "<=" | ">" | ">=";
      readonly name: string;
      readonly value: Comparable;
      /** Absent passes too. */
      readonly orAbsent?: boolean;
    };

/** All tests must pass. Tests of an item that is not there see no attributes. */
export type Condition = readonly Test[];

/** Passes when the item is there. */
export const ITEM_EXISTS: Test = { is: "exists", name: "PK" };
/** Passes when the item is not there. */
export const ITEM_ABSENT: Test = { is: "absent", name: "PK" };

/** One write of a transaction. */
export type Write =
  | { readonly put: Item; readonly condition?: Condition | undefined }
  | { readonly update: Key; readonly change: Change; readonly condition?: Condition | undefined }
  | { readonly delete: Key; readonly condition?: Condition | undefined }
  | { readonly check: Key; readonly condition: Condition };

/**
 * `ok`: an update hands out the item after it, a delete the item before it, a put nothing.
 * Not `ok`: the condition failed, and `item` is what is stored.
 */
export interface WriteResult {
  /** Whether the condition held and the item was written. */
  readonly ok: boolean;
  /** The item as it is stored now; `undefined` where there is none. */
  readonly item: Item | undefined;
}

/** When a transaction fails: for each write whose condition failed, what is stored. */
export type TransactResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly failures: ReadonlyMap<number, { item: Item | undefined }> };

/** The most writes in one transaction, and the most keys in one snapshot. */
export const TRANSACT_MAX = 100;

/** How one request is made. */
export interface CallOptions {
  /** How long the call may take, retries included; the store's own setting when absent. */
  readonly timeoutMs?: number;
  /**
   * `raise`: a throttled key range is reported at once, because the caller may go elsewhere;
   * otherwise the request is repeated like any other that was throttled.
   */
  readonly hotKey?: "repeat" | "raise";
}

/** How an item is read. */
export interface ReadOptions extends CallOptions {
  /** See every write that was acknowledged before the read. */
  readonly consistent?: boolean;
}

/** How several items are read. */
export interface ReadManyOptions extends ReadOptions {
  /** All items as of one moment, as if read in a transaction; at most 100 keys. */
  readonly snapshot?: boolean;
}

/** How a transaction is made. */
export interface TransactOptions extends CallOptions {
  /** Makes a repetition of the same transaction harmless for ten minutes: it is applied once. */
  readonly token?: string;
}

/** Items of one partition of the table or an index, in the order of their sort key. */
export interface Query {
  /** The index to query; the table itself when absent. */
  readonly index?: IndexName;
  readonly partition: string;
  /** A condition on the sort key. */
  readonly sort?:
    | { readonly beginsWith: string }
    /** Both ends included; either may be left out. */
    | { readonly from?: string; readonly to?: string };
  /** Whether the largest sort key comes first. */
  readonly descending?: boolean;
  /** The most items to hand out. */
  readonly limit?: number;
  /** Continue after this item, which an earlier query handed out; its keys are enough. */
  readonly after?: Item;
  /** Not for indexes. */
  readonly consistent?: boolean;
}

/** One change of an item. */
export interface ChangeRecord {
  readonly key: Key;
  /** The item before the change; `undefined` when it was created. */
  readonly before: Item | undefined;
  /** The item after the change; `undefined` when it was removed. */
  readonly after: Item | undefined;
  /** Epoch milliseconds of the change. */
  readonly atMs: number;
  /** Removed by its time to live. */
  readonly expired: boolean;
  /** Records of one shard are in order; an item stays in its shard. */
  readonly shard: string;
  /** Increases within a shard. */
  readonly sequence: string;
  /** Position of this record: pass it as `after` to continue. */
  readonly position: string;
}

/** Beginning and end of a feed of changes. */
export interface ChangesOptions {
  /** `now` (default): only later changes; `oldest`: all that are kept; or after a position. */
  readonly from?: "now" | "oldest" | { readonly after: string };
  /** Ends the feed. */
  readonly signal?: AbortSignal;
}

/** One request to the store, as listeners see it. */
export interface StoreCall {
  /** The operation, such as `update`; on DynamoDB the name of the API call, as `UpdateItem`. */
  readonly operation: string;
  /** Read units that it consumed. */
  readonly readUnits: number;
  /** Table and indexes together. */
  readonly writeUnits: number;
  /** The part of `writeUnits` and `readUnits` that went to indexes. */
  readonly indexUnits: number;
  /** True when the units are computed from the item size: a failed condition reports none. */
  readonly estimated: boolean;
  /** The outcome; absent where the store is in this process. */
  readonly outcome?: CallOutcome;
  /** From sending the request to its answer, in milliseconds; absent like `outcome`. */
  readonly durationMs?: number;
  /** 1 for the first request of an operation, more where it was repeated; absent like `outcome`. */
  readonly attempt?: number;
}

/** `condition`: the condition did not hold; `refused`: the same request would be refused again. */
export type CallOutcome = "ok" | "condition" | "refused" | UnavailableReason;

/** Receives each request to a store. */
export type CallListener = (call: StoreCall) => void;

/** The port to a store of items. An adapter that passes its contract can carry a limiter. */
export interface ItemStore {
  /** Returns the item of a key, or `undefined`. */
  get(key: Key, options?: ReadOptions): Promise<Item | undefined>;
  /**
   * Returns items in the order of the keys; `undefined` where there is none. Any number of keys.
   */
  getMany(keys: readonly Key[], options?: ReadManyOptions): Promise<(Item | undefined)[]>;
  /** Writes a whole item where the condition holds. */
  put(item: Item, condition?: Condition, options?: CallOptions): Promise<WriteResult>;
  /** Changes attributes of an item where the condition holds, and creates it when it is absent. */
  update(
    key: Key,
    change: Change,
    condition?: Condition,
    options?: CallOptions,
  ): Promise<WriteResult>;
  /** Removes an item where the condition holds. */
  delete(key: Key, condition?: Condition, options?: CallOptions): Promise<WriteResult>;
  /** Makes all writes or none; at most 100, each to another item. */
  transact(writes: readonly Write[], options?: TransactOptions): Promise<TransactResult>;
  /** Makes any number of unconditional puts and deletes, not atomic, each key at most once. */
  writeMany(writes: {
    readonly puts?: readonly Item[];
    readonly deletes?: readonly Key[];
  }): Promise<void>;
  /** Pages are fetched as the iteration goes on; breaking off stops the fetching. */
  query(query: Query): AsyncIterable<Item>;
  /**
   * Returns the feed of old and new images, in order per item. It waits for more until it is
   * stopped.
   */
  changes(options?: ChangesOptions): AsyncIterable<ChangeRecord>;
  /**
   * Adds a listener for the requests that the store makes, and returns a function that removes it.
   * Optional: without it `onCall`, metrics and traces have no requests of this store to report.
   */
  listen?(listener: CallListener): () => void;
  /** Ends everything that the store has open. */
  close(): Promise<void>;
}
