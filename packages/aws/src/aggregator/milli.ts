/** Sums of milli-tokens, exact beyond 2^53. */

export type Milli = number | bigint;

export function plus(left: Milli, right: Milli): Milli {
  if (typeof left === "number" && typeof right === "number") {
    const sum = left + right;
    if (Number.isSafeInteger(sum)) return sum;
  }
  return BigInt(left) + BigInt(right);
}

export function minus(left: Milli, right: Milli): Milli {
  return plus(left, -right);
}
