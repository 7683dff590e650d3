/** Local clocks of time zones. No other file of the limiter asks `Intl` for them. */

import { distance } from "../base/nearest.ts";
import { TextMemo } from "../base/text-memo.ts";
import type { OffsetAt } from "../core/calendar.ts";

export const UTC = "UTC";
/** Zones have names here: an offset such as `+02:00` would hide when summer begins. */
const NAME = /^[A-Za-z][A-Za-z0-9_+/-]*$/;
/** Each part begins with a capital letter: other systems find files by this name. */
const IS_SPELLED = /^[A-Z][^/]*(?:\/[A-Z][^/]*)*$/;
const EXAMPLES = "Europe/Berlin, America/New_York or UTC";

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
  const name = NAME.test(text) ? nameOfIntl(text) : undefined;
  if (name !== undefined) return { timeZone: IS_SPELLED.test(text) ? text : name };
  const likely = likelyZones(text, known).join(", ");
  const advice = likely === "" ? `expected a name such as ${EXAMPLES}` : `did you mean ${likely}?`;
  return { problem: `there is no time zone "${text}" here; ${advice}` };
}

/** Returns up to three names: of the same city, else those that differ by a few letters. */
function likelyZones(text: string, known: readonly string[]): readonly string[] {
  const asked = text.toLowerCase().replaceAll(" ", "_");
  const sameCity = known.filter((name) => name.toLowerCase().endsWith(`/${asked}`));
  if (sameCity.length > 0) return sameCity.slice(0, 3);
  const lettersOff = (name: string) => {
    const whole = name.toLowerCase();
    const city = whole.slice(whole.lastIndexOf("/") + 1);
    return Math.min(distance(asked, whole), distance(asked, city));
  };
  return [UTC, ...known]
    .map((name) => ({ name, letters: lettersOff(name) }))
    .filter(({ letters }) => letters <= Math.floor(asked.length / 3))
    .sort((one, other) => one.letters - other.letters)
    .slice(0, 3)
    .map(({ name }) => name);
}

function knownZones(): readonly string[] {
  return Intl.supportedValuesOf("timeZone");
}

/** Returns the name that `Intl` has for a zone; `undefined` when it knows none. */
function nameOfIntl(text: string): string | undefined {
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone: text }).resolvedOptions().timeZone;
  } catch {
    return undefined;
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
