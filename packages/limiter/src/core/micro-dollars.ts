/**
 * Money as whole millionths of a currency. Limits named `usd` or `usd_…`, `eur` or `eur_…` and the
 * like are counted in them. Texts for people are made here, for the command line, errors and the
 * page of the dashboard alike. There are no exchange rates.
 */

/** Micro-dollars in a dollar. */
export const MICRO_PER_DOLLAR = 1_000_000;
/** Digits of a dollar behind the point, at most. */
export const MONEY_DECIMALS = 6;

/** The currencies by the beginnings of limit names, with their signs of one character. */
const SIGNS = { usd: "$", eur: "€", gbp: "£", jpy: "¥", cny: "¥", inr: "₹", krw: "₩" } as const;

/** A currency that limits and prices may be in. */
export type Currency = keyof typeof SIGNS;

export const CURRENCIES = Object.keys(SIGNS) as readonly Currency[];

const MONEY_NAME = /^([a-z]{3})(?:_[A-Za-z0-9_.-]*)?$/;
const SHOWN_DECIMALS = 2;

/** Returns the currency that a limit of that name counts; `undefined` where it is not money. */
export function currencyOf(limitName: string): Currency | undefined {
  const beginning = MONEY_NAME.exec(limitName)?.[1];
  return CURRENCIES.find((currency) => currency === beginning);
}

/** Returns whether a limit of that name counts money. */
export function isMoney(limitName: string): boolean {
  return currencyOf(limitName) !== undefined;
}

/** Returns the sign before amounts of a limit, or of a currency. */
export function signOf(limitName: string): string {
  return SIGNS[currencyOf(limitName) ?? "usd"];
}

/** Returns the currencies whose sign a text begins with. */
export function currenciesOf(text: string): readonly Currency[] {
  return CURRENCIES.filter((currency) => text.startsWith(SIGNS[currency]));
}

/** Returns an amount of a limit in a text that `readMoney` reads: `$12.5`. */
export function printMoney(limitName: string, micro: number): string {
  return signOf(limitName) + decimalOf(micro, 0);
}

/** Returns an amount of a limit as people write it: `$12.50`, `-€0.001234`. */
export function formatMoney(limitName: string, micro: number): string {
  const [whole = "", decimals] = decimalOf(Math.abs(micro), SHOWN_DECIMALS).split(".");
  const grouped = Number(whole).toLocaleString("en-US");
  return `${micro < 0 ? "-" : ""}${signOf(limitName)}${grouped}.${decimals}`;
}

function decimalOf(micro: number, decimalsMin: number): string {
  const [whole, rest] = [Math.floor(micro / MICRO_PER_DOLLAR), micro % MICRO_PER_DOLLAR];
  const decimals = String(rest).padStart(MONEY_DECIMALS, "0");
  let length = MONEY_DECIMALS;
  while (length > decimalsMin && decimals[length - 1] === "0") length -= 1;
  const shown = decimals.slice(0, length);
  return shown === "" ? String(whole) : `${whole}.${shown}`;
}
