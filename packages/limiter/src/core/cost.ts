/**
 * The cost of a call in money. Prices are whole pico-dollars for one token (one dollar for a
 * million tokens is 1,000,000 of them), so that every list price is exact. Products pass 2^53 and
 * are computed with big integers; the sum is rounded up once, to a whole micro-dollar.
 */

/** Pico-dollars in a micro-dollar, and in the price of a token at one dollar for a million. */
export const PICO_PER_MICRO = 1_000_000;
/** A discount factor of 1, in millionths. */
export const FACTOR_ONE = 1_000_000;

/** An amount of something, and the pico-dollars for one of it. */
export interface CostItem {
  readonly amount: number;
  readonly pico: number;
}

/** Returns what items cost together, in micro-dollars, times a factor in millionths. */
export function costMicro(items: readonly CostItem[], factorMillionths = FACTOR_ONE): number {
  let pico = 0n;
  for (const item of items) pico += BigInt(item.amount) * BigInt(item.pico);
  const divisor = BigInt(PICO_PER_MICRO) * BigInt(FACTOR_ONE);
  const scaled = pico * BigInt(factorMillionths);
  const micro = (scaled + divisor - 1n) / divisor;
  return micro > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(micro);
}

/**
 * Returns how many items of one price fit into an amount of money, rounded down; `Infinity` where
 * they cost nothing.
 */
export function affordable(micro: number, pico: number, factorMillionths = FACTOR_ONE): number {
  if (pico === 0 || factorMillionths === 0) return Number.POSITIVE_INFINITY;
  if (micro <= 0) return 0;
  const money = BigInt(micro) * BigInt(PICO_PER_MICRO) * BigInt(FACTOR_ONE);
  const items = money / (BigInt(pico) * BigInt(factorMillionths));
  return items > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(items);
}
