/**
 * The mini-language for limits: `name:rate[/[count]unit][:burst]`, unit `sec`, `min`, `hour` or
 * `day`, per minute when there is none. `rpm:100`, `tpm:10000/min:15000`, `burst:5/10sec`. The
 * word `soft` at the end makes a limit that refuses nothing: `tpm:10000/min soft`.
 */

import { show } from "./check.ts";
import { ValidationError } from "./errors/errors.ts";
import type { LimitSpec } from "./limit.ts";

/** From coarse to fine: printing takes the first that divides the period evenly. */
const UNIT_SECONDS: ReadonlyMap<string, number> = new Map([
  ["day", 86_400],
  ["hour", 3600],
  ["min", 60],
  ["sec", 1],
]);

const FORM =
  "name:rate[/[count]sec|min|hour|day][:burst][ soft], for example rpm:100 or tpm:10000/min:15000";
const SOFT_END = " soft";
const PERIOD_PATTERN = /^([0-9]*)([a-z]+)$/;
const INTEGER_PATTERN = /^-?[0-9]+$/;

/** Reads the text into numbers; their bounds are checked by `Limit`. */
export function parseLimit(text: string): LimitSpec {
  if (typeof text !== "string") {
    throw new ValidationError("limit", text, `expected text like ${FORM}, got ${show(text)}`);
  }
  const isSoft = text.endsWith(SOFT_END);
  const numbers = isSoft ? withoutSpaces(text.slice(0, -SOFT_END.length)) : text;
  const [name = "", rateAndPeriod, burst, ...rest] = numbers.split(":");
  if (rateAndPeriod === undefined || rest.length > 0) {
    throw new ValidationError("limit", text, `expected ${FORM}, got ${show(text)}`);
  }
  const [rate = "", period, ...more] = rateAndPeriod.split("/");
  if (more.length > 0) {
    throw new ValidationError("limit", text, `expected ${FORM}, got ${show(text)}`);
  }
  const refillAmount = parseInteger(text, "rate", rate);
  return {
    name,
    refillAmount,
    refillPeriodSeconds: period === undefined ? 60 : parsePeriod(text, period),
    capacity: burst === undefined ? refillAmount : parseInteger(text, "burst", burst),
    ...(isSoft ? { soft: true } : {}),
  };
}

/** Writes the text; reading it gives the same numbers. */
export function printLimit(limit: LimitSpec): string {
  const burst = limit.capacity === limit.refillAmount ? "" : `:${limit.capacity}`;
  const soft = limit.soft === true ? " soft" : "";
  const period = printPeriod(limit.refillPeriodSeconds);
  return `${limit.name}:${limit.refillAmount}/${period}${burst}${soft}`;
}

/** Prints `min`, `5min`, `day`: the coarsest unit that divides the seconds evenly. */
function printPeriod(seconds: number): string {
  for (const [unit, unitSeconds] of UNIT_SECONDS) {
    if (seconds % unitSeconds !== 0) continue;
    const count = seconds / unitSeconds;
    return count === 1 ? unit : `${count}${unit}`;
  }
  throw new ValidationError("refill_period_seconds", seconds, "must be whole seconds");
}

/** Removes the spaces at the end. */
function withoutSpaces(text: string): string {
  let end = text.length;
  while (text[end - 1] === " ") end -= 1;
  return text.slice(0, end);
}

function parsePeriod(text: string, period: string): number {
  const [, count, unit] = PERIOD_PATTERN.exec(period) ?? [];
  const unitSeconds = UNIT_SECONDS.get(unit ?? "");
  if (count === undefined || unitSeconds === undefined) {
    throw new ValidationError(
      "limit",
      text,
      `the period must be sec, min, hour or day, with an optional count before it (10sec), ` +
        `got ${show(period)}`,
    );
  }
  return unitSeconds * (count === "" ? 1 : parseInteger(text, "period", count));
}

function parseInteger(text: string, part: string, digits: string): number {
  const problem = problemOf(digits);
  if (problem === undefined) return Number(digits);
  const reason = `the ${part} ${problem}, got ${show(digits)} in ${show(text)}`;
  throw new ValidationError("limit", text, reason);
}

function problemOf(digits: string): string | undefined {
  if (!INTEGER_PATTERN.test(digits)) return "must be a whole number";
  const value = Number(digits);
  if (value < 1) return "must be positive";
  return Number.isSafeInteger(value) ? undefined : "has too many digits";
}
