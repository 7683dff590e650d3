/**
 * An ideal bucket that consumes in the order of the clocks, and not in the order in which writes
 * land. Each shard forgets the time beyond full for itself, by the clock of the process that writes
 * to it. So a write of a slow clock to one shard may land after a write of a fast clock to another
 * one, and find what has not been forgotten in its own.
 *
 * What is refunded counts when it lands: it was consumed until then.
 */

import type { ShareRate } from "./share.ts";

/** Maximum time between the landings of two writes that were planned at the same time. */
const KEPT_MS = 60_000;
/** Number of entries after which old ones are removed. */
const ROUND = 1024;

interface Entry {
  readonly atMs: number;
  /** In milli-tokens; below zero it is a refund. */
  readonly amount: bigint;
  /** After it: a numerator over the period of the rate. */
  level: bigint;
}

export class ClockOrder {
  readonly #rate: ShareRate;
  readonly #full: bigint;
  /** In the order of their time; the first one only begins. */
  #entries: Entry[];

  /** Full at `startMs`. */
  constructor(rate: ShareRate, startMs: number) {
    this.#rate = rate;
    this.#full = rate.capacity * rate.period;
    this.#entries = [{ atMs: startMs, amount: 0n, level: this.#full }];
  }

  /** Records a write planned for `plannedMs` that consumes `amount`, or refunds if negative. */
  take(amount: bigint, plannedMs: number): void {
    if (amount === 0n) return;
    const entries = this.#entries;
    const earliest = amount > 0n ? entries[0] : entries.at(-1);
    const atMs = Math.max(plannedMs, (earliest as Entry).atMs);
    let index = entries.length;
    while ((entries[index - 1] as Entry).atMs > atMs) index -= 1;
    entries.splice(index, 0, { atMs, amount, level: 0n });
    for (; index < entries.length; index += 1) this.#recount(index);
    if (entries.length % ROUND === 0) this.#forgetOld();
  }

  /** Whether more was consumed than there ever was, debts allowed. */
  overdrawn(debt: bigint): boolean {
    return (this.#entries.at(-1) as Entry).level < -debt * this.#rate.period;
  }

  #recount(index: number): void {
    const [before, entry] = this.#entries.slice(index - 1, index + 1) as [Entry, Entry];
    const gained = BigInt(entry.atMs - before.atMs) * this.#rate.refill;
    const held = smaller(this.#full, before.level + gained);
    entry.level = smaller(this.#full, held - entry.amount * this.#rate.period);
  }

  #forgetOld(): void {
    const { atMs: lastMs } = this.#entries.at(-1) as Entry;
    const young = this.#entries.findIndex(({ atMs }) => lastMs - atMs < KEPT_MS);
    this.#entries = this.#entries.slice(Math.max(0, young - 1));
  }
}

function smaller(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}
