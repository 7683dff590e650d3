/** Where an embedded store keeps its buckets: rows that are read and written in one step. */

import type { Link } from "../bucket-store.ts";
import type { EmbeddedBucket } from "./embedded-bucket.ts";

/** One row with its key. */
export interface BucketRow {
  readonly entityId: string;
  readonly resource: string;
  readonly bucket: EmbeddedBucket;
}

/** The buckets of one namespace. All calls are synchronous, within `step` or `peek`. */
export interface BucketTable {
  get(entityId: string, resource: string): EmbeddedBucket | undefined;
  set(entityId: string, resource: string, bucket: EmbeddedBucket): void;
  ofEntity(entityId: string): readonly BucketRow[];
  delete(entityId: string, resource: string): void;
  /** A page of a resource's buckets, by entity, after the given one. */
  ofResource(resource: string, after: string | undefined): readonly BucketRow[];
  clear(): void;
  /** The link in the entity's own record. */
  recordedLink(entityId: string): Link;
  /** Runs the work as one atomic step; it may run again when it was undone. */
  step<T>(work: () => T, timeoutMs: number | undefined): Promise<T>;
  /** Runs work that only reads. */
  peek<T>(work: () => T, timeoutMs: number | undefined): Promise<T>;
}
