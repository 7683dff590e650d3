/**
 * An ideal bucket that consumes in the order of the clocks, and not in the order in which writes
 * land. Each shard forgets the time beyond full for itself, by the clock of the process that writes
 * to it. So a write of a slow clock to one shard may land after a write of a fast clock to another
 * one, and find what has not been forgotten in its own.
 *
 * What is refunded counts when it lands: it was consumed until then.
 */

import type { Flow } from "./share.ts";

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
  readonly #flow: Flow;
  /** In the order of their time; the first one only begins. */
  #entries: Entry[];

  /** Full at `startMs`. */
  constructor(flow: Flow, startMs: number) {
    this.#flow = flow;
    this.#entries = [{ atMs: startMs, amount: 0n, level: this.#fullAt(startMs) }];
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
    const { level, atMs } = this.#entries.at(-1) as Entry;
    return level < -debt * this.#flow.at(atMs).period;
  }

  #recount(index: number): void {
    const [before, entry] = this.#entries.slice(index - 1, index + 1) as [Entry, Entry];
    const held = this.#heldAt(before, entry.atMs);
    const { period } = this.#flow.at(entry.atMs);
    entry.level = smaller(this.#fullAt(entry.atMs), held - entry.amount * period);
  }

  /** Returns what an entry comes to, through the boundaries until a time. */
  #heldAt({ level, atMs }: Entry, nowMs: number): bigint {
    let [held, sinceMs] = [level, atMs];
    while (sinceMs < nowMs) {
      const untilMs = Math.min(nowMs, this.#flow.endAt(sinceMs));
      const gained = BigInt(untilMs - sinceMs) * this.#flow.at(sinceMs).refill;
      held = smaller(this.#fullAt(sinceMs), held + gained);
      sinceMs = untilMs;
      held = smaller(this.#fullAt(sinceMs), held);
    }
    return held;
  }

  #fullAt(ms: number): bigint {
    const { capacity, period } = this.#flow.at(ms);
    return capacity * period;
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
