/** One bucket that is consumed from in one place: what all stores must come to. */

import { type Level, type Rate, refill, waitMs } from "@zae-limiter/limiter/core/bucket.ts";

/** The result of a take: whether it fits, and the level after refill and take. */
export interface Take {
  readonly taken: boolean;
  readonly level: Level;
  /** Whole and partial tokens before the take. */
  readonly availableMilli: number;
  /** 0 when taken; `Infinity` when the bucket could never hold that much. */
  readonly retryAfterMs: number;
}

/** Takes `requestedMilli` if the refilled bucket has it. A request of zero is never refused. */
export function take(level: Level, rate: Rate, requestedMilli: number, nowMs: number): Take {
  const refilled = refill(level, rate, nowMs);
  const availableMilli = refilled.tokensMilli;
  if (requestedMilli <= 0 || requestedMilli <= availableMilli) {
    const tokensMilli = availableMilli - requestedMilli;
    return { taken: true, level: { ...refilled, tokensMilli }, availableMilli, retryAfterMs: 0 };
  }
  // Behind a clock that ran backwards nothing accrues until the time of the level is reached again.
  const behindMs = refilled.refilledAtMs - nowMs;
  const retryAfterMs = waitMs(requestedMilli, availableMilli, rate) + behindMs;
  return { taken: false, level: refilled, availableMilli, retryAfterMs };
}
