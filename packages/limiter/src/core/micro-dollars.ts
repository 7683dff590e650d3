/**
 * Money as whole micro-dollars. Limits named `usd` or `usd_…` are counted in them. What people read
 * is made here, for the command line, errors and the page of the dashboard alike.
 */

/** Micro-dollars in a dollar. */
export const MICRO_PER_DOLLAR = 1_000_000;
export const MONEY_SIGN = "$";
/** Digits of a dollar behind the point, at most. */
export const MONEY_DECIMALS = 6;

const MONEY_NAME = /^usd(?:_[A-Za-z0-9_.-]*)?$/;
const SHOWN_DECIMALS = 2;

/** Returns whether a limit of that name counts money. */
export function isMoney(limitName: string): boolean {
  return MONEY_NAME.test(limitName);
}

/** Returns micro-dollars as dollars in a text that `readMoney` reads: `$12.5`. */
export function printMoney(micro: number): string {
  return MONEY_SIGN + decimalOf(micro, 0);
}

/** Returns micro-dollars as people write them: `$12.50`, `-$0.001234`. */
export function formatMoney(micro: number): string {
  const [whole = "", decimals] = decimalOf(Math.abs(micro), SHOWN_DECIMALS).split(".");
  const grouped = Number(whole).toLocaleString("en-US");
  return `${micro < 0 ? "-" : ""}${MONEY_SIGN}${grouped}.${decimals}`;
}

function decimalOf(micro: number, decimalsMin: number): string {
  const [whole, rest] = [Math.floor(micro / MICRO_PER_DOLLAR), micro % MICRO_PER_DOLLAR];
  const decimals = String(rest).padStart(MONEY_DECIMALS, "0");
  let length = MONEY_DECIMALS;
  while (length > decimalsMin && decimals[length - 1] === "0") length -= 1;
  const shown = decimals.slice(0, length);
  return shown === "" ? String(whole) : `${whole}.${shown}`;
}
