/** Forecasts when the tokens of a period are used up. */

/** A period with the rest and the use of its tokens, in any unit. */
interface UsedPeriod {
  readonly available: number;
  readonly used: number;
  readonly startMs: number;
  readonly endMs: number;
}

/** The part of its time or amount before which a period says little about its pace. */
const TOO_EARLY = 0.1;

/**
 * Returns when nothing is left, in epoch milliseconds, if as much is used in the rest of the period
 * as until now; `undefined` where it ends before that, or where it has hardly begun.
 */
export function emptyAtMs(period: UsedPeriod, nowMs: number): number | undefined {
  const { available, used, startMs, endMs } = period;
  const elapsedMs = nowMs - startMs;
  if (used <= 0 || elapsedMs <= 0) return undefined;
  const isEarly = elapsedMs < TOO_EARLY * (endMs - startMs);
  if (isEarly && used < TOO_EARLY * (used + available)) return undefined;
  const emptyMs = nowMs + (Math.max(0, available) / used) * elapsedMs;
  return emptyMs < endMs ? Math.floor(emptyMs) : undefined;
}
