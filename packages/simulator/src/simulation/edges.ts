/** The moments at which one milli-token more or less decides. */

import type { ShardImage } from "../checkers/bucket-image.ts";
import { Share, shareRate } from "../checkers/share.ts";

const TOKEN_MILLI = 1000n;

/**
 * Returns the next millisecond at which the first limit of a shard is one milli-token short of a
 * whole number of tokens; `undefined` when it will be full before.
 */
export function nextEdgeMs(image: ShardImage, nowMs: number): number | undefined {
  const [limit] = image.limits;
  if (limit === undefined) return undefined;
  const rate = shareRate(limit, image.shard, image.count);
  const level = Share.numerator(rate, { ...limit, epochMs: image.epochMs }, nowMs);
  const tokens = level / rate.period / TOKEN_MILLI;
  const edge = (tokens + 1n) * TOKEN_MILLI - 1n;
  if (level < 0n || edge >= rate.capacity) return undefined;
  const missing = edge * rate.period - level;
  return nowMs + Math.max(0, Number((missing + rate.refill - 1n) / rate.refill));
}
