/** The windows of a limit, as users, limits files and the JSON of a limit state them. */

import { defined } from "../base/defined.ts";
import type { Rate } from "../core/bucket.ts";
import { hasEdges } from "../core/calendar.ts";
import { readCron } from "../core/cron.ts";
import { type RateSchedule, type RateWindow, rateInWindow } from "../core/rate-schedule.ts";
import { openAt } from "../core/window-edges.ts";
import { checkFields, checkInteger, PERIOD_SECONDS_MAX, show, TOKENS_MAX } from "./check.ts";
import { ValidationError } from "./errors/errors.ts";
import type { LimitKind } from "./limit-spec.ts";
import { checkTimeZone } from "./quota.ts";
import { UTC } from "./zone.ts";

const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const DAY = /^(sun|mon|tue|wed|thu|fri|sat)(?:-(sun|mon|tue|wed|thu|fri|sat))?$/;
const HOURS = /^([0-9]{1,2})(?::([0-9]{2}))?-([0-9]{1,2})(?::([0-9]{2}))?$/;
const CRON_WORDS = /^cron\(([^()]*)\)$/;
const DAY_MINUTES = 1440;

/** A window in JSON and in the limits file, as the Python library has it. */
export type WindowJson = {
  /** Five fields: the local minutes in which the window is open. */
  readonly cron: string;
  /** The time zone, the same for all windows of a limit; `UTC` when absent. */
  readonly tz?: string;
  /** Multiplies capacity and refill; to the thousandth. */
  readonly scale?: number;
  readonly capacity?: number;
  readonly refill_amount?: number;
  readonly refill_period_seconds?: number;
};

/** Numbers that a window has instead of those of its limit. */
interface WindowNumbers {
  readonly capacity?: unknown;
  readonly refillAmount?: unknown;
  readonly refillPeriodSeconds?: unknown;
}

/** One window before it is checked. */
export interface GivenWindow extends WindowNumbers {
  /** Its expressions: several where words say more than one can. */
  readonly crons: readonly unknown[];
  readonly timeZone?: unknown;
  readonly scale?: unknown;
}

const WINDOWS_MAX = 100;
/** An expression with more ranges of hours is shorter than its words. */
const RANGES_MAX = 4;
const SCALE_MAX = 1_000_000;
const JSON_FIELDS = [
  ...["when", "cron", "tz", "scale"],
  ...["capacity", "refill_amount", "refill_period_seconds"],
];

/** Returns the windows of a limit; all have one zone, as its stores do. */
export function scheduleOf(
  kind: LimitKind,
  base: Rate,
  given: readonly GivenWindow[],
): RateSchedule {
  if (kind !== "rate") {
    const reason = `only limits that refill evenly have windows, and this one is a ${kind}`;
    throw new ValidationError("schedule", kind, reason);
  }
  if (given.length === 0) {
    throw new ValidationError("schedule", given, "expected at least one window, got none");
  }
  const zones = given.map(({ timeZone = UTC }) => checkTimeZone(timeZone));
  const [timeZone = UTC] = zones;
  const other = zones.find((zone) => zone !== timeZone);
  if (other !== undefined) {
    const reason = `all windows of a limit have one time zone, got ${timeZone} and ${other}`;
    throw new ValidationError("timeZone", other, reason);
  }
  const windows = given.flatMap((window) => {
    const numbers = numbersOf(window);
    return window.crons.map((cron) => checked(base, { cron: checkCron(cron), ...numbers }));
  });
  if (windows.length > WINDOWS_MAX) {
    const reason = `a limit has at most ${WINDOWS_MAX} windows, got ${windows.length}`;
    throw new ValidationError("schedule", windows.length, reason);
  }
  return Object.freeze({ timeZone, windows: Object.freeze(windows) });
}

/** Returns a frozen copy of windows whose parts are valid. */
export function checkSchedule(kind: LimitKind, base: Rate, schedule: RateSchedule): RateSchedule {
  checkFields("schedule", schedule, ["timeZone", "windows"]);
  const { timeZone, windows } = schedule;
  if (!Array.isArray(windows)) {
    throw new ValidationError("windows", windows, `expected a list, got ${show(windows)}`);
  }
  const given = windows.map(({ cron, scaleMilli, ...numbers }: RateWindow) => ({
    crons: [cron],
    timeZone,
    ...numbers,
    ...(scaleMilli === undefined ? {} : { scale: scaleMilli / 1000 }),
  }));
  return scheduleOf(kind, base, given);
}

/** Returns the JSON of windows. */
export function scheduleJson(schedule: RateSchedule | undefined): {
  readonly schedule?: readonly WindowJson[];
} {
  if (schedule === undefined) return {};
  const { timeZone, windows } = schedule;
  return {
    schedule: windows.map(
      ({ cron, scaleMilli, capacity, refillAmount, refillPeriodSeconds }): WindowJson => ({
        cron,
        ...(timeZone === UTC ? {} : { tz: timeZone }),
        ...(defined({
          scale: scaleMilli === undefined ? undefined : scaleMilli / 1000,
          capacity,
          refill_amount: refillAmount,
          refill_period_seconds: refillPeriodSeconds,
        }) as object),
      }),
    ),
  };
}

/** Returns the windows that JSON or a limits file states. */
export function readWindows(value: unknown): readonly GivenWindow[] {
  if (!Array.isArray(value)) {
    const reason = `expected a list of windows such as { cron, scale }, got ${show(value)}`;
    throw new ValidationError("schedule", value, reason);
  }
  return value.map((entry: Record<string, unknown>) => {
    checkFields("schedule", entry, JSON_FIELDS);
    const { when, cron, tz, scale, capacity, refill_amount, refill_period_seconds } = entry;
    if ((when === undefined) === (cron === undefined)) {
      throw new ValidationError("schedule", entry, "a window has either when or cron");
    }
    const numbers = { refillAmount: refill_amount, refillPeriodSeconds: refill_period_seconds };
    return {
      crons: when === undefined ? [cron] : cronsOf(when),
      ...defined({ timeZone: tz, scale, capacity, ...numbers }),
    };
  });
}

/** Returns windows that were given in words. `replacedBy`: the numbers of a limit. */
export function givenWindows<Given>(
  windows: readonly {
    readonly when: string;
    readonly timeZone?: string;
    readonly scale?: number;
    readonly limit?: Given;
  }[],
  replacedBy: (limit: Given) => WindowNumbers,
): readonly GivenWindow[] {
  if (!Array.isArray(windows)) {
    const reason = `expected a list of windows such as { when, scale }, got ${show(windows)}`;
    throw new ValidationError("schedule", windows, reason);
  }
  return windows.map((window) => {
    checkFields("schedule", window, ["when", "timeZone", "scale", "limit"]);
    const { when, timeZone, scale, limit } = window;
    const numbers = limit === undefined ? {} : replacedBy(limit);
    return { crons: cronsOf(when), ...numbers, ...defined({ timeZone, scale }) };
  });
}

function numbersOf(given: GivenWindow): Omit<RateWindow, "cron"> {
  const { scale, capacity, refillAmount, refillPeriodSeconds } = given;
  const isReplaced = [capacity, refillAmount, refillPeriodSeconds].some((one) => one !== undefined);
  if ((scale === undefined) !== isReplaced) {
    const reason = "a window has either a scale or numbers of its own";
    throw new ValidationError("schedule", given, `${reason}, got ${show(scale)}`);
  }
  if (scale !== undefined) return { scaleMilli: checkScale(scale) };
  const whole = (name: string, value: unknown, most: number) =>
    value === undefined ? undefined : checkInteger(name, value, 1, most);
  return defined({
    capacity: whole("capacity", capacity, TOKENS_MAX),
    refillAmount: whole("refill_amount", refillAmount, TOKENS_MAX),
    refillPeriodSeconds: whole("refill_period_seconds", refillPeriodSeconds, PERIOD_SECONDS_MAX),
  });
}

/** Returns the thousandths of a scale; more decimals would be lost where it is stored. */
function checkScale(scale: unknown): number {
  const milli = typeof scale === "number" ? Math.round(scale * 1000) : Number.NaN;
  if (milli >= 1 && milli <= SCALE_MAX * 1000 && milli / 1000 === scale) return milli;
  const reason = `expected a number from 0.001 to ${SCALE_MAX} with at most three decimals`;
  throw new ValidationError("scale", scale, `${reason}, got ${show(scale)}`);
}

function checked(base: Rate, window: RateWindow): RateWindow {
  const { capacityMilli, refillMilli } = rateInWindow(base, window);
  if (Math.max(capacityMilli, refillMilli) > TOKENS_MAX * 1000) {
    const reason = `a window has at most ${TOKENS_MAX} tokens`;
    throw new ValidationError("schedule", window, `${reason}, got ${show(window)}`);
  }
  return Object.freeze(window);
}

function checkCron(value: unknown): string {
  if (typeof value !== "string") {
    const reason = `expected five fields such as "* 9-17 * * 1-5", got ${show(value)}`;
    throw new ValidationError("cron", value, reason);
  }
  const read = readCron(value);
  if ("problem" in read) {
    throw new ValidationError("cron", value, `${read.problem} in ${show(value)}`);
  }
  // Without an edge it always matches, or never does.
  const isEver = hasEdges(read) || openAt({ crons: [read], offsetAt: () => 0 }, 0) === 0;
  if (isEver) return read.text;
  throw new ValidationError("cron", value, `${show(value)} never matches`);
}

/** Returns the expressions that match in the same local minutes; several where hours are cut. */
export function cronsOf(when: unknown): readonly string[] {
  if (typeof when !== "string") throw formError(when);
  const text = when.trim().toLowerCase();
  const [, cron] = CRON_WORDS.exec(text) ?? [];
  if (cron !== undefined) return [cron];
  const words = text.split(/\s+/);
  const days = words[0] !== undefined && /^[a-z]/.test(words[0]) ? words.shift() : undefined;
  const times = words.shift();
  if (words.length > 0 || (days === undefined && times === undefined)) throw formError(when);
  const weekdays = days === undefined ? "*" : weekdaysOf(when, days);
  if (times === undefined) return [`* * * * ${weekdays}`];
  return times
    .split(",")
    .flatMap((range) => minutesOf(when, range))
    .map((fields) => `${fields} * * ${weekdays}`);
}

/** Returns when an expression matches, in words that `cronsOf` reads; `cron(…)` without any. */
export function whenText(cron: string): string {
  const read = readCron(cron);
  const hasWords =
    "edges" in read &&
    // Where one of two days suffices, the weekdays alone do not say when.
    !read.isEitherDay &&
    read.days.size === 31 &&
    read.months.size === 12 &&
    read.edges.length <= RANGES_MAX;
  if (!hasWords) return `cron(${cron})`;
  const { edges, ends, weekdays } = read;
  const ranges = edges.map((edge, at) => `${timeText(edge)}-${timeText(ends[at] as number)}`);
  const times = ranges.join(",");
  if (weekdays.size === 7) return times;
  return times === "0-24" ? daysText(weekdays) : `${daysText(weekdays)} ${times}`;
}

/** Returns weekdays from Monday on, as ranges where three or more follow each other. */
function daysText(weekdays: ReadonlySet<number>): string {
  const week = [...DAYS.keys()].map((at) => (at + 1) % 7);
  const parts: string[][] = [];
  for (const [at, day] of week.entries()) {
    if (!weekdays.has(day)) continue;
    const name = DAYS[day] as string;
    if (at > 0 && weekdays.has(week[at - 1] as number)) parts.at(-1)?.push(name);
    else parts.push([name]);
  }
  return parts
    .map((part) => (part.length > 2 ? `${part[0]}-${part.at(-1)}` : part.join(",")))
    .join(",");
}

/** Returns minutes of the day as `9` or `8:30`. */
function timeText(minutes: number): string {
  const rest = minutes % 60;
  const hour = Math.floor(minutes / 60);
  return rest === 0 ? String(hour) : `${hour}:${String(rest).padStart(2, "0")}`;
}

function weekdaysOf(when: unknown, text: string): string {
  return text
    .split(",")
    .map((part) => {
      const [, first, last] = DAY.exec(part) ?? [];
      if (first === undefined) throw formError(when);
      const from = DAYS.indexOf(first);
      if (last === undefined) return String(from === 0 ? 7 : from);
      const to = DAYS.indexOf(last);
      if (from < to) return `${from}-${to}`;
      // Days over the end of a week are listed one by one.
      const count = ((to - from + 7) % 7) + 1;
      return Array.from({ length: count }, (_, at) => (from + at) % 7 || 7).join(",");
    })
    .join(",");
}

/** Returns the first two fields of the expressions of a range of hours. */
function minutesOf(when: unknown, text: string): string[] {
  const [, fromHour, fromMinute = "0", toHour, toMinute = "0"] = HOURS.exec(text) ?? [];
  if (fromHour === undefined) throw formError(when);
  const from = Number(fromHour) * 60 + Number(fromMinute);
  const to = Number(toHour) * 60 + Number(toMinute);
  const isTime = Number(fromMinute) < 60 && Number(toMinute) < 60 && to <= DAY_MINUTES;
  if (!isTime) throw formError(when);
  if (to <= from) {
    const reason = "a window ends on the day on which it opens: write 22-24 and 0-6 as two windows";
    throw new ValidationError("when", when, `${reason}, got ${show(when)}`);
  }
  const pieces: string[] = [];
  for (let at = from; at < to; ) {
    const wholeHours = at % 60 === 0 ? Math.floor((to - at) / 60) : 0;
    const end = wholeHours > 0 ? at + wholeHours * 60 : Math.min(to, at - (at % 60) + 60);
    pieces.push(wholeHours > 0 ? `* ${hours(at / 60, wholeHours)}` : minutes(at, end));
    at = end;
  }
  return pieces;
}

/** Returns the field of whole hours, and of all minutes in them. */
function hours(first: number, count: number): string {
  if (count === 24) return "*";
  return count === 1 ? String(first) : `${first}-${first + count - 1}`;
}

/** Returns the fields of minutes that are in one hour. */
function minutes(from: number, to: number): string {
  const [first, count] = [from % 60, to - from];
  const range = count === 1 ? String(first) : `${first}-${first + count - 1}`;
  return `${range} ${Math.floor(from / 60)}`;
}

function formError(when: unknown): ValidationError {
  const form = 'expected days and hours such as "mon-fri 9-18", "sat,sun" or "8:30-12"';
  return new ValidationError("when", when, `${form}, or cron(…), got ${show(when)}`);
}
