/** The balance of a quota or a session over the last seconds, summed over its shards. */

import type { LimitOfShard, QuotaOfShard, ShardImage } from "./bucket-image.ts";
import { shareRate } from "./share.ts";

/** For so long a spent quota may refuse without a request. */
const KNOWN_SPENT_MS = 30_000;
/** That time, and no call takes longer than the rest. */
const KEPT_MS = 45_000;

/** The balance of a shard as a function of time. */
type LevelAt = (nowMs: number) => number;

interface Entry {
  readonly atMs: number;
  /** Shard by shard, until the next entry. */
  readonly levels: readonly LevelAt[];
  readonly consumed: number;
}

/**
 * Returns the balance of a shard: its share once the period is over, by the clock that is `skewMs`
 * behind.
 */
export function periodLevelOf(
  limit: LimitOfShard,
  { endMs, carry }: QuotaOfShard,
  { shard, count }: ShardImage,
  skewMs: number,
): LevelAt {
  const share = Number(shareRate(limit, shard, count).capacity);
  const tokens = Number(limit.tokens);
  const next = share + (carry.debt ? Math.min(0, tokens) : 0);
  return (nowMs) => (nowMs >= endMs + skewMs ? next : tokens);
}

export class PeriodHistory {
  readonly #capacity: number;
  #entries: Entry[] = [];
  /** The ends that each shard has had, in the order of their writes. */
  readonly #ends = new Map<number, number[]>();

  /** It begins full. */
  constructor(capacityMilli: number, nowMs: number) {
    this.#capacity = capacityMilli;
    this.#entries = [{ atMs: nowMs, levels: [() => capacityMilli], consumed: 0 }];
  }

  /** Records a consumption, or a refund if the amount is negative, with the balances after it. */
  take(amountMilli: number, nowMs: number, levels: readonly LevelAt[]): void {
    this.#entries.push({ atMs: nowMs, levels, consumed: Math.max(0, amountMilli) });
    if (this.#entries.length % 1024 === 0) {
      // The last one before that time says what held at its beginning.
      const from = this.#entries.findLastIndex(({ atMs }) => nowMs - atMs >= KEPT_MS);
      this.#entries = this.#entries.slice(Math.max(0, from));
    }
  }

  /** Records the end of the period of a shard. */
  show(shard: number, endMs: number): void {
    const ends = this.#ends.get(shard) ?? [];
    if (ends.at(-1) !== endMs) this.#ends.set(shard, [...ends.slice(-8), endMs]);
  }

  /** Removes a shard that was merged into another one. */
  drop(shard: number): void {
    this.#ends.delete(shard);
  }

  /**
   * Returns since when the knowledge of a process may be that refuses at `ms`: a spent quota is
   * known for half a minute, and never beyond the end of its period.
   */
  knownSinceMs(ms: number, skewMs: number): number {
    let sinceMs = ms;
    for (const ends of this.#ends.values()) {
      const passed = ends.filter((endMs) => endMs + skewMs <= ms);
      sinceMs = Math.min(sinceMs, passed.at(-1) ?? Number.NEGATIVE_INFINITY);
    }
    return Math.max(ms - KNOWN_SPENT_MS - skewMs, sinceMs);
  }

  hasChangedSince(fromMs: number): boolean {
    return (this.#entries.at(-1)?.atMs ?? 0) > fromMs;
  }

  /** Returns the least balance from `fromMs` to `toMs`. */
  least(fromMs: number, toMs: number): number {
    let least = (this.#entries[0]?.atMs ?? 0) > fromMs ? this.#capacity : Number.POSITIVE_INFINITY;
    this.#entries.forEach(({ atMs, levels }, at) => {
      const untilMs = this.#entries[at + 1]?.atMs ?? Number.POSITIVE_INFINITY;
      if (untilMs <= fromMs || atMs > toMs) return;
      // A balance changes only at its end in between.
      for (const ms of [Math.max(atMs, fromMs), Math.min(untilMs, toMs)]) {
        least = Math.min(
          least,
          levels.reduce((sum, level) => sum + level(ms), 0),
        );
      }
    });
    return least;
  }

  /**
   * Returns the least balance that a client may have seen which read shards one by one: with what
   * was consumed since, and nothing of what was refunded.
   */
  leastSeen(fromMs: number, toMs: number): number {
    let seen = this.least(fromMs, fromMs);
    for (const { atMs, consumed } of this.#entries) {
      if (atMs > fromMs && atMs <= toMs) seen -= consumed;
    }
    return Math.min(seen, this.least(fromMs, toMs));
  }
}
