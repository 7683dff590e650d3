/** Ends calls at their deadlines while they wait for others, by one timer for all of them. */

import type { Deadline, Timer } from "../../../base/time.ts";

/** Between two rings so many calls that have ended are kept, at most. */
const PRUNE_MIN = 1024;

/** A call that shares a write with others. */
export interface Watched {
  readonly deadline: Deadline;
  readonly isOpen: boolean;
  isWatched: boolean;
  /** Ends it at its deadline. */
  expire(): void;
}

export class Alarm {
  readonly #timer: Timer;
  #watched: Watched[] = [];
  #pruneAt = PRUNE_MIN;
  /** When it rings next; it does not ring while it watches nothing. */
  #ringsAtMs = Number.POSITIVE_INFINITY;

  constructor(timer: Timer) {
    this.#timer = timer;
  }

  /** A call that shares its writes may end before the others: its deadline may be earlier. */
  watch(waiter: Watched): void {
    if (waiter.isWatched) return;
    waiter.isWatched = true;
    this.#watched.push(waiter);
    if (this.#watched.length >= this.#pruneAt) this.#prune();
    this.#ringAt(waiter.deadline.atMs);
  }

  /**
   * Sets the timer, unless it rings before. It is never stopped: setting it for each group would
   * cost more than a ring that finds nothing to end.
   */
  #ringAt(atMs: number): void {
    if (atMs >= this.#ringsAtMs) return;
    this.#ringsAtMs = atMs;
    const leftMs = Math.max(0, atMs - this.#timer.nowMs());
    void this.#timer.sleep(leftMs, undefined, true).then(() => {
      if (this.#ringsAtMs === atMs) this.#ring();
    });
  }

  #ring(): void {
    this.#ringsAtMs = Number.POSITIVE_INFINITY;
    for (const waiter of this.#watched) {
      if (waiter.isOpen && waiter.deadline.isOver) waiter.expire();
    }
    this.#prune();
    const earliest = this.#watched.reduce(
      (least, { deadline }) => Math.min(least, deadline.atMs),
      Infinity,
    );
    this.#ringAt(earliest);
  }

  #prune(): void {
    this.#watched = this.#watched.filter(({ isOpen }) => isOpen);
    this.#pruneAt = Math.max(PRUNE_MIN, 2 * this.#watched.length);
  }
}
