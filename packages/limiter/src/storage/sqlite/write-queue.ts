/** The writers of this process that have to wait for the lock, first come, first served. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../base/random.ts";

/** Nothing was done; the caller should try again later. */
export const BUSY = Symbol("busy");

/** One write, repeated until it is not busy. */
interface Waiter {
  readonly attempt: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly since: number;
  readonly deadline: number;
}

const PAUSE_MS_MIN = 1;
const PAUSE_MS_MAX = 4;
/** Pauses shrink to the shortest over this time, so that the longest waiter tries most often. */
const PATIENCE_MS = 20;

export class WriteQueue {
  readonly #waiters = new Set<Waiter>();
  readonly #random: Random;
  readonly #gap: () => Promise<unknown> | undefined;
  readonly #timedOut: (waitedMs: number) => Error;
  #serving = false;

  constructor(options: {
    readonly random: Random;
    /** Called before each attempt; waits when it is the turn of another process. */
    readonly gap: () => Promise<unknown> | undefined;
    readonly timedOut: (waitedMs: number) => Error;
  }) {
    this.#random = options.random;
    this.#gap = options.gap;
    this.#timedOut = options.timedOut;
  }

  get isEmpty(): boolean {
    return this.#waiters.size === 0;
  }

  /** Joins the queue. An attempt that returns BUSY is repeated. */
  join<T>(attempt: () => T | typeof BUSY, timeoutMs: number): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const since = performance.now();
      this.#waiters.add({
        attempt,
        resolve: resolve as (value: unknown) => void,
        reject,
        since,
        deadline: since + timeoutMs,
      });
      void this.#serve();
    });
  }

  dismiss(error: Error): void {
    for (const waiter of this.#waiters) waiter.reject(error);
    this.#waiters.clear();
  }

  async #serve(): Promise<void> {
    if (this.#serving) return;
    this.#serving = true;
    for (const waiter of this.#waiters) {
      // A waiter that was rejected or timed out has left the queue.
      while (this.#waiters.has(waiter)) {
        await this.#gap();
        if (!this.#waiters.has(waiter) || settle(waiter)) {
          this.#waiters.delete(waiter);
        } else {
          const now = performance.now();
          this.#dismissLate(now);
          await sleep(pauseMs(now - waiter.since, this.#random()));
        }
      }
    }
    this.#serving = false;
  }

  #dismissLate(now: number): void {
    for (const waiter of this.#waiters) {
      if (now < waiter.deadline) continue;
      this.#waiters.delete(waiter);
      waiter.reject(this.#timedOut(now - waiter.since));
    }
  }
}

/** Whether the waiter is done, one way or the other. */
function settle(waiter: Waiter): boolean {
  try {
    const result = waiter.attempt();
    if (result === BUSY) return false;
    waiter.resolve(result);
  } catch (error) {
    waiter.reject(error);
  }
  return true;
}

/** Returns how long to wait before asking again, in milliseconds. */
export function pauseMs(waitedMs: number, random: number): number {
  const longest =
    PAUSE_MS_MAX - (PAUSE_MS_MAX - PAUSE_MS_MIN) * Math.min(1, waitedMs / PATIENCE_MS);
  return longest * (0.5 + random);
}
