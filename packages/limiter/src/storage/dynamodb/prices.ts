/** Prices of requests, with their date. */

/** Dollars per million request units. */
export interface Prices {
  /** The region that they hold for. */
  readonly region: string;
  /** When the prices were looked up. */
  readonly asOf: string;
  /** The price of a million write units, in dollars. */
  readonly writePerMillion: number;
  /** The price of a million read units, in dollars. */
  readonly readPerMillion: number;
}

/** On-demand mode, standard table class, after the reduction of November 2024. */
export const ON_DEMAND_PRICES: Prices = Object.freeze({
  region: "us-east-1",
  asOf: "2025-07-21",
  writePerMillion: 0.625,
  readPerMillion: 0.125,
});

/** Returns what request units cost. */
export function dollarsOf(
  { readUnits, writeUnits }: { readonly readUnits: number; readonly writeUnits: number },
  prices: Prices,
): number {
  return (writeUnits * prices.writePerMillion + readUnits * prices.readPerMillion) / 1_000_000;
}
