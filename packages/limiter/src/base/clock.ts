/** Time is an argument: everything that needs the time is given a clock. */

import { show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";

/** Epoch milliseconds, whole. */
export type Clock = () => number;

/** The clock of this machine. */
export const systemClock: Clock = () => Date.now();

/**
 * A clock from a user, made whole: a fraction of a millisecond would turn tokens into fractions,
 * and what is no number at all would empty a bucket for good.
 */
export function wholeClock(clock: Clock): Clock {
  return () => {
    const nowMs = Math.floor(clock());
    if (Number.isSafeInteger(nowMs)) return nowMs;
    throw new ValidationError("clock", nowMs, `expected epoch milliseconds, got ${show(nowMs)}`);
  };
}
