/** Clocks from users. */

import type { Clock } from "../base/time.ts";
import { show } from "./check.ts";
import { ValidationError } from "./errors/errors.ts";

/**
 * Returns a clock from a user, made whole: a fraction of a millisecond would turn tokens into
 * fractions, and what is no number at all would empty a bucket for good.
 */
export function wholeClock(clock: Clock): Clock {
  return () => {
    const nowMs = Math.floor(clock());
    if (Number.isSafeInteger(nowMs)) return nowMs;
    throw new ValidationError("clock", nowMs, `expected epoch milliseconds, got ${show(nowMs)}`);
  };
}
