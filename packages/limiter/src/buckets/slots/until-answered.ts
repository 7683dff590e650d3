/** Repeats a request until the store answers, with growing pauses. */

import type { Random } from "../../base/random.ts";
import type { Timer } from "../../base/time.ts";
import { RateLimiterUnavailable } from "../../domain/errors/errors.ts";

const PAUSE_MS_MIN = 100;
const PAUSE_MS_MAX = 5000;

export interface UntilAnsweredOptions {
  readonly timer: Timer;
  readonly random: Random;
  /** Aborts when the store is closed: other processes give back what a process leaves behind. */
  readonly closed: AbortSignal;
}

/** Asks until there is an answer; `undefined` after another error, or once the store is closed. */
export async function untilAnswered<Answer>(
  ask: () => Promise<Answer>,
  { timer, random, closed }: UntilAnsweredOptions,
): Promise<Answer | undefined> {
  for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable) || closed.aborted) return undefined;
    }
    await timer.sleep((0.5 + random() / 2) * pauseMs, closed, true);
  }
}
