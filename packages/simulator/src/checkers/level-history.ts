/** The level of an ideal bucket over the last seconds, and the least it was between two moments. */

/** Milliseconds of landings that are one entry. */
const SLOT_MS = 10;
/** No call takes longer. */
const KEPT_MS = 15_000;

interface Entry {
  readonly atMs: number;
  least: number;
  /** Consumption since `atMs`, refunds left out. */
  consumed: number;
  /** After the last landing, at `lastMs`. */
  last: number;
  lastMs: number;
}

export class LevelHistory {
  readonly #capacity: number;
  readonly #perMs: number;
  #entries: Entry[];

  /** Amounts are milli-tokens. The bucket begins full. */
  constructor(rate: { capacity: number; refill: number; period: number }, nowMs: number) {
    this.#capacity = rate.capacity;
    this.#perMs = rate.refill / rate.period;
    const { capacity } = rate;
    this.#entries = [{ atMs: nowMs, least: capacity, consumed: 0, last: capacity, lastMs: nowMs }];
  }

  /**
   * Records a consumption, or a refund if the amount is negative. `levelMilli` is the level after
   * it, if known.
   */
  take(amountMilli: number, nowMs: number, levelMilli = Number.POSITIVE_INFINITY): void {
    const entry = this.#entries.at(-1) as Entry;
    const ideal = Math.min(this.#capacity, this.#project(entry, nowMs) - amountMilli);
    const level = Math.min(ideal, levelMilli);
    if (nowMs - entry.atMs < SLOT_MS) {
      entry.least = Math.min(entry.least, level);
      entry.consumed += Math.max(0, amountMilli);
      entry.last = level;
      entry.lastMs = nowMs;
      return;
    }
    const consumed = Math.max(0, amountMilli);
    this.#entries.push({ atMs: nowMs, least: level, consumed, last: level, lastMs: nowMs });
    if (this.#entries.length % 1024 === 0) this.#forgetOld(nowMs);
  }

  /** Whether something has landed since. */
  hasChangedSince(fromMs: number): boolean {
    return (this.#entries.at(-1) as Entry).lastMs > fromMs;
  }

  /** Returns the least level from `fromMs` to `toMs`. */
  least(fromMs: number, toMs: number): number {
    let at = this.#entries.length - 1;
    let least = Number.POSITIVE_INFINITY;
    for (; at >= 0; at -= 1) {
      const entry = this.#entries[at] as Entry;
      if (entry.lastMs <= fromMs) break;
      if (entry.atMs <= toMs) least = Math.min(least, entry.least);
    }
    const before = this.#entries[at];
    // Before the first landing the bucket was full.
    return Math.min(least, before === undefined ? this.#capacity : this.#project(before, fromMs));
  }

  /**
   * Returns the least level that a client may have seen which read shards one by one from `fromMs`
   * to `toMs`: with what was consumed since, and nothing of what was refunded.
   */
  leastSeen(fromMs: number, toMs: number): number {
    let seen = this.least(fromMs, fromMs);
    for (let at = this.#entries.length - 1; at >= 0; at -= 1) {
      const { atMs, lastMs, consumed } = this.#entries[at] as Entry;
      if (lastMs <= fromMs) break;
      if (atMs <= toMs) seen -= consumed;
    }
    return Math.min(seen, this.least(fromMs, toMs));
  }

  #project({ last, lastMs }: Entry, nowMs: number): number {
    return Math.min(this.#capacity, last + Math.max(0, nowMs - lastMs) * this.#perMs);
  }

  #forgetOld(nowMs: number): void {
    this.#entries = this.#entries.filter(({ lastMs }) => nowMs - lastMs < KEPT_MS);
  }
}
