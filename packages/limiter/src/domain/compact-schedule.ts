/**
 * Resets and windows as the Python library stores them: `1`, then for each expression its
 * constrained fields with a letter before each, joined by `;`. `0 0 1 * *` is `1m0h0D1`. A window
 * has its numbers behind that: `s` thousandths, or `c` capacity, `a` amount and `p` period.
 */

import { boundedMap } from "../base/bounded-map.ts";
import type { RateSchedule, RateWindow } from "../core/rate-schedule.ts";

const VERSION = "1";
/** In the order of the fields of an expression. */
const TAGS = ["m", "h", "D", "M", "w"] as const;
const TOKENS =
  /^(?:m([^a-zA-Z]+))?(?:h([^a-zA-Z]+))?(?:D([^a-zA-Z]+))?(?:M([^a-zA-Z]+))?(?:w([^a-zA-Z]+))?$/;
/** The fields of an entry, and the numbers behind them. */
const NUMBERS = /^(.*?)(?:s(\d+)|(?:c(\d+))?(?:a(\d+))?(?:p(\d+))?)$/;

const SCHEDULES_MAX = 1000;
const schedules = boundedMap<RateSchedule>(SCHEDULES_MAX);

/** Writes the expressions of a rule. */
export function encodeResets(cron: string): string {
  return VERSION + cron.split(";").map(fieldsText).join(";");
}

/** Writes windows. */
export function encodeWindows(windows: readonly RateWindow[]): string {
  return VERSION + windows.map(windowText).join(";");
}

/** Reads windows; `undefined` for a text of another version or form. */
export function decodeWindows(text: string): readonly RateWindow[] | undefined {
  if (!text.startsWith(VERSION)) return undefined;
  const windows: RateWindow[] = [];
  for (const entry of text.slice(VERSION.length).split(";")) {
    const [, fields = "", scale, capacity, amount, period] = NUMBERS.exec(entry) ?? [];
    if (!TOKENS.test(fields) || fields === entry) return undefined;
    windows.push({
      cron: fieldsOf(fields),
      ...(scale === undefined ? {} : { scaleMilli: Number(scale) }),
      ...(capacity === undefined ? {} : { capacity: Number(capacity) }),
      ...(amount === undefined ? {} : { refillAmount: Number(amount) }),
      ...(period === undefined ? {} : { refillPeriodSeconds: Number(period) }),
    });
  }
  return windows;
}

function windowText(window: RateWindow): string {
  const { cron, scaleMilli, capacity, refillAmount, refillPeriodSeconds } = window;
  const numbers = [
    ["s", scaleMilli],
    ["c", capacity],
    ["a", refillAmount],
    ["p", refillPeriodSeconds],
  ] as const;
  const given = numbers.filter(([, value]) => value !== undefined);
  return fieldsText(cron) + given.map(([letter, value]) => `${letter}${value}`).join("");
}

function fieldsText(cron: string): string {
  return cron
    .split(" ")
    .map((field, index) => (field === "*" ? "" : `${TAGS[index]}${field}`))
    .join("");
}

/** Reads the expressions of a rule; `undefined` for a text of another version or form. */
export function decodeResets(text: string): string | undefined {
  if (!text.startsWith(VERSION)) return undefined;
  const entries = text.slice(VERSION.length).split(";");
  if (entries.some((entry) => !TOKENS.test(entry))) return undefined;
  return entries.map(fieldsOf).join(";");
}

function fieldsOf(entry: string): string {
  const fields = TOKENS.exec(entry)?.slice(1) ?? [];
  return fields.map((field) => (field as string | undefined) ?? "*").join(" ");
}

/** Returns the text of windows: the zone, and the windows as they are stored. */
export function scheduleText({ timeZone, windows }: RateSchedule): string {
  return `${timeZone} ${encodeWindows(windows)}`;
}

/** Returns the windows of a text, for equal texts the same object; throws for any other text. */
export function windowsOf(text: string): RateSchedule {
  const before = schedules.get(text);
  if (before !== undefined) return before;
  const end = text.indexOf(" ");
  const windows = decodeWindows(text.slice(end + 1));
  if (windows === undefined) throw new Error(text);
  const schedule = Object.freeze({ timeZone: text.slice(0, end), windows });
  schedules.set(text, schedule);
  return schedule;
}
