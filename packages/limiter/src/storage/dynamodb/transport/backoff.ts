/** How long to wait before a repetition. */

import type { Random } from "../../../base/random.ts";

const BASE_MS = 20;
const MAX_MS = 500;
const MIN_MS = 1;
/** The longest pause, as a part of the time that is left. */
const PART_MAX = 1 / 4;

/**
 * Returns a pause with full jitter: anything up to a bound that doubles. Clients that failed
 * together then do not come back together. A call that has little time left comes back sooner:
 * where a throttled partition serves only some of the calls, it serves those that have waited
 * longest.
 */
export function backoffMs(attempt: number, random: Random, leftMs: number): number {
  const boundMs = Math.min(MAX_MS, BASE_MS * 2 ** attempt, leftMs * PART_MAX);
  return Math.max(MIN_MS, random() * boundMs);
}
