/**
 * Exact integer arithmetic on JavaScript numbers.
 *
 * Token amounts and times are integers, but a product such as `elapsedMs * refillMilli` may pass
 * 2^53, where a number silently loses its last digits. The functions here notice: as long as the
 * product is safe they stay on plain numbers, and only beyond that they pay for a BigInt.
 */

const SAFE = Number.MAX_SAFE_INTEGER;

/** A quotient rounded down, and the rest: `value = quotient * divisor + remainder`. */
export interface Division {
  /** Saturates at ±(2^53 - 1). */
  readonly quotient: number;
  /** `0 <= remainder < divisor`. */
  readonly remainder: number;
}

/**
 * Returns `floor((a * b + c) / divisor)`, exact; saturates at ±(2^53 - 1). `divisor` is positive.
 */
export function mulAddDiv(a: number, b: number, c: number, divisor: number): number {
  const product = a * b;
  const sum = product + c;
  if (product <= SAFE && product >= -SAFE && sum <= SAFE && sum >= -SAFE) {
    return floorDiv(sum, divisor);
  }
  return bigMulAddDiv(a, b, c, divisor).quotient;
}

/** Returns what `mulAddDiv` does, with the remainder of the rounding, for the next time. */
export function mulAddDivRem(a: number, b: number, c: number, divisor: number): Division {
  const product = a * b;
  const sum = product + c;
  if (product <= SAFE && product >= -SAFE && sum <= SAFE && sum >= -SAFE) {
    return divide(sum, divisor);
  }
  return bigMulAddDiv(a, b, c, divisor);
}

/**
 * Returns `floor(value / divisor)` for safe integers. Exact, although the division rounds: to be
 * rounded onto the next integer, a quotient must be closer to it than `1 / divisor`, and that takes
 * a value beyond 2^53.
 */
export function floorDiv(value: number, divisor: number): number {
  return Math.floor(value / divisor);
}

/** Returns `ceil(value / divisor)` for safe integers. */
export function ceilDiv(value: number, divisor: number): number {
  const negated = floorDiv(-value, divisor);
  return negated === 0 ? 0 : -negated;
}

/**
 * Returns what `floorDiv` does, with the remainder. A negative value is mirrored to one that is
 * not: its quotient is rounded away from zero, and multiplied back it could pass 2^53.
 */
function divide(value: number, divisor: number): Division {
  if (value < 0) {
    const mirrored = divide(-1 - value, divisor);
    return { quotient: -1 - mirrored.quotient, remainder: divisor - 1 - mirrored.remainder };
  }
  const quotient = floorDiv(value, divisor);
  return { quotient, remainder: value - quotient * divisor };
}

function bigMulAddDiv(a: number, b: number, c: number, divisor: number): Division {
  const sum = BigInt(a) * BigInt(b) + BigInt(c);
  const by = BigInt(divisor);
  let quotient = sum / by;
  let remainder = sum % by;
  if (remainder < 0n) {
    quotient -= 1n;
    remainder += by;
  }
  return { quotient: saturate(quotient), remainder: Number(remainder) };
}

function saturate(value: bigint): number {
  if (value > BigInt(SAFE)) return SAFE;
  if (value < BigInt(-SAFE)) return -SAFE;
  return Number(value);
}
