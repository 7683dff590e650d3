/**
 * When buckets whose time is over may be removed.
 *
 * A bucket that is removed comes back full. By a clock that jumps ahead and back, a bucket could so
 * be emptied and removed again and again. After a step back nothing is removed until the clock has
 * passed the latest time it ever showed, and an hour more.
 */

import type { Clock } from "../../base/time.ts";

const PAUSE_MS = 3_600_000;
/** Smaller steps back happen when clocks are kept in time. */
const STEP_MS = 2000;

export class SweepClock {
  readonly #clock: Clock;
  #latestMs = Number.NEGATIVE_INFINITY;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the time to compare times to live with; `undefined` while nothing may be removed. */
  nowMs(): number | undefined {
    const nowMs = this.#clock();
    if (nowMs < this.#latestMs - STEP_MS) this.#pausedUntilMs = this.#latestMs + PAUSE_MS;
    this.#latestMs = Math.max(this.#latestMs, nowMs);
    return nowMs < this.#pausedUntilMs ? undefined : nowMs;
  }
}
