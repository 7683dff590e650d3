/** Ends calls at their deadlines. */

import { Deadline, type Timer } from "../../base/time.ts";
import { tooLate } from "./unavailability.ts";

const LATE: unique symbol = Symbol("late");

/**
 * Returns the result of the work before the deadline; afterwards the work goes on unobserved.
 * `background`: a request is under way, which keeps the process alive.
 */
export async function inTime<T>(
  timer: Timer,
  deadline: Deadline,
  work: Promise<T>,
  background = false,
): Promise<T> {
  const done = new AbortController();
  const leftMs = Math.max(0, deadline.leftMs);
  const late = timer.sleep(leftMs, done.signal, background).then((): typeof LATE => LATE);
  try {
    const result: T | typeof LATE = await Promise.race([work, late]);
    if (result !== LATE) return result;
  } finally {
    // With a reason of its own, since Node.js would make an expensive one.
    done.abort(LATE);
  }
  throw tooLate();
}

/** Whether the store answers a question in time. Never throws. */
export async function answers(
  timer: Timer,
  timeoutMs: number,
  ping: () => Promise<unknown>,
): Promise<boolean> {
  try {
    await inTime(timer, new Deadline(timer, timeoutMs), ping());
    return true;
  } catch {
    return false;
  }
}
