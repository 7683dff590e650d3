/**
 * Where an embedded store keeps its buckets: rows that are read and written in one step.
 *
 * `EmbeddedBucketStore` and its fast path are the only callers:
 *
 * 1. The slow path passes its work to `step`, or to `peek` when it only reads, and calls the other
 *    members from inside the work: it reads every row that it needs, then writes.
 * 2. A step may run again from the start when it was undone, and must name the same rows each time:
 *    ids and random values are made before it.
 * 3. A write to a row that replaces another hour, or removes limits, comes after `countUsage` of
 *    what the row has not counted yet.
 * 4. Before the first bucket of an entity is written, `recordedLink` is called, which refuses a
 *    namespace that was deleted; a late adjustment asks `wasDeleted` first.
 * 5. The fast path calls `remember`, `consume`, `adjust` and `adjustShared` outside of any step:
 *    each is a step of its own, or does nothing.
 */

import type { AdjustedBucket, FastOutcome, FastRequest } from "../fast-path.ts";
import type { Link } from "../leg.ts";
import type { EmbeddedBucket } from "./embedded-bucket.ts";
import type { FastConfig } from "./packed-bucket.ts";
import type { StepItems } from "./row-operation.ts";
import type { PendingUsage } from "./usage-tally.ts";

/** One row with its key. */
export interface BucketRow {
  readonly entityId: string;
  readonly resource: string;
  readonly bucket: EmbeddedBucket;
}

/** The buckets of one namespace. All calls are synchronous, within `step` or `peek`. */
export interface BucketTable {
  /** Other processes may write to the store; what this one does is noticed at once. */
  readonly isShared: boolean;
  readonly namespaceId: string;
  /** The items of the store, for what is recorded together with a row. */
  readonly items: StepItems;
  get(entityId: string, resource: string): EmbeddedBucket | undefined;
  set(entityId: string, resource: string, bucket: EmbeddedBucket): void;
  /** Consumes from a bucket on the fast path; `undefined`, with nothing done: the slow path. */
  consume(
    request: FastRequest,
    generation: number,
    ignoresMissing: boolean,
  ): FastOutcome | Promise<FastOutcome | undefined> | undefined;
  /** Adjusts a bucket on the fast path; false, with nothing done: use the slow path. */
  adjust(bucket: AdjustedBucket, deltasMilli: readonly number[], acquires: number): boolean;
  /** Adjusts together with other writes of this turn; absent where writes need no sharing. */
  adjustShared?(
    bucket: AdjustedBucket,
    deltasMilli: readonly number[],
    acquires: number,
  ): Promise<boolean>;
  /** Says which limits are in force for a bucket, and until when: the fast path needs them. */
  remember(entityId: string, resource: string, fast: FastConfig, untilMs: number): void;
  ofEntity(entityId: string): readonly BucketRow[];
  delete(entityId: string, resource: string): void;
  /** Removes what the list of an entity's rows may lack: rows that cannot be read. */
  deleteEntity(entityId: string): void;
  /** A page of a resource's buckets, by entity, after the given one. */
  ofResource(resource: string, after: string | undefined): readonly BucketRow[];
  /** The resources that have buckets. */
  resources(): readonly string[];
  clear(): void;
  /** Puts what a bucket consumed into the snapshots of usage. */
  countUsage(entityId: string, resource: string, usage: PendingUsage): void;
  /** The link in the entity's own record. */
  recordedLink(entityId: string): Link;
  /** Whether the entity or its namespace was deleted, so that no bucket may be created. */
  wasDeleted(entityId: string): boolean;
  /** Runs the work as one atomic step; it may run again when it was undone. */
  step<T>(work: () => T, timeoutMs: number | undefined): Promise<T>;
  /** Runs work that only reads. */
  peek<T>(work: () => T, timeoutMs: number | undefined): Promise<T>;
}
