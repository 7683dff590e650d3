/**
 * When buckets whose time is over may be removed.
 *
 * A bucket that is removed comes back full. By a clock that jumps ahead and back, a bucket could so
 * be emptied and removed again and again. After a step back nothing is removed until the clock has
 * passed the latest time it ever showed, and an hour more. After a jump ahead, which may be undone,
 * only what was over before it is removed, for an hour or until the next jump: a process that works
 * once in a while jumps each time.
 */

import type { Clock } from "../../base/time.ts";

const PAUSE_MS = 3_600_000;
/** Smaller steps back happen when clocks are kept in time. */
const STEP_MS = 2000;
/** Longer steps ahead may be a clock that was set, and will be set back. */
const JUMP_MS = 600_000;

export class SweepClock {
  readonly #clock: Clock;
  #latestMs: number;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  /** The time before the last jump ahead, and until when it counts. */
  #beforeJumpMs = Number.NEGATIVE_INFINITY;
  #doubtedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#latestMs = clock();
  }

  /** Returns the time to compare times to live with; `undefined` while nothing may be removed. */
  nowMs(): number | undefined {
    const nowMs = this.#clock();
    if (nowMs < this.#latestMs - STEP_MS) this.#pausedUntilMs = this.#latestMs + PAUSE_MS;
    if (nowMs > this.#latestMs + JUMP_MS) {
      this.#beforeJumpMs = this.#latestMs;
      this.#doubtedUntilMs = nowMs + PAUSE_MS;
    }
    this.#latestMs = Math.max(this.#latestMs, nowMs);
    if (nowMs < this.#pausedUntilMs) return undefined;
    return nowMs < this.#doubtedUntilMs ? this.#beforeJumpMs : nowMs;
  }
}
