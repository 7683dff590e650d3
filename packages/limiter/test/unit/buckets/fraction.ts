/** Exact fractions, so that the ideal bucket never rounds. */

export interface Fraction {
  readonly num: bigint;
  /** Above zero, and without a factor in common with `num`. */
  readonly den: bigint;
}

export function fraction(num: bigint | number, den: bigint | number = 1n): Fraction {
  const [top, bottom] = [BigInt(num), BigInt(den)];
  const common = gcd(top < 0n ? -top : top, bottom);
  return { num: top / common, den: bottom / common };
}

export const ZERO = fraction(0n);

export function plus(left: Fraction, right: Fraction): Fraction {
  if (left.den === 1n && right.den === 1n) return { num: left.num + right.num, den: 1n };
  return fraction(left.num * right.den + right.num * left.den, left.den * right.den);
}

export function minus(left: Fraction, right: Fraction): Fraction {
  return plus(left, { num: -right.num, den: right.den });
}

/** Below zero, zero or above zero, as `left` is below, equal to or above `right`. */
export function compare(left: Fraction, right: Fraction): -1 | 0 | 1 {
  const difference = left.num * right.den - right.num * left.den;
  if (difference === 0n) return 0;
  return difference < 0n ? -1 : 1;
}

export function smaller(left: Fraction, right: Fraction): Fraction {
  return compare(left, right) <= 0 ? left : right;
}

/** For messages. */
export function show({ num, den }: Fraction): string {
  return den === 1n ? `${num}` : `${num}/${den} (${Number(num) / Number(den)})`;
}

function gcd(left: bigint, right: bigint): bigint {
  let [a, b] = [left, right];
  while (b !== 0n) [a, b] = [b, a % b];
  return a === 0n ? 1n : a;
}
