/** Ends consumes at their deadlines while they wait for others, by one timer for all of them. */

import type { Timer } from "../../domain/timer.ts";
import type { Waiter } from "./group.ts";

/** A bucket that is never idle would keep every consume it ever had. */
const PRUNE_MIN = 1024;

/** A reason of our own: Node.js would make an expensive one. */
const STOPPED: unique symbol = Symbol("stopped");

export class Alarm {
  readonly #timer: Timer;
  #watched: Waiter[] = [];
  #pruneAt = PRUNE_MIN;
  #rings: { readonly atMs: number; readonly abort: AbortController } | undefined;

  constructor(timer: Timer) {
    this.#timer = timer;
  }

  /** A consume that shares its writes may end before the others: its deadline may be earlier. */
  watch(waiter: Waiter): void {
    if (waiter.isWatched) return;
    waiter.isWatched = true;
    this.#watched.push(waiter);
    if (this.#watched.length >= this.#pruneAt) this.#prune();
    const { atMs } = waiter.deadline;
    if (this.#rings !== undefined && this.#rings.atMs <= atMs) return;
    this.#set(waiter.deadline.atMs);
  }

  stop(): void {
    this.#watched = [];
    this.#rings?.abort.abort(STOPPED);
    this.#rings = undefined;
  }

  #set(atMs: number): void {
    this.#rings?.abort.abort(STOPPED);
    const rings = { atMs, abort: new AbortController() };
    this.#rings = rings;
    const leftMs = Math.max(0, atMs - this.#timer.nowMs());
    void this.#timer.sleep(leftMs, rings.abort.signal, true).then(() => {
      if (this.#rings === rings) this.#ring();
    });
  }

  #ring(): void {
    this.#rings = undefined;
    for (const waiter of this.#watched) {
      if (waiter.isOpen && waiter.deadline.isOver) waiter.expire();
    }
    this.#prune();
    if (this.#watched.length === 0) return;
    this.#set(
      this.#watched.reduce((least, { deadline }) => Math.min(least, deadline.atMs), Infinity),
    );
  }

  #prune(): void {
    this.#watched = this.#watched.filter(({ isOpen }) => isOpen);
    this.#pruneAt = Math.max(PRUNE_MIN, 2 * this.#watched.length);
  }
}
