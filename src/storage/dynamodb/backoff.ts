/** How long to wait before a repetition. */

import type { Random } from "../../domain/random.ts";

const BASE_MS = 20;
const MAX_MS = 500;
const MIN_MS = 1;

/**
 * Full jitter: anything up to a bound that doubles. Clients that failed together then do not come
 * back together.
 */
export function backoffMs(attempt: number, random: Random): number {
  return Math.max(MIN_MS, random() * Math.min(MAX_MS, BASE_MS * 2 ** attempt));
}
