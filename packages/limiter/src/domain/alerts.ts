/** The percentages of a quota or a session at which an alert is written, once a period each. */

import { show } from "./check.ts";
import { ValidationError } from "./errors/errors.ts";

/** A soft limit, and debts, go beyond 100. */
const PERCENT_MAX = 1000;
const COUNT_MAX = 10;
const WORD = " alerts ";
const PERCENTS = /^[0-9 ,]+$/;

const NO_ALERTS: readonly number[] = Object.freeze([]);

/** Returns the percentages in ascending order, frozen; refuses those of a limit without periods. */
export function checkAlerts(value: unknown, hasPeriods: boolean): readonly number[] {
  if (value === undefined) return NO_ALERTS;
  const form = `at most ${COUNT_MAX} whole percentages from 1 to ${PERCENT_MAX}, such as [50, 80, 100]`;
  const refuse = (reason: string) => new ValidationError("alerts", value, reason);
  if (!Array.isArray(value)) throw refuse(`expected ${form}, got ${show(value)}`);
  if (value.length === 0) return NO_ALERTS;
  const isPercent = (each: unknown) =>
    Number.isInteger(each) && (each as number) >= 1 && (each as number) <= PERCENT_MAX;
  const percents = Array.from(value as readonly unknown[]);
  if (percents.length > COUNT_MAX || !percents.every(isPercent)) {
    throw refuse(`expected ${form}, got [${percents.map(show).join(", ")}]`);
  }
  if (new Set(percents).size < percents.length) {
    throw refuse(`a percentage is given twice in [${percents.join(", ")}]`);
  }
  if (!hasPeriods) {
    throw refuse(
      "only quotas and sessions have alerts: limits of other kinds have no period to use up",
    );
  }
  return Object.freeze((percents as number[]).sort((one, other) => one - other));
}

/** Cuts ` alerts 50,80,100` off the end of a limit's text. */
export function cutAlerts(text: string): { readonly rest: string; readonly alerts?: number[] } {
  const at = text.lastIndexOf(WORD);
  const percents = at < 0 ? "" : text.slice(at + WORD.length);
  if (!PERCENTS.test(percents)) return { rest: text };
  const words = percents.split(/[ ,]/).filter((word) => word !== "");
  return { rest: text.slice(0, at), alerts: words.map(Number) };
}

/** Returns what the text of a limit has for its alerts: ` alerts 50,80,100`. */
export function printAlerts(alerts: readonly number[] | undefined): string {
  return alerts === undefined || alerts.length === 0 ? "" : ` alerts ${alerts.join(",")}`;
}

export function sameAlerts(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((percent, at) => percent === other[at]);
}
