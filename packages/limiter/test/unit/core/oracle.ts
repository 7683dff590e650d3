/**
 * The arithmetic of buckets in BigInt, where nothing is ever rounded. Written apart from the code
 * under test: a bucket here is one fraction, `parts / periodMs` milli-tokens, and a refill adds
 * `elapsed * refillMilli` parts.
 */

import type { Level, Rate } from "@zae-limiter/limiter/core/bucket.ts";

const SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** `floor(value / divisor)`, toward minus infinity, for a positive divisor. */
export function floorBig(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor;
  return quotient * divisor > value ? quotient - 1n : quotient;
}

/** A value as a saturating number would show it. */
export function clamp(value: bigint): bigint {
  if (value > SAFE) return SAFE;
  return value < -SAFE ? -SAFE : value;
}

/** The content of a bucket as a count of `1 / periodMs` milli-tokens. */
export function partsOf(level: Level, rate: Rate): bigint {
  return BigInt(level.tokensMilli) * BigInt(rate.periodMs) + BigInt(level.remainder);
}

/** The content of a bucket after `elapsedMs`, in parts, with no rounding at all. */
export function idealParts(level: Level, rate: Rate, elapsedMs: number): bigint {
  const full = BigInt(rate.capacityMilli) * BigInt(rate.periodMs);
  const filled = partsOf(level, rate) + BigInt(elapsedMs) * BigInt(rate.refillMilli);
  if (filled > full) return full;
  return filled;
}
