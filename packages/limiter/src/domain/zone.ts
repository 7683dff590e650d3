/** Local clocks of time zones. No other file of the limiter asks `Intl` for them. */

import { nearest } from "../base/nearest.ts";
import { TextMemo } from "../base/text-memo.ts";
import type { OffsetAt } from "../core/calendar.ts";

const UTC = "UTC";
/** Zones have names here: an offset such as `+02:00` would hide when summer begins. */
const NAME = /^[A-Za-z][A-Za-z0-9_+/-]*$/;

/** The name of a zone as it is stored, or what is wrong with it. */
type ReadZone = { readonly timeZone: string } | { readonly problem: string };

const names = new TextMemo(readName);
const offsets = new TextMemo(offsetAtOf);

/** Reads the name of a time zone; `europe/berlin` is `Europe/Berlin`. */
export function readTimeZone(text: string): ReadZone {
  return names.of(text);
}

/** Returns the local clock of a zone whose name has been read. */
export function localClock(timeZone: string): OffsetAt {
  return offsets.of(timeZone);
}

/**
 * Formats an instant for people, as the local clock of a zone shows it, with the name of the zone:
 * `2026-12-01 00:00 Europe/Berlin`.
 */
export function localText(timeZone: string, ms: number): string {
  const local = new Date(ms + localClock(timeZone)(ms)).toISOString();
  const seconds = local.slice(16, 19) === ":00" ? "" : local.slice(16, 19);
  return `${local.slice(0, 10)} ${local.slice(11, 16)}${seconds} ${timeZone}`;
}

/** Formats an instant in ISO 8601 with the offset of a zone: `2026-12-01T00:00:00+01:00`. */
export function localIso(timeZone: string, ms: number): string {
  const offsetMs = localClock(timeZone)(ms);
  const local = new Date(ms + offsetMs).toISOString().slice(0, 19);
  if (offsetMs === 0) return `${local}Z`;
  const minutes = Math.floor(Math.abs(offsetMs) / 60_000);
  const clock = [Math.floor(minutes / 60), minutes % 60].map((part) =>
    String(part).padStart(2, "0"),
  );
  return `${local}${offsetMs < 0 ? "-" : "+"}${clock.join(":")}`;
}

function readName(text: string): ReadZone {
  if (text.toUpperCase() === UTC) return { timeZone: UTC };
  const known = knownZones();
  const listed = known.find((name) => name.toLowerCase() === text.toLowerCase());
  if (listed !== undefined) return { timeZone: listed };
  // The list leaves out second names of zones, such as Asia/Kolkata.
  if (NAME.test(text) && isZone(text)) return { timeZone: text };
  const likely = likelyZones(text, known).join(", ");
  return { problem: `there is no time zone "${text}" here; did you mean ${likely}?` };
}

/** Returns up to three names: of the same city, else those that differ by the fewest letters. */
function likelyZones(text: string, known: readonly string[]): readonly string[] {
  const end = `/${text.toLowerCase().replaceAll(" ", "_")}`;
  const sameCity = known.filter((name) => name.toLowerCase().endsWith(end));
  if (sameCity.length > 0) return sameCity.slice(0, 3);
  const likely: string[] = [];
  let left = [UTC, ...known];
  while (likely.length < 3) {
    const next = nearest(text, left);
    if (next === undefined) break;
    likely.push(next);
    left = left.filter((name) => name !== next);
  }
  return likely;
}

function knownZones(): readonly string[] {
  return Intl.supportedValuesOf("timeZone");
}

function isZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

function offsetAtOf(timeZone: string): OffsetAt {
  if (timeZone === UTC) return () => 0;
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    calendar: "iso8601",
    numberingSystem: "latn",
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  return (ms) => {
    const wholeMs = Math.floor(ms / 1000) * 1000;
    const parts: Record<string, number> = {};
    for (const { type, value } of format.formatToParts(wholeMs)) parts[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second) - wholeMs;
  };
}
