/**
 * The port to the buckets of one namespace, in the domain's verbs; each reader has its part. Parts
 * that not every store has are objects: a reader asks once whether there is one.
 */

import type { UncountedUsage } from "../records/usage/usage.ts";
import type { BucketAdmin } from "./bucket-admin.ts";
import type { BucketConsumer } from "./bucket-consumer.ts";
import type { BucketTransfer } from "./bucket-transfer.ts";
import type { PythonStamps } from "./python-stamps.ts";

export interface BucketStore extends BucketConsumer, BucketAdmin {
  /** `undefined` where clients of the Python library cannot use the store. */
  readonly pythonStamps: PythonStamps | undefined;
  /** Read by `UsageRecords` before snapshots; `undefined` where an aggregator counts usage. */
  readonly uncountedUsage: UncountedUsage | undefined;
  /** Moves buckets to another store, and takes them from one. */
  readonly transfer: BucketTransfer;
}
