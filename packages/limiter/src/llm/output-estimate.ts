/** Estimates how much output a call will have: from earlier calls, or by an option. */

import { LRUCache } from "lru-cache";
import { DecayingHistogram } from "../core/decaying-histogram.ts";

/** `learned`: from earlier calls. `max`: the `max_tokens` of the request. A number: that many. */
export type Reserve = "learned" | "max" | number;

/** The bucket that a call consumes from. */
interface Bucket {
  readonly entityId: string;
  readonly resource: string;
}

/** The estimate before anything was learned, and without a `max_tokens`, in tokens. */
export const COLD_START_TOKENS = 500;
/** The share of calls whose output the estimate covers; the others go into debt for a moment. */
const LEARNED_QUANTILE = 0.6;
/** With fewer calls of its own, the estimate of an entity is that of all entities. */
const OWN_CALLS_MIN = 5;
/** Resources are models, and clients may choose their names. A histogram takes 1 KB. */
const RESOURCES_MAX = 1000;
const ENTITIES_MAX = 5000;

export class OutputEstimate {
  readonly #reserve: Reserve;
  readonly #byResource = new LRUCache<string, DecayingHistogram>({ max: RESOURCES_MAX });
  /** Keyed by entity and resource: one entity must not move the estimate of another. */
  readonly #byEntity = new LRUCache<string, DecayingHistogram>({ max: ENTITIES_MAX });

  constructor(reserve: Reserve) {
    this.#reserve = reserve;
  }

  /** Returns the tokens to consume for an output that cannot be longer than `max`. */
  of(bucket: Bucket, max: number | undefined): number {
    if (this.#reserve === "max") return max ?? COLD_START_TOKENS;
    const expected = this.#reserve === "learned" ? this.#expected(bucket) : this.#reserve;
    return max === undefined ? expected : Math.min(expected, max);
  }

  /** Learns how much output a call had. */
  learn(bucket: Bucket, output: number): void {
    if (this.#reserve !== "learned") return;
    histogramIn(this.#byResource, bucket.resource).add(output);
    histogramIn(this.#byEntity, keyOf(bucket)).add(output);
  }

  #expected(bucket: Bucket): number {
    const own = this.#byEntity.get(keyOf(bucket));
    const histogram =
      own === undefined || own.count < OWN_CALLS_MIN ? this.#byResource.get(bucket.resource) : own;
    return histogram?.quantile(LEARNED_QUANTILE) ?? COLD_START_TOKENS;
  }
}

/** Names have no line breaks. */
function keyOf({ entityId, resource }: Bucket): string {
  return `${entityId}\n${resource}`;
}

function histogramIn(cache: LRUCache<string, DecayingHistogram>, key: string): DecayingHistogram {
  let histogram = cache.get(key);
  if (histogram === undefined) {
    histogram = new DecayingHistogram();
    cache.set(key, histogram);
  }
  return histogram;
}
