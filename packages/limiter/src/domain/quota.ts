/** The rule of a quota from words: every month, at six, on the 15th, in a zone. */

import { TextMemo } from "../base/text-memo.ts";
import { hasEdges } from "../core/calendar.ts";
import { readCron } from "../core/cron.ts";
import type { CalendarRule, Carry, PeriodRule, SessionRule } from "../core/period-rule.ts";
import {
  checkChoice,
  checkFields,
  checkInteger,
  PERIOD_SECONDS_MAX,
  show,
  TOKENS_MAX,
} from "./check.ts";
import { ValidationError } from "./errors/errors.ts";
import { readTimeZone, UTC } from "./zone.ts";

const UNITS = ["day", "week", "month", "quarter", "year"] as const;
const CARRIES = ["none", "debt", "rest", "both"] as const;
const COMMON_FIELDS = ["timeZone", "carry", "carryMax", "soft", "alerts"] as const;
const WEEKDAYS = [
  "monday",
  "tuesday",
  "wednesday",
  "thursday",
  "friday",
  "saturday",
  "sunday",
] as const;
/** Every month has the days up to this one. */
const DAY_MAX = 28;
const MIDNIGHT = "00:00";
const TIME = /^([01][0-9]|2[0-3]):([0-5][0-9])$/;
const DATE = /^(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$/;

/** The calendar units that a quota resets by. */
export type QuotaUnit = (typeof UNITS)[number];
/** A day of the week, as a boundary of weeks. */
export type QuotaWeekday = (typeof WEEKDAYS)[number];

/** Parts of the options of a quota that all calendars have. */
export interface CarryOptions {
  /** A time zone, such as `Europe/Berlin`; `UTC` when absent. */
  readonly timeZone?: string;
  /** Carries a debt, a rest or both into the next period; `none` when absent. */
  readonly carry?: Carry;
  /** The most tokens that `rest` and `both` carry. */
  readonly carryMax?: number;
  /** Refuses nothing: it is consumed into debt. */
  readonly soft?: boolean;
  /** Percentages of what a period grants, such as `[50, 80, 100]`: each writes one alert. */
  readonly alerts?: readonly number[];
}

/**
 * When a quota resets: by the calendar, by a cron expression, or a time after its first use.
 *
 * @example
 * ```ts
 * import { Limit, type QuotaOptions } from 'zae-limiter';
 * const monthly: QuotaOptions = { every: 'month', timeZone: 'Europe/Berlin', on: 15 };
 * console.log(String(Limit.quota('req', 10_000, monthly))); // req:10000/month@15 Europe/Berlin
 * ```
 */
export type QuotaOptions =
  | (CarryOptions & {
      readonly every: QuotaUnit;
      /** The local time of a reset, `HH:MM`; midnight when absent. */
      readonly at?: string;
      /** A day of the month from 1 to 28, a weekday, or for years the date `MM-DD`. */
      readonly on?: number | QuotaWeekday | string;
    })
  | (CarryOptions & {
      /** Five fields: minute, hour, day of the month, month, day of the week. */
      readonly cron: string;
    })
  | {
      /** How long a session lasts, which begins with the first call that is granted. */
      readonly after: SessionLength;
      readonly soft?: boolean;
      readonly alerts?: readonly number[];
    };

/** The length of a session; its parts add up. */
export interface SessionLength {
  /** Days of 24 hours. */
  readonly days?: number;
  /** Hours, besides the days. */
  readonly hours?: number;
  /** Minutes, besides the hours. */
  readonly minutes?: number;
  /** Seconds, besides the minutes. */
  readonly seconds?: number;
}

/** A calendar in words. */
export interface CalendarWords {
  readonly every: QuotaUnit;
  readonly on?: number | string;
  readonly at?: string;
}

const expressions = new TextMemo(readExpression);

/** Returns the rule that options of a quota state. */
export function quotaRule(options: QuotaOptions): PeriodRule {
  const given = options as unknown as Record<string, unknown> | undefined;
  if (given?.after !== undefined) {
    checkFields("options", options, ["after", "soft", "alerts"]);
    return sessionRule(lengthSeconds(given.after));
  }
  if (given?.cron !== undefined) {
    checkFields("options", options, ["cron", ...COMMON_FIELDS]);
    return calendarRule({ ...given, cron: given.cron });
  }
  checkFields("options", options, ["every", "at", "on", ...COMMON_FIELDS]);
  return calendarRule({ ...given, cron: cronOf(given as unknown as CalendarWords) });
}

/** Returns a frozen copy of a rule whose parts are valid. */
export function checkRule(rule: PeriodRule): PeriodRule {
  checkChoice("rule.kind", (rule as PeriodRule | null)?.kind, ["quota", "session"]);
  if (rule.kind === "session") {
    checkFields("rule", rule, ["kind", "seconds"]);
    return sessionRule(rule.seconds);
  }
  checkFields("rule", rule, ["kind", "cron", "timeZone", "carry", "carryMax"]);
  return calendarRule(rule);
}

/** Returns the words of a rule, or `undefined` when only its expression says it. */
export function wordsOf({ cron }: CalendarRule): CalendarWords | undefined {
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = cron.split(" ");
  if (!/^[0-9]+ [0-9]+ /.test(cron) || cron.includes(";")) return undefined;
  const time = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  const at = time === MIDNIGHT ? {} : { at: time };
  const date = `${day} ${month} ${weekday}`;
  if (date === "* * *") return { every: "day", ...at };
  const isWeekday = /^\* \* [1-7]$/.test(date);
  if (isWeekday) return { every: "week", ...onUnless("monday", weekdayName(weekday)), ...at };
  const dayNumber = Number(day);
  if (weekday !== "*" || !(dayNumber <= DAY_MAX)) return undefined;
  if (month === "*") return { every: "month", ...onUnless(1, dayNumber), ...at };
  if (month === "1,4,7,10") return { every: "quarter", ...onUnless(1, dayNumber), ...at };
  if (!/^[0-9]+$/.test(month)) return undefined;
  const yearly = `${month.padStart(2, "0")}-${day.padStart(2, "0")}`;
  return { every: "year", ...onUnless("01-01", yearly), ...at };
}

function onUnless<T>(usual: T, on: T): { readonly on?: T } {
  return on === usual ? {} : { on };
}

function weekdayName(number: string): string {
  return WEEKDAYS[Number(number) - 1] ?? "";
}

interface CalendarParts {
  readonly cron?: unknown;
  readonly timeZone?: unknown;
  readonly carry?: unknown;
  readonly carryMax?: unknown;
}

function calendarRule({ cron, timeZone = UTC, carry = "none", carryMax }: CalendarParts) {
  const rule: CalendarRule = {
    kind: "quota",
    cron: checkCron(cron),
    timeZone: checkTimeZone(timeZone),
    carry: checkChoice("carry", carry, CARRIES),
  };
  if (rule.carry === "rest" || rule.carry === "both") {
    return Object.freeze({ ...rule, carryMax: checkInteger("carryMax", carryMax, 1, TOKENS_MAX) });
  }
  if (carryMax === undefined) return Object.freeze(rule);
  const reason = `only carry "rest" and "both" take a carryMax, got carry "${rule.carry}"`;
  throw new ValidationError("carryMax", carryMax, reason);
}

function sessionRule(seconds: unknown): SessionRule {
  const checked = checkInteger("session_seconds", seconds, 1, PERIOD_SECONDS_MAX);
  return Object.freeze({ kind: "session", seconds: checked });
}

function lengthSeconds(after: unknown): number {
  checkFields("after", after, ["days", "hours", "minutes", "seconds"]);
  const { days = 0, hours = 0, minutes = 0, seconds = 0 } = after as SessionLength;
  const [day, hour, minute, second] = Object.entries({ days, hours, minutes, seconds }).map(
    ([name, count]) => checkInteger(`after.${name}`, count, 0, PERIOD_SECONDS_MAX),
  ) as [number, number, number, number];
  return day * 86_400 + hour * 3600 + minute * 60 + second;
}

/** Returns the name of a time zone as it is stored. */
export function checkTimeZone(value: unknown): string {
  if (typeof value !== "string") {
    const reason = `expected a name such as "Europe/Berlin", got ${show(value)}`;
    throw new ValidationError("timeZone", value, reason);
  }
  const read = readTimeZone(value);
  if ("timeZone" in read) return read.timeZone;
  throw new ValidationError("timeZone", value, read.problem);
}

function checkCron(value: unknown): string {
  if (typeof value !== "string") {
    const reason = `expected five fields such as "0 6 * * 1-5", got ${show(value)}`;
    throw new ValidationError("cron", value, reason);
  }
  const read = expressions.of(value);
  if ("text" in read) return read.text;
  const isSaid = read.problem.startsWith(show(value));
  throw new ValidationError("cron", value, read.problem + (isSaid ? "" : ` in ${show(value)}`));
}

/** Reads expressions that are joined by `;`. */
function readExpression(text: string): { readonly text: string } | { readonly problem: string } {
  const crons: string[] = [];
  for (const part of text.split(";")) {
    const read = readCron(part);
    if ("problem" in read) return read;
    if (!hasEdges(read)) {
      return { problem: `"${part.trim()}" never begins to match, so it never resets` };
    }
    crons.push(read.text);
  }
  return { text: crons.join(";") };
}

/** Returns the cron expression of a calendar in words. */
function cronOf({ every, on, at = MIDNIGHT }: CalendarWords): string {
  checkChoice("every", every, UNITS);
  const [, hour, minute] = TIME.exec(String(at)) ?? [];
  if (hour === undefined || minute === undefined) {
    throw new ValidationError("at", at, `expected a local time like "06:00", got ${show(at)}`);
  }
  return `${Number(minute)} ${Number(hour)} ${dateOf(every, on)}`;
}

/** Returns the last three fields of the expression. */
function dateOf(every: QuotaUnit, on: unknown): string {
  if (every === "day") {
    if (on === undefined) return "* * *";
    throw new ValidationError("on", on, `every day has no "on"; use week, month, quarter or year`);
  }
  if (every === "week") {
    const weekday = checkChoice("on", on ?? "monday", WEEKDAYS);
    return `* * ${WEEKDAYS.indexOf(weekday) + 1}`;
  }
  if (every === "year") return yearlyDate(on ?? "01-01");
  return `${monthDay(on ?? 1)} ${every === "quarter" ? "1,4,7,10" : "*"} *`;
}

function monthDay(on: unknown): number {
  if (Number.isInteger(on) && Number(on) >= 1 && Number(on) <= DAY_MAX) return Number(on);
  const reason =
    Number.isInteger(on) && Number(on) > DAY_MAX && Number(on) <= 31
      ? `not every month has a day ${on}; take 1 for its first day, or one up to ${DAY_MAX}`
      : `expected a day from 1 to ${DAY_MAX}, got ${show(on)}`;
  throw new ValidationError("on", on, reason);
}

function yearlyDate(on: unknown): string {
  const [, month, day] = DATE.exec(String(on)) ?? [];
  if (month === undefined || day === undefined) {
    throw new ValidationError("on", on, `expected a date like "04-01" (MM-DD), got ${show(on)}`);
  }
  return `${monthDay(Number(day))} ${Number(month)} *`;
}
