/** The hours by which usage is counted: all larger windows are made of whole hours. */

const HOUR_MS = 3_600_000;

/** Returns the hours since 1970. */
export function hourOf(nowMs: number): number {
  return Math.floor(nowMs / HOUR_MS);
}

/** Returns the epoch milliseconds at which an hour begins. */
export function hourStartMs(hour: number): number {
  return hour * HOUR_MS;
}
