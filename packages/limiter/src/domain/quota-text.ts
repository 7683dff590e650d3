/**
 * The text of a quota after its amount: `/unit[@on][ Zone][@HH:MM]`, `/cron(…)[ Zone]`, or
 * `/session:5hour`; and words for how limits come back.
 */

import { formatMoney, isMoney } from "../core/micro-dollars.ts";
import type { CalendarRule, PeriodRule } from "../core/period-rule.ts";
import type { RateWindow } from "../core/rate-schedule.ts";
import { show } from "./check.ts";
import { ValidationError } from "./errors/errors.ts";
import type { Limit } from "./limit.ts";
import { printPeriod, readPeriod } from "./limit-period.ts";
import { type QuotaOptions, type QuotaUnit, quotaRule, wordsOf } from "./quota.ts";
import { whenText } from "./schedule.ts";

const DAY_SECONDS = 86_400;
const CALENDAR =
  /^\/([0-9]*)(days?|d|weeks?|months?|quarters?|years?)(?:@((?![0-9]{2}:)[A-Za-z0-9-]+))?(?: ([+-][0-9:]+|[^\s@:]+))?(?:@([0-9]{2}:[0-9]{2}))?(.*)$/s;
const CRON = /^\/cron\(([^()]*)\)(?: ([+-][0-9:]+|[^\s@:]+))?(.*)$/s;
/** A time that is not written as one is. */
const LOOSE_TIME = /[@ ][0-9]{1,2}:[0-9]{2}/;
const SESSION = /^\/session(?::([0-9a-z]+))?(.*)$/s;

/** Returns whether the text after an amount is that of a quota by the calendar. */
export function isCalendar(tail: string): boolean {
  return /^\/[0-9]*(?:(?:week|month|quarter|year)s?\b|(?:days?|d)(?:@| [A-Za-z0-9+-]))/.test(tail);
}

/** Reads `/month@15 Europe/Berlin@06:00`. */
export function readCalendar(text: string, tail: string): PeriodRule {
  const [, count = "", unit = "", on, timeZone, at, rest = ""] = CALENDAR.exec(tail) ?? [];
  const every = (unit === "d" ? "day" : unit.replace(/s$/, "")) as QuotaUnit;
  if (unit === "") throw formError(text);
  if (at === undefined && LOOSE_TIME.test(tail)) {
    const reason = "a time is written @HH:MM behind the zone, such as /day UTC@06:00";
    throw new ValidationError("limit", text, `${reason}; got ${show(text)}`);
  }
  refuseRest(text, rest);
  if (count !== "" || unit.endsWith("s")) {
    const reason = `a quota is for one ${every}: write /${every}, and the amount for one ${every}`;
    throw new ValidationError("limit", text, `${reason}, got ${show(text)}`);
  }
  const date = on !== undefined && /^[0-9]+$/.test(on) ? Number(on) : on;
  return ruleIn(text, {
    every,
    ...(date === undefined ? {} : { on: date }),
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(at === undefined ? {} : { at }),
  });
}

/** Reads `/cron(0 6 * * 1-5) Europe/Berlin`. */
export function readCronQuota(text: string, tail: string): PeriodRule {
  const [, cron, timeZone, rest = ""] = CRON.exec(tail) ?? [];
  if (cron === undefined) throw formError(text);
  refuseRest(text, rest);
  return ruleIn(text, { cron, ...(timeZone === undefined ? {} : { timeZone }) });
}

/** Reads `/session:5hour`. */
export function readSession(text: string, tail: string): PeriodRule {
  const [, length, rest = ""] = SESSION.exec(tail) ?? [];
  if (length === undefined) {
    const reason = "a session needs its length, such as /session:5hour";
    throw new ValidationError("limit", text, `${reason}, got ${show(text)}`);
  }
  refuseRest(text, rest);
  const read = readPeriod(length);
  if ("problem" in read) {
    const problem = read.problem.replace("the period", "the length of a session");
    throw new ValidationError("limit", text, `${problem} in ${show(text)}`);
  }
  return ruleIn(text, { after: { seconds: read.seconds } });
}

/** Writes the text of a rule behind the amount; a calendar always has its zone. */
export function printRule(rule: PeriodRule): string {
  if (rule.kind === "session") return `/session:${printPeriod(rule.seconds)}`;
  return `/${printCalendar(rule)}`;
}

function printCalendar(rule: CalendarRule): string {
  const words = wordsOf(rule);
  if (words === undefined) return `cron(${rule.cron}) ${rule.timeZone}`;
  const { every, on, at } = words;
  const date = on === undefined ? "" : `@${on}`;
  return `${every}${date} ${rule.timeZone}${at === undefined ? "" : `@${at}`}`;
}

/** Returns when a limit resets, in words: `resets on day 15 at 06:00`. */
export function resetText(rule: PeriodRule): string {
  if (rule.kind === "session") return `resets ${lengthText(rule.seconds)} after its first use`;
  const words = wordsOf(rule);
  if (words === undefined) return "resets by its cron expression";
  const { every, on, at = "00:00" } = words;
  if (every === "day") return `resets at ${at}`;
  if (every === "week") return `resets on ${on ?? "monday"} at ${at}`;
  if (every === "year") return `resets on ${on ?? "01-01"} at ${at}`;
  return `resets on day ${on ?? 1} of the ${every} at ${at}`;
}

/** Returns `5 hours`, `1 minute`. */
function lengthText(seconds: number): string {
  const [, count = "", unit = ""] = /^([0-9]*)([a-z]+)$/.exec(printPeriod(seconds)) ?? [];
  const word = unit.replace("min", "minute").replace("sec", "second");
  return count === "" ? `1 ${word}` : `${count} ${word}s`;
}

/**
 * Returns how a limit comes back, and the parts that its text has not: `refills evenly`, `resets at
 * 06:00, carries what is left up to 500`. Empty for a rate below a day, which has one meaning.
 */
export function limitWords(limit: Limit): string {
  return [returnText(limit), carryText(limit), windowsText(limit)]
    .filter((part) => part !== "")
    .join(", ");
}

function returnText({ kind, rule, refillPeriodSeconds }: Limit): string {
  if (rule !== undefined) return resetText(rule);
  return kind === "rate" && refillPeriodSeconds >= DAY_SECONDS ? "refills evenly" : "";
}

/** Returns the carry of a quota in words. */
function carryText({ name, rule }: Limit): string {
  if (rule?.kind !== "quota" || rule.carry === "none") return "";
  if (rule.carry === "debt") return "carries a debt";
  const { carryMax = 0 } = rule;
  const most = isMoney(name) ? formatMoney(name, carryMax) : carryMax.toLocaleString("en-US");
  return `carries ${rule.carry === "both" ? "a debt, and " : ""}what is left up to ${most}`;
}

/** Returns the windows of a limit. */
function windowsText({ schedule }: Limit): string {
  if (schedule === undefined) return "";
  // The first window that is open applies: only neighbours with equal numbers go together.
  const windows: { numbers: string; when: string[] }[] = [];
  for (const window of schedule.windows) {
    const numbers = numbersText(window);
    const last = windows.at(-1);
    if (last?.numbers === numbers) last.when.push(whenText(window.cron));
    else windows.push({ numbers, when: [whenText(window.cron)] });
  }
  const texts = windows.map(({ numbers, when }) => `${numbers} in ${when.join(" and ")}`);
  return `by the clock of ${schedule.timeZone} ${texts.join(", ")}`;
}

/** Returns `x 0.5`, or the numbers that a window has instead of those of its limit. */
function numbersText(window: RateWindow): string {
  const { scaleMilli, capacity, refillAmount, refillPeriodSeconds } = window;
  if (scaleMilli !== undefined) return `x ${scaleMilli / 1000}`;
  const numbers = [
    ["capacity", capacity],
    ["refill", refillAmount],
    ["period", refillPeriodSeconds],
  ] as const;
  return numbers
    .flatMap(([name, value]) =>
      value === undefined ? [] : [`${name} ${value.toLocaleString("en-US")}`],
    )
    .join(" ");
}

/** Returns the rule of the options; an error shows the whole text. */
function ruleIn(text: string, options: QuotaOptions): PeriodRule {
  try {
    return quotaRule(options);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    throw new ValidationError("limit", text, `${error.reason} in ${show(text)}`);
  }
}

function refuseRest(text: string, rest: string): void {
  if (rest === "") return;
  const isBurst = /^:[0-9]/.test(rest);
  if (!isBurst) throw formError(text);
  const reason = "a quota has no burst: its amount is what a period grants";
  throw new ValidationError("limit", text, `${reason}, got ${show(text)}`);
}

function formError(text: string): ValidationError {
  const form =
    "name:amount/day|week|month|quarter|year[@on][ Zone][@HH:MM], name:amount/cron(fields)[ Zone] " +
    "or name:amount/session:5hour, for example req:10000/month Europe/Berlin";
  return new ValidationError("limit", text, `expected ${form}, got ${show(text)}`);
}
