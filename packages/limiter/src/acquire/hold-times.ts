/** How long slots were held lately, by bucket: by that a refused call estimates its wait. */

import { boundedMap } from "../base/bounded-map.ts";
import { DecayingHistogram } from "../core/decaying-histogram.ts";
import { type BucketName, bucketId } from "../records/keys.ts";

/** Buckets whose holds are remembered. */
const BUCKETS_MAX = 1000;
const MEDIAN = 0.5;

export class HoldTimes {
  readonly #holds = boundedMap<DecayingHistogram>(BUCKETS_MAX);

  /** Adds a hold that has ended. */
  add(bucket: BucketName, heldMs: number): void {
    const name = bucketId(bucket);
    const known = this.#holds.get(name);
    const holds = known ?? new DecayingHistogram();
    if (known === undefined) this.#holds.set(name, holds);
    holds.add(Math.max(1, heldMs));
  }

  /** Returns the median of the holds of a bucket, in milliseconds; `undefined`: none has ended. */
  median(bucket: BucketName): number | undefined {
    return this.#holds.get(bucketId(bucket))?.quantile(MEDIAN);
  }
}
