/** The virtual time of the demo, so that every run has the same numbers. */

import type { Clock, Timer } from "@zae-limiter/limiter/base/time.ts";

/** After a longer break, such as Ctrl-Z, the demonstration goes on where it was. */
const BEHIND_MS_MAX = 1000;

export class StageTime {
  readonly #startMs: number;
  #passedMs = 0;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** For the store. */
  readonly clock: Clock = () => this.#startMs + this.#passedMs;

  /** Since the beginning. */
  get passedMs(): number {
    return this.#passedMs;
  }

  moveTo(passedMs: number): void {
    this.#passedMs = Math.max(this.#passedMs, passedMs);
  }
}

/** Waits so that viewers see virtual time pass at the chosen speed. */
export type Pace = (passedMs: number) => Promise<void>;

export function realPace(timer: Timer, signal: AbortSignal): Pace {
  let startMs = timer.nowMs();
  return async (passedMs) => {
    const aheadMs = startMs + passedMs - timer.nowMs();
    if (aheadMs < -BEHIND_MS_MAX) startMs -= aheadMs;
    await timer.sleep(Math.max(0, aheadMs), signal);
    signal.throwIfAborted();
  };
}

/** As fast as it goes; still, interruptions are heard. */
export function noPace(timer: Timer, signal: AbortSignal): Pace {
  return async (passedMs) => {
    if (passedMs % 1000 === 0) await timer.sleep(0, signal);
    signal.throwIfAborted();
  };
}
