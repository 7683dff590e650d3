/** The time that a usage report covers: a month or days, as a local clock shows them. */

import { firstInstant, type Period } from "@zae-limiter/limiter/core/calendar.ts";
import { show } from "@zae-limiter/limiter/domain/check.ts";
import { localClock, localIso, readTimeZone } from "@zae-limiter/limiter/domain/zone.ts";
import { UsageError } from "../../frame/command.ts";

const DAYS_MAX = 366;
const DAY_MS = 86_400_000;

export interface PeriodOptions {
  readonly month?: string;
  readonly from?: string;
  readonly to?: string;
}

/** Reads the name of a time zone for a `parse` of options. */
export function zoneOption(text: string): string {
  const read = readTimeZone(text);
  if ("timeZone" in read) return read.timeZone;
  throw new UsageError(read.problem);
}

/** Returns the period that the options name; without any, the local month that holds `nowMs`. */
export function reportPeriod(
  { month, from, to }: PeriodOptions,
  timeZone: string,
  nowMs: number,
): Period {
  const clock = localClock(timeZone);
  const periodOf = (start: number, end: number) => {
    return { startMs: firstInstant(clock, start), endMs: firstInstant(clock, end) };
  };
  if (from === undefined && to !== undefined) {
    throw new UsageError("--to needs --from, the first day");
  }
  if (from === undefined) {
    const [year, at] = readMonth(month ?? localIso(timeZone, nowMs).slice(0, 7));
    return periodOf(Date.UTC(year, at), Date.UTC(year, at + 1));
  }
  if (month !== undefined) throw new UsageError("--month and --from exclude each other");
  const first = readDay("--from", from);
  const last = readDay("--to", to ?? localIso(timeZone, nowMs).slice(0, 10));
  if (last < first) {
    throw new UsageError(`expected --to on or after --from ${from}, got ${show(to ?? "today")}`);
  }
  const days = (last - first) / DAY_MS + 1;
  if (days > DAYS_MAX) {
    throw new UsageError(`expected at most ${DAYS_MAX} days, got ${days}`);
  }
  return periodOf(first, last + DAY_MS);
}

function readMonth(text: string): readonly [year: number, monthIndex: number] {
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text) ?? [];
  if (year !== undefined && Number(year) >= 1970) return [Number(year), Number(month) - 1];
  throw new UsageError(`expected --month like 2026-11, got ${show(text)}`);
}

/** Returns the beginning of a day, as milliseconds that a local clock shows. */
function readDay(option: string, text: string): number {
  const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  // Date.parse takes 31 days for every month.
  const isDay = !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text) && ms >= 0;
  if (isDay) return ms;
  throw new UsageError(`expected ${option} as a day like 2026-11-15, got ${show(text)}`);
}
