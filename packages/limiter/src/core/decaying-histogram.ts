/**
 * Estimates quantiles of recent numbers, in buckets that grow by a fixed factor: adding a number
 * and reading a quantile cost the same however many numbers came. Older numbers lose weight.
 */

/** Four buckets per doubling: a quantile is at most a fifth too high. */
const BUCKETS_PER_DOUBLING = 4;
/** Up to 2^22 tokens. */
const BUCKETS = 22 * BUCKETS_PER_DOUBLING + 1;
/** A number loses half of its weight when 200 more have come. */
const GROWTH = 2 ** (1 / 200);
const WEIGHT_MAX = 1e12;

export class DecayingHistogram {
  readonly #weights = new Float64Array(BUCKETS);
  #total = 0;
  #count = 0;
  /** The weight of the next number: growing it is the same as shrinking all others. */
  #nextWeight = 1;

  /** How many numbers were added. */
  get count(): number {
    return this.#count;
  }

  add(value: number): void {
    this.#count += 1;
    const at = Math.ceil(Math.log2(Math.max(1, value)) * BUCKETS_PER_DOUBLING);
    const bucket = Math.min(BUCKETS - 1, at);
    this.#weights[bucket] = (this.#weights[bucket] as number) + this.#nextWeight;
    this.#total += this.#nextWeight;
    this.#nextWeight *= GROWTH;
    if (this.#nextWeight > WEIGHT_MAX) this.#shrink();
  }

  /** Returns the smallest bucket bound that the given share of the weight does not exceed. */
  quantile(share: number): number {
    const wanted = share * this.#total;
    let below = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
      below += this.#weights[bucket] as number;
      if (below >= wanted) return Math.ceil(2 ** (bucket / BUCKETS_PER_DOUBLING));
    }
    return Math.ceil(2 ** ((BUCKETS - 1) / BUCKETS_PER_DOUBLING));
  }

  #shrink(): void {
    for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
      this.#weights[bucket] = (this.#weights[bucket] as number) / this.#nextWeight;
    }
    this.#total /= this.#nextWeight;
    this.#nextWeight = 1;
  }
}
