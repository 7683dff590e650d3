/** How long a bucket that nobody uses is kept. */

import { ceilDiv, mulAddDiv } from "../core/integers.ts";
import type { BucketConfig } from "./bucket-store.ts";

/** So that a store's clock, ours, and a slow sweep never meet. */
const TTL_SECONDS_MIN = 3600;

/**
 * The epoch second after which the bucket may go, or `undefined` when it must stay: it has limits
 * of its own, or `multiplier` is 0.
 *
 * A bucket may only go when it would be full again, so the time covers filling up from the
 * balance, debt included. The current time is kept while it is good for half of what a new one
 * would be: most writes then leave the attribute, and its index, alone.
 */
export function bucketTtl(
  current: number | undefined,
  config: BucketConfig,
  multiplier: number,
  balancesMilli: readonly number[],
  nowMs: number,
): number | undefined {
  if (multiplier <= 0 || config.source === "entity") return undefined;
  let neededSeconds = 1;
  let wantedSeconds = TTL_SECONDS_MIN;
  for (let at = 0; at < config.limits.length; at += 1) {
    const { rate } = config.limits[at] as BucketConfig["limits"][number];
    const missing = rate.capacityMilli - (balancesMilli[at] ?? rate.capacityMilli);
    const fillMs = fillTimeMs(rate.capacityMilli, rate);
    neededSeconds = Math.max(neededSeconds, ceilDiv(fillTimeMs(missing, rate), 1000) + 1);
    wantedSeconds = Math.max(wantedSeconds, Math.ceil((fillMs * multiplier) / 1000));
  }
  wantedSeconds = Math.max(wantedSeconds, neededSeconds);
  const nowSeconds = Math.ceil(nowMs / 1000);
  const goodEnough = nowSeconds + Math.max(neededSeconds, Math.floor(wantedSeconds / 2));
  if (current !== undefined && current >= goodEnough) return current;
  return nowSeconds + wantedSeconds;
}

function fillTimeMs(milli: number, rate: { refillMilli: number; periodMs: number }): number {
  return milli <= 0 ? 0 : mulAddDiv(milli, rate.periodMs, 0, rate.refillMilli) + 1;
}
