/** Buckets in the images of a change, as far as they can be read. */

import {
  decoded,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { DamagedRecordError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";

/**
 * Returns the bucket in an item. A damaged one is none: it has no periods and no debts, and its
 * consumption counts.
 */
export function readableBucket(item: Item): SeenBucket | undefined {
  try {
    return decoded(item);
  } catch (error) {
    if (error instanceof DamagedRecordError) return undefined;
    throw error;
  }
}
