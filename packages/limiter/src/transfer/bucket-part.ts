/** The buckets of a namespace as rows of a copy. */

import {
  areAlike,
  type BucketTransfer,
  baseOf,
  type WholeBucket,
} from "../buckets/bucket-transfer.ts";
import type { Part, Side } from "./side.ts";

export interface BucketPart extends Part<WholeBucket> {
  /** Returns how many limits of the source, as it was listed last, only Python enforces. */
  leftBehind(): number;
}

/** Returns the buckets of both sides, whose shards are joined as of a time. */
export function bucketPart(
  source: BucketTransfer,
  target: BucketTransfer,
  atMs: number,
): BucketPart {
  let left = 0;
  const onSource = sideOf(source, atMs);
  const list = async function* () {
    left = 0;
    for await (const bucket of onSource.list()) {
      left += bucket.unsupported?.length ?? 0;
      // Nothing can be kept of a bucket with limits of the Python library only.
      if (bucket.limits.length > 0 || bucket.unsupported === undefined) yield bucket;
    }
  };
  return {
    source: { ...onSource, list },
    leftBehind: () => left,
    target: sideOf(target, atMs),
    areAlike,
    kindOf: () => "buckets",
    nameOf: ({ entityId, resource }) => `the bucket of ${entityId} for ${resource}`,
    contentOf: (bucket) => bucket,
    stays: () => false,
  };
}

/** Returns the newest base time among the buckets of a namespace; 0 where there are none. */
export async function newestBase(buckets: BucketTransfer, atMs: number): Promise<number> {
  let newestMs = 0;
  for await (const bucket of buckets.all(atMs)) newestMs = Math.max(newestMs, baseOf(bucket));
  return newestMs;
}

function sideOf(buckets: BucketTransfer, atMs: number): Side<WholeBucket> {
  return {
    list: () => buckets.all(atMs),
    find: (rows) => buckets.some(rows, atMs),
    put: (rows) => buckets.put(rows),
    remove: (rows) => buckets.remove(rows),
  };
}
