/** The end of a call, by the timer of the call. */

import type { Timer } from "./timer.ts";

export class Deadline {
  readonly #timer: Timer;
  readonly atMs: number;

  constructor(timer: Timer, timeoutMs: number) {
    this.#timer = timer;
    this.atMs = timer.nowMs() + timeoutMs;
  }

  /** Milliseconds left; negative when the time is over. */
  get leftMs(): number {
    return this.atMs - this.#timer.nowMs();
  }

  get isOver(): boolean {
    return this.leftMs <= 0;
  }

  /** What one request to a store may take: at least one millisecond. */
  get timeoutMs(): number {
    return Math.max(1, this.leftMs);
  }

  /** Returns the later of two deadlines. */
  latest(other: Deadline): Deadline {
    return other.atMs > this.atMs ? other : this;
  }
}
