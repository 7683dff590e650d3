/** How long requests take: mostly the same, sometimes much longer. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";

/** A distribution of round trips, as data. */
export interface Latency {
  /** Half of all requests take less. */
  readonly medianMs: number;
  /** How wide it is: the standard deviation of the logarithm. */
  readonly spread: number;
  /** The share of requests that are delayed, and by how much at most. */
  readonly slowShare: number;
  /** The longest extra delay in milliseconds. */
  readonly slowMs: number;
}

/** A client in the same region: 4 ms in the middle, 99 % below 15 ms, now and then 100. */
export const SAME_REGION_LATENCY: Latency = Object.freeze({
  medianMs: 4,
  spread: 0.4,
  slowShare: 0.002,
  slowMs: 100,
});

/** Draws the latency of one round trip. */
export function drawLatencyMs(latency: Latency, random: Random): number {
  // The sum of four even numbers is close enough to the bell curve, and quick.
  const bell = (random() + random() + random() + random() - 2) * Math.sqrt(3);
  const usual = latency.medianMs * Math.exp(latency.spread * bell);
  return random() < latency.slowShare ? usual + random() * latency.slowMs : usual;
}
