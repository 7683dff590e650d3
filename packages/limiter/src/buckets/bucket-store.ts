/** The port to the buckets of one namespace, in the domain's verbs; each reader has its part. */

import type { BucketAdmin } from "./bucket-admin.ts";
import type { BucketConsumer } from "./bucket-consumer.ts";
import type { FastPath } from "./fast-path.ts";

export interface BucketStore extends BucketConsumer, BucketAdmin {
  readonly fastPath: FastPath;
}
