/** Applies planned writes to buckets, without a store. */

import {
  decoded,
  encodeShard,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import type { WritePlan } from "@zae-limiter/limiter/buckets/distributed/plan/write-plan.ts";
import type { StoredLimit } from "@zae-limiter/limiter/records/bucket-item.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { planWrites } from "@zae-limiter/limiter/storage/plan-writes.ts";
import { NAMESPACE } from "@zae-limiter/test-support/table.ts";

export function itemOf(bucket: SeenBucket): Item {
  return encodeShard(NAMESPACE, bucket);
}

/** Returns the bucket after the write; `undefined` when its condition does not hold. */
export function written(bucket: SeenBucket, plan: WritePlan): SeenBucket | undefined {
  const item = writtenItem(itemOf(bucket), plan);
  return item === undefined ? undefined : decoded(item);
}

export function writtenItem(item: Item, { change, condition }: WritePlan): Item | undefined {
  const { PK, SK } = item;
  const [write] = planWrites([{ update: { PK, SK }, change, condition }], () => item).writes;
  return write?.ok === true ? write.after : undefined;
}

/** Returns a limit of a bucket that must have it. */
export function limitOf(bucket: SeenBucket | undefined, name = "a"): StoredLimit {
  const limit = bucket?.limits.get(name);
  if (limit === undefined) throw new Error(`the bucket has no limit ${name}`);
  return limit;
}
