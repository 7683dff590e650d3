/** How much output a call is expected to have: learned from earlier calls, or set by an option. */

import { LRUCache } from "lru-cache";
import { DecayingHistogram } from "./decaying-histogram.ts";

/** `learned`: from earlier calls. `max`: the `max_tokens` of the request. A number: that many. */
export type Reserve = "learned" | "max" | number;

/** The estimate before anything was learned, and without a `max_tokens`. */
export const COLD_START_TOKENS = 500;
/** The share of calls whose output the estimate covers; the others go into debt for a moment. */
const LEARNED_QUANTILE = 0.6;
/** Resources are models, and in a gateway clients choose their names. */
const RESOURCES_MAX = 1000;

export class OutputEstimate {
  readonly #reserve: Reserve;
  readonly #learned = new LRUCache<string, DecayingHistogram>({ max: RESOURCES_MAX });

  constructor(reserve: Reserve) {
    this.#reserve = reserve;
  }

  /** Returns the tokens to consume for an output that cannot be longer than `max`. */
  of(resource: string, max: number | undefined): number {
    if (this.#reserve === "max") return max ?? COLD_START_TOKENS;
    const expected = this.#reserve === "learned" ? this.#expected(resource) : this.#reserve;
    return max === undefined ? expected : Math.min(expected, max);
  }

  /** Learns what a call really used. */
  learn(resource: string, output: number): void {
    if (this.#reserve !== "learned") return;
    let histogram = this.#learned.get(resource);
    if (histogram === undefined) {
      histogram = new DecayingHistogram();
      this.#learned.set(resource, histogram);
    }
    histogram.add(output);
  }

  #expected(resource: string): number {
    const histogram = this.#learned.get(resource);
    return histogram === undefined ? COLD_START_TOKENS : histogram.quantile(LEARNED_QUANTILE);
  }
}
