/**
 * The port to the buckets of an embedded store: rows that are read and written in one step.
 *
 * `EmbeddedBucketStore` is the only caller:
 *
 * 1. The slow path passes its work to `step`, or to `peek` when it only reads, and calls the other
 *    members from inside the work: it reads every row that it needs, then writes.
 * 2. A step may run again from the start when it was undone, and must name the same rows each time:
 *    ids and random values are made before it.
 * 3. A write to a row that replaces another hour, or removes limits, comes after `countUsage` of
 *    what the row has not counted yet.
 * 4. Before the first bucket of an entity is written, `recordedLink` is called, which refuses a
 *    namespace that was deleted; a late adjustment asks `wasDeleted` first.
 */

import type { Outcome, PlainRequest } from "../bucket-consumer.ts";
import type { Adjustment, Link } from "../leg.ts";
import type { Bucket } from "./bucket.ts";
import type { StepItems } from "./row-operation.ts";
import type { PendingUsage } from "./usage-book.ts";

export interface BucketId {
  readonly entityId: string;
  readonly resource: string;
}

/** One row with its key. */
export interface BucketRow extends BucketId {
  readonly bucket: Bucket;
}

/** The buckets of one namespace. All calls are synchronous, within `step` or `peek`. */
export interface BucketTable {
  readonly namespaceId: string;
  /** The items of the store, for what is recorded together with a row. */
  readonly items: StepItems;
  /** Returns a copy of a row, which the step may change. */
  get(entityId: string, resource: string): Bucket | undefined;
  /** Writes a row; the bucket then belongs to the table. */
  set(entityId: string, resource: string, bucket: Bucket): void;
  /** Returns the rows of an entity; with `counts`, `countUsage` follows for each of them. */
  ofEntity(entityId: string, counts?: boolean): readonly BucketRow[];
  delete(entityId: string, resource: string): void;
  /** Removes what the list of an entity's rows may lack: rows that cannot be read. */
  deleteEntity(entityId: string): void;
  /** Returns a page of a resource's rows, by entity, after the given one; `counts` as above. */
  ofResource(resource: string, after: string | undefined, counts?: boolean): readonly BucketRow[];
  /** Returns a page of the resources that have buckets, after the given one; none at the end. */
  resources(after: string | undefined): readonly string[];
  /** Removes buckets of the namespace. Returns whether some may be left, for another call. */
  clear(): boolean;
  /** Adds the usage of a bucket to the snapshots. */
  countUsage(entityId: string, resource: string, usage: PendingUsage): void;
  /** Returns the link in the entity's own record. */
  recordedLink(entityId: string): Link;
  /** Whether the entity or its namespace was deleted, so that no bucket may be created. */
  wasDeleted(entityId: string): boolean;
  /**
   * Runs the work as one atomic step; it may run again when it was undone. `first` are the rows
   * that it begins with: a table behind a network reads them together, and runs work
   * without a result once for a token. In this process the outcome of a step is always known.
   */
  step<T>(
    work: () => T,
    timeoutMs: number | undefined,
    first?: readonly BucketId[],
    token?: string,
  ): Promise<T>;
  /** Runs work that only reads; the rows that it begins with are as of one moment. */
  peek<T>(work: () => T, timeoutMs: number | undefined, first?: readonly BucketId[]): Promise<T>;
}

/**
 * A table in this process, which also decides ordinary calls (`ordinary-call.ts`). They come
 * outside of any step: each is a step of its own, or does nothing.
 */
export interface OrdinaryTable extends BucketTable {
  /** Whether other processes may write to the store. */
  readonly isShared: boolean;
  /** Decides an ordinary call, as `BucketConsumer.tryNow` does. */
  tryConsume(
    request: PlainRequest,
    generation: number,
    ignoresMissing: boolean,
    totals: boolean,
  ): Outcome | Promise<Outcome | undefined> | undefined;
  /** Adjusts a bucket; false, with nothing done: the adjustment is not ordinary. */
  tryAdjust(adjustment: Adjustment): boolean | Promise<boolean>;
}
