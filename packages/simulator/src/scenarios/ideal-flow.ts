/** The theoretical maximum: what one bucket with complete knowledge grants of the same calls. */

/** A limit of one token per call. */
export interface FlowRate {
  readonly capacity: number;
  readonly perSecond: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

export class IdealFlow {
  readonly #buckets = new Map<string, Bucket>();
  readonly #rateOf: (id: string) => FlowRate;
  admitted = 0;

  constructor(rateOf: (id: string) => FlowRate) {
    this.#rateOf = rateOf;
  }

  /** Offers a call at `nowMs` that consumes one token of each of these, or nothing. */
  offer(ids: readonly string[], nowMs: number): void {
    const buckets = ids.map((id) => this.#filled(id, nowMs));
    if (buckets.some(({ tokens }) => tokens < 1)) return;
    for (const bucket of buckets) bucket.tokens -= 1;
    this.admitted += 1;
  }

  #filled(id: string, nowMs: number): Bucket {
    const { capacity, perSecond } = this.#rateOf(id);
    const bucket = this.#buckets.get(id) ?? { tokens: capacity, atMs: nowMs };
    this.#buckets.set(id, bucket);
    bucket.tokens = Math.min(capacity, bucket.tokens + ((nowMs - bucket.atMs) * perSecond) / 1000);
    bucket.atMs = nowMs;
    return bucket;
  }
}
