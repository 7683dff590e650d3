/**
 * Texts of limits in money. They have the sign of their currency and at most six decimals, so that
 * `usd:$12.50/month UTC` cannot be taken for 12 micro-dollars.
 */

import { isMoney, MICRO_PER_DOLLAR, MONEY_DECIMALS, signOf } from "../core/micro-dollars.ts";
import { show, TOKENS_MAX } from "./check.ts";
import { ValidationError } from "./errors/errors.ts";

const DECIMAL = /^(\d+(?:_\d+)*)(?:\.(\d{1,6}))?$/;

/** Reads `$12.50` as micro-dollars; `text` is the whole limit, for errors. */
export function readMoney(text: string, name: string, amount: string): number {
  const sign = signOf(name);
  const number = amount.startsWith(sign) ? amount.slice(sign.length) : "";
  const [, whole, decimals = ""] = DECIMAL.exec(number) ?? [];
  if (whole === undefined) throw new ValidationError("limit", text, problemOf(text, name, amount));
  const dollars = Number(whole.replaceAll("_", ""));
  const micro = dollars * MICRO_PER_DOLLAR + Number(decimals.padEnd(MONEY_DECIMALS, "0"));
  if (micro > 0 && micro <= TOKENS_MAX) return micro;
  const bound =
    micro === 0 ? `more than ${sign}0` : `at most ${sign}1,000,000, which is the bound of a limit`;
  throw new ValidationError("limit", text, `expected ${bound}, got ${show(amount)}`);
}

/** Refuses periods in which money would not mean what it says. */
export function checkMoneyPeriod(text: string, name: string, tail: string): void {
  if (!isMoney(name)) return;
  if (tail === "" || tail.startsWith(":")) {
    const reason = `money needs a period, such as ${name}:${signOf(name)}500/month Europe/Berlin`;
    throw new ValidationError("limit", text, `${reason}, got ${show(text)}`);
  }
  if (!/^\/1?(?:day|d)s?(?::|$)/.test(tail)) return;
  const reason =
    "money a day would drip back all the time, and let nearly twice the amount through on the " +
    "first day; name the zone whose midnight resets it, such as /day UTC";
  throw new ValidationError("limit", text, `${reason}, got ${show(text)}`);
}

function problemOf(text: string, name: string, amount: string): string {
  const sign = signOf(name);
  if (amount.startsWith(sign)) {
    return `expected money with at most six decimals, such as ${sign}12.50, got ${show(amount)}`;
  }
  const expected = `"${name}" is money: expected ${name}:${sign}500/month, got ${show(text)}`;
  if (sign !== "$") return expected;
  return `${expected}; in a shell, put the text in single quotes: "${name}:$500/…" becomes ${name}:00/…`;
}
