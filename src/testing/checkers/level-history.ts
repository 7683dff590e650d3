/** The level of an ideal bucket over the last seconds, and the least it was between two moments. */

/** What lands within so many milliseconds is one entry. */
const SLOT_MS = 10;
/** No call takes longer. */
const KEPT_MS = 15_000;

interface Entry {
  readonly atMs: number;
  least: number;
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
    this.#entries = [{ atMs: nowMs, least: rate.capacity, last: rate.capacity, lastMs: nowMs }];
  }

  /** Something was consumed, or refunded when the amount is below zero. */
  take(amountMilli: number, nowMs: number): void {
    const entry = this.#entries.at(-1) as Entry;
    const level = Math.min(this.#capacity, this.#project(entry, nowMs) - amountMilli);
    if (nowMs - entry.atMs < SLOT_MS) {
      entry.least = Math.min(entry.least, level);
      entry.last = level;
      entry.lastMs = nowMs;
      return;
    }
    this.#entries.push({ atMs: nowMs, least: level, last: level, lastMs: nowMs });
    if (this.#entries.length % 1024 === 0) this.#forgetOld(nowMs);
  }

  /** The least level from `fromMs` to `toMs`. */
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

  #project({ last, lastMs }: Entry, nowMs: number): number {
    return Math.min(this.#capacity, last + Math.max(0, nowMs - lastMs) * this.#perMs);
  }

  #forgetOld(nowMs: number): void {
    this.#entries = this.#entries.filter(({ lastMs }) => nowMs - lastMs < KEPT_MS);
  }
}
