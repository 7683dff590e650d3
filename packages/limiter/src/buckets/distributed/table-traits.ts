/** Traits of a DynamoDB table that buckets depend on, and that other item stores do not have. */

import type { Periods } from "../../domain/periods.ts";

/** Traits of the store that buckets are items of. */
export interface TableTraits {
  /**
   * Writes that a partition takes in a second: a bucket with more of them splits into shards.
   * `undefined` where the store has no partitions: buckets keep no meter and are never split. The
   * meter in an item counts a millisecond for each write, so there is no other number than 1,000.
   */
  readonly writesPerPartition: number | undefined;
  /** Whether clients of the Python library can use the store, so that buckets carry its stamps. */
  readonly isSharedWithPython: boolean;
}

/** Settings that every write to a bucket follows. */
export interface BucketRules extends TableTraits {
  /** An idle bucket is kept this many times its time to fill; 0: without end. */
  readonly ttlMultiplier: number;
  /** Computes the edges of quotas; those of this Node when absent. */
  readonly periods?: Periods | undefined;
}

export const WRITES_PER_PARTITION = 1000;

export const DYNAMODB_TRAITS: TableTraits = {
  writesPerPartition: WRITES_PER_PARTITION,
  isSharedWithPython: true,
};

/** Traits of a custom item store. */
export const NO_TRAITS: TableTraits = { writesPerPartition: undefined, isSharedWithPython: false };
