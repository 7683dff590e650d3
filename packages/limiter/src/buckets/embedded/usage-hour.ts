/** The hours that usage is gathered by: every larger window is made of whole hours. */

const HOUR_MS = 3_600_000;

/** Hours since 1970. */
export function hourOf(nowMs: number): number {
  return Math.floor(nowMs / HOUR_MS);
}

export function hourStartMs(hour: number): number {
  return hour * HOUR_MS;
}
