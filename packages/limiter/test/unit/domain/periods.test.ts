import { firstInstant, latestShown, type OffsetAt } from "@zae-limiter/limiter/core/calendar.ts";
import type { CalendarRule } from "@zae-limiter/limiter/core/period-rule.ts";
import { decodeResets } from "@zae-limiter/limiter/domain/compact-schedule.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { statusOf } from "@zae-limiter/limiter/domain/limit-status.ts";
import { PERIODS, Periods } from "@zae-limiter/limiter/domain/periods.ts";
import { localClock } from "@zae-limiter/limiter/domain/zone.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { scheduleVectors } from "@zae-limiter/test-support/golden-items.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { describeUnless } from "@zae-limiter/test-support/unless.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

function ruleOf(text: string): CalendarRule {
  const { rule } = Limit.parse(text);
  if (rule?.kind !== "quota") throw new Error(`${text} is no quota`);
  return rule;
}

function quota(calendar: string): CalendarRule {
  return ruleOf(`req:10/${calendar}`);
}

describe("periods by the calendar", () => {
  test.each([
    ["month Europe/Berlin", "2026-10-31T22:59:59.999Z", "2026-09-30T22:00Z", 1793487600000],
    ["month Europe/Berlin", "2026-10-31T23:00:00Z", "2026-10-31T23:00Z", 1796079600000],
    ["month Europe/Berlin", "2027-03-15T12:00:00Z", "2027-02-28T23:00Z", 1806530400000],
    ["day Europe/Berlin", "2027-03-28T12:00:00Z", "2027-03-27T23:00Z", 1806271200000],
    ["day Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00Z", 1792969200000],
    ["week Europe/Berlin", "2026-11-18T06:30:00Z", "2026-11-15T23:00Z", 1795388400000],
    ["day Europe/Berlin@02:30", "2027-03-28T12:00:00Z", "2027-03-28T01:00Z", 1806280200000],
    ["day Europe/Berlin@02:30", "2026-10-25T00:45:00Z", "2026-10-25T00:30Z", 1792978200000],
    ["day Europe/Berlin@02:30", "2026-10-25T01:45:00Z", "2026-10-25T00:30Z", 1792978200000],
    ["day America/Santiago", "2026-09-06T12:00:00Z", "2026-09-06T04:00Z", 1788750000000],
    ["day America/Santiago", "2026-04-05T03:30:00Z", "2026-04-04T03:00Z", 1775361600000],
    ["day America/Havana", "2026-11-01T05:30:00Z", "2026-11-01T04:00Z", 1793595600000],
    ["day Africa/Cairo", "2026-04-24T12:00:00Z", "2026-04-23T22:00Z", 1777064400000],
    ["day Atlantic/Azores", "2026-10-25T01:30:00Z", "2026-10-25T00:00Z", 1792976400000],
    ["day Pacific/Apia", "2011-12-30T12:00:00Z", "2011-12-30T10:00Z", 1325325600000],
    ["day Australia/Lord_Howe@02:15", "2026-10-03T16:00:00Z", "2026-10-03T15:30Z", 1791126900000],
    ["quarter America/New_York", "2026-11-18T06:30:00Z", "2026-10-01T04:00Z", 1798779600000],
    ["year Asia/Kolkata", "2026-11-18T06:30:00Z", "2025-12-31T18:30Z", 1798741800000],
    ["month@15 Asia/Tokyo", "2026-11-18T06:30:00Z", "2026-11-14T15:00Z", 1797260400000],
  ])("the period of %s at %s", (calendar, at, start, endMs) => {
    const limit = Limit.parse(`req:10/${calendar}`);
    expect(limit.periodAt(Date.parse(at))).toEqual({ startMs: Date.parse(start), endMs });
  });

  test.each([
    [
      "cron(30 2 * * *) America/New_York",
      "2026-03-08T12:00Z",
      "2026-03-08T07:00Z",
      "2026-03-09T06:30Z",
    ],
    [
      "cron(30 1 * * *) America/New_York",
      "2026-11-01T07:30Z",
      "2026-11-01T05:30Z",
      "2026-11-02T06:30Z",
    ],
    ["cron(0 0 29 2 *) UTC", "2026-11-16T00:00Z", "2024-02-29T00:00Z", "2028-02-29T00:00Z"],
    ["cron(* 0 * * *) UTC", "2026-11-16T00:30Z", "2026-11-16T00:00Z", "2026-11-17T00:00Z"],
    ["cron(0 */5 * * *) UTC", "2026-11-16T23:30Z", "2026-11-16T20:00Z", "2026-11-17T00:00Z"],
    [
      "cron(* 22-23 * * *;* 0-1 * * *) UTC",
      "2026-11-16T00:30Z",
      "2026-11-16T00:00Z",
      "2026-11-16T22:00Z",
    ],
    ["cron(* * * * MON) UTC", "2026-11-18T00:00Z", "2026-11-16T00:00Z", "2026-11-23T00:00Z"],
    ["cron(* * * * 1-2) UTC", "2026-11-17T12:00Z", "2026-11-16T00:00Z", "2026-11-23T00:00Z"],
  ])("the period of %s at %s", (calendar, at, start, end) => {
    const expected = { startMs: Date.parse(start), endMs: Date.parse(end) };
    expect(PERIODS.at(quota(calendar), Date.parse(at))).toEqual(expected);
  });

  test("rates and sessions have no period of their own", () => {
    expect(Limit.parse("rpm:10").periodAt(0)).toBeUndefined();
    expect(Limit.parse("tok:10/session:5hour").periodAt(0)).toBeUndefined();
    expect(() => Limit.parse("r:1/month").periodAt(Number.NaN)).toThrow(/whole number/);
  });
});

interface EdgeVector {
  readonly cron: string;
  readonly tz: string;
  readonly at: string;
  readonly prev_ms: number | null;
  readonly next_ms: number | null;
}

describe("golden 80 of the Python library", () => {
  const { prev_reset_edge: edges, retry_after: waits } = scheduleVectors<{
    prev_reset_edge: readonly EdgeVector[];
    retry_after: readonly { reset?: string; at: string; seconds: number }[];
  }>();
  /** Edges that are ours: the library loses or doubles a reset, or finds none by years. */
  const ours: Readonly<Record<string, readonly [string, string]>> = {
    "30 2 * * *": ["2026-03-08T07:00Z", "2026-03-09T06:30Z"],
    "30 1 * * *": ["2026-11-01T05:30Z", "2026-11-02T06:30Z"],
    "0 0 29 2 *": ["2024-02-29T00:00Z", "2028-02-29T00:00Z"],
  };

  test.each(edges)("the edges of $cron $tz at $at", ({ cron, tz, at, prev_ms, next_ms }) => {
    const other = ours[cron]?.map((time) => Date.parse(time));
    const [startMs, endMs] = other ?? [prev_ms, next_ms];
    const limit = Limit.quota("req", 10, { cron, timeZone: tz });
    expect(limit.periodAt(Date.parse(at))).toEqual({ startMs, endMs });
  });

  test("the wait for a reset is one millisecond more than the time to it", () => {
    const resets = waits.filter(({ reset }) => reset !== undefined);
    expect(resets).toHaveLength(1);
    for (const { reset = "", at, seconds } of resets) {
      const cron = decodeResets(reset) ?? "";
      const limit = Limit.quota("req", 10, { cron });
      const atMs = Date.parse(at);
      const period = {
        ...(limit.periodAt(atMs) ?? { startMs: 0, endMs: 0 }),
        usedMilli: 1e4,
        atMs,
      };
      const check = { entityId: "e", resource: "r", limit, requested: 1, period };
      expect(statusOf(check, 0, limit.rate).retryAfterSeconds).toBe(seconds);
    }
  });
});

describe("the next period", () => {
  const daily = quota("day UTC");
  const start = Date.parse("2026-11-18T00:00Z");

  test("a call after the stored end opens the period that holds it", () => {
    expect(PERIODS.next(daily, start + 5, start)).toEqual({ startMs: start, endMs: start + DAY });
    const late = PERIODS.next(daily, start + 3 * DAY + 5, start);
    expect(late).toEqual({ startMs: start + 3 * DAY, endMs: start + 4 * DAY });
    expect(PERIODS.next(daily, start + 5)).toEqual({ startMs: start, endMs: start + DAY });
  });

  test("an edge shortly after the stored end of another client opens no second period", () => {
    // The other client's day ended two hours before this one's.
    const next = PERIODS.next(daily, start - 2 * HOUR + 1, start - 2 * HOUR);
    expect(next).toEqual({ startMs: start - 2 * HOUR, endMs: start + DAY });
    // The other client's day ended two hours after this one's.
    const later = PERIODS.next(daily, start + 2 * HOUR, start + 2 * HOUR);
    expect(later).toEqual({ startMs: start + 2 * HOUR, endMs: start + DAY });
  });

  test("where periods are uneven, half of the shorter one decides", () => {
    const uneven = quota("cron(0 9,10 * * *) UTC");
    const nine = start + 9 * HOUR;
    expect(PERIODS.next(uneven, nine, nine).endMs).toBe(nine + HOUR);
    expect(PERIODS.next(uneven, nine + HOUR, nine + HOUR).endMs).toBe(nine + DAY);
    expect(PERIODS.next(uneven, nine - 20 * 60_000, nine - 20 * 60_000).endMs).toBe(nine + HOUR);
  });

  test("a new rule ends the running period at its first edge, and goes on from there", () => {
    const monthly = quota("month UTC");
    const now = start + 5;
    expect(PERIODS.movedEnd(daily, now, Date.parse("2026-12-01T00:00Z"))).toBe(start + DAY);
    const end = PERIODS.movedEnd(monthly, now, start + DAY);
    expect(end).toBe(start + DAY);
    expect(PERIODS.next(monthly, end, end).endMs).toBe(Date.parse("2026-12-01T00:00Z"));
  });

  test("a session lasts its length from the call that opens it", () => {
    const rule = Limit.quota("tok", 5, { after: { hours: 5 } }).rule;
    if (rule === undefined) throw new Error("a session has a rule");
    expect(PERIODS.next(rule, 7)).toEqual({ startMs: 7, endMs: 7 + 5 * HOUR });
  });

  test("the resets that are due are counted from the stored end", () => {
    expect(PERIODS.passed(daily, start, start - 1, 9)).toBe(0);
    expect(PERIODS.passed(daily, start, start, 9)).toBe(1);
    expect(PERIODS.passed(daily, start, start + 2 * DAY + 1, 9)).toBe(3);
    expect(PERIODS.passed(daily, start, start + 20 * DAY, 9)).toBe(9);
    expect(PERIODS.passed(daily, start - 2 * HOUR, start + 1, 9)).toBe(1);
  });

  test("ten years of resets that are due are counted without a walk through all of them", () => {
    const { rule, reads, periods } = counted("cron(*/5 * * * *) Europe/Berlin");
    const end = Date.parse("2017-01-01T00:00Z");
    const passed = periods.passed(rule, end, end + 3652 * DAY, 1e9);
    // An hour is left out each spring; the one that is shown twice in autumn resets once.
    expect(passed).toBe(3652 * 288 - 10 * 12 + 1);
    expect(reads()).toBeLessThan(20_000);
    const few = counted("day Europe/Berlin");
    expect(few.periods.passed(few.rule, end, end + 3652 * DAY, 3)).toBe(3);
    expect(few.reads()).toBeLessThan(1500);
  });

  test("clients that disagree about their zones by hours reset once a day", () => {
    const offsets = [0, 1, 2, -2].map((hours) => new Periods(() => () => hours * HOUR));
    for (const seed of [1, 2, 3, 4, 5, 6, 7]) {
      let random = seed;
      let end = start;
      let resets = 0;
      for (let now = start; now < start + 60 * DAY; now += 600_000) {
        random = (random * 1_103_515_245 + 12_345) % 2_147_483_648;
        const periods = offsets[Math.floor(random / 65_536) % offsets.length];
        if (now < end || periods === undefined) continue;
        resets += 1;
        end = periods.next(daily, now, end).endMs;
      }
      expect(resets).toBeLessThanOrEqual(61);
      expect(resets).toBeGreaterThan(55);
    }
  });
});

/** Zones whose clocks have been set in every way, for every day of tests. */
const SAMPLE = [
  "UTC",
  "Europe/Berlin",
  "America/Santiago",
  "America/Havana",
  "Africa/Cairo",
  "Africa/Casablanca",
  "Pacific/Apia",
  "Australia/Lord_Howe",
  "Asia/Kathmandu",
  "America/St_Johns",
];
const SINCE = Date.UTC(1970, 0, 2);
const UNTIL = Date.UTC(2040, 0, 1);
const instants = fc.integer({ min: SINCE, max: UNTIL });
const calendars = fc.constantFrom(
  ...["day", "week", "month", "quarter", "year", "week@sunday", "month@28", "year@04-01"],
);
const times = fc.constantFrom("", "@01:30", "@02:00", "@23:59");

function tiles(zone: string, calendar: string, time: string, ms: number): void {
  const rule = quota(`${calendar} ${zone}${time}`);
  const period = new Periods().at(rule, ms);
  expect(period.startMs).toBeLessThanOrEqual(ms);
  expect(period.endMs).toBeGreaterThan(ms);
  expect(new Periods().at(rule, period.startMs)).toEqual(period);
  expect(new Periods().at(rule, period.endMs - 1)).toEqual(period);
  expect(new Periods().at(rule, period.endMs).startMs).toBe(period.endMs);
  // At the edge the local clock shows the boundary, or has just been set beyond it.
  const clock = localClock(zone);
  const [before, after] = [period.endMs - 1, period.endMs].map((at) => at + clock(at));
  expect(latestShown(clock, period.endMs - 1)).toBeLessThan(after ?? 0);
  expect(before).toBeLessThan(after ?? 0);
}

/** Periods that count how often they ask the clock of a zone for its offset. */
function counted(calendar: string) {
  let reads = 0;
  const periods = new Periods((zone) => {
    const clock = localClock(zone);
    return (ms) => {
      reads += 1;
      return clock(ms);
    };
  });
  return { rule: quota(calendar), periods, reads: () => reads };
}

/** Counts resets one by one. */
function walkedResets(rule: CalendarRule, storedEndMs: number, nowMs: number): number {
  const periods = new Periods();
  if (nowMs < storedEndMs) return 0;
  let resets = 1;
  let { endMs } = periods.next(rule, storedEndMs, storedEndMs);
  for (; endMs <= nowMs; endMs = periods.edgeAfter(rule, endMs)) resets += 1;
  return resets;
}

/** Walks a clock by quarters of an hour, and finds the first that shows a time. */
function walked(clock: OffsetAt, localMs: number): number {
  for (let ms = localMs - 20 * HOUR; ; ms += 15 * 60_000) if (ms + clock(ms) >= localMs) return ms;
}

const YEAR = 365 * DAY;

/**
 * Walks a clock by minutes, and lists the instants at which it shows a time of the day, or a later
 * one, for the first time that day. Clocks have not been set by parts of a minute since 1972.
 */
function walkedEdges(clock: OffsetAt, timeMs: number, fromMs: number, toMs: number): number[] {
  const edges: number[] = [];
  const boundaryOf = (shownMs: number) => Math.floor((shownMs - timeMs) / DAY);
  let latest = boundaryOf(fromMs + clock(fromMs));
  for (let hour = fromMs; hour < toMs; hour += HOUR) {
    const [offset, next] = [clock(hour), clock(hour + HOUR)];
    for (let ms = hour; ms < hour + HOUR; ms += 60_000) {
      // The clock is asked every minute in the hours in which it is set.
      const day = boundaryOf(ms + (offset === next ? offset : clock(ms)));
      if (day > latest) edges.push(ms);
      latest = Math.max(latest, day);
    }
  }
  return edges;
}

describe("all zones have periods without gaps", () => {
  const zones = fc.constantFrom(...SAMPLE);
  property(
    "periods of a sample of zones tile the time",
    [zones, calendars, times, instants],
    tiles,
    400,
  );

  property(
    "the first instant of a local time is what a walk finds",
    [zones, instants],
    (zone, at) => {
      const localMs = Math.floor(at / 900_000) * 900_000;
      const clock = localClock(zone);
      expect(Math.ceil(firstInstant(clock, localMs) / 900_000) * 900_000).toBe(
        walked(clock, localMs),
      );
    },
    200,
  );

  const oftener = ["cron(0 * * * *)", "cron(*/20 1-3 * * *)", "cron(0 0 * * *;30 2 * * 1-5)"];
  property(
    "the resets that are due are those that a walk counts",
    [
      zones,
      fc.constantFrom("day", "week", "month", "day@02:30", "month@15", ...oftener),
      instants,
      fc.integer({ min: -1, max: 90 * DAY }),
    ],
    (zone, calendar, at, more) => {
      const [unit, time] = calendar.split("@02");
      const rule = quota(`${unit} ${zone}${time === undefined ? "" : `@02${time}`}`);
      const due = walkedResets(rule, at, at + more);
      expect(new Periods().passed(rule, at, at + more, 1e9)).toBe(due);
      expect(new Periods().passed(rule, at, at + more, 2)).toBe(Math.min(2, due));
    },
    150,
  );

  property(
    "a later local time is never shown earlier",
    [zones, instants, fc.integer({ min: 0, max: 3 * DAY })],
    (zone, at, more) => {
      const clock = localClock(zone);
      const first = firstInstant(clock, at);
      expect(firstInstant(clock, at + more)).toBeGreaterThanOrEqual(first);
    },
    400,
  );
});

describeUnless(NIGHTLY_ONLY)("every zone of this Node", () => {
  const decade = (UNTIL - SINCE) / 7;
  const zones = Intl.supportedValuesOf("timeZone");

  test("the days of every zone tile a decade, each zone another one", { timeout: 600_000 }, () => {
    for (const [index, zone] of zones.entries()) {
      const [rule, periods] = [quota(`day ${zone}`), new Periods()];
      let at = SINCE + Math.floor((index % 7) * decade);
      for (const until = at + decade; at < until; ) {
        const { startMs, endMs } = periods.at(rule, at);
        expect(startMs <= at && at < endMs && endMs - startMs < 49 * HOUR).toBe(true);
        at = endMs;
      }
    }
  });

  test("every edge of a year is the first instant at which a walk finds the boundary", {
    timeout: 600_000,
  }, () => {
    const years = [1975, 1994, 2008, 2011, 2018, 2026];
    for (const [index, zone] of zones.entries()) {
      const clock = localClock(zone);
      const [rule, periods] = [quota(`day ${zone}@0${index % 4}:30`), new Periods()];
      const since = Date.UTC(years[index % years.length] ?? 2026, 0, 3);
      const boundaries = walkedEdges(clock, ((index % 4) * 60 + 30) * 60_000, since, since + YEAR);
      const found: number[] = [];
      for (let at = periods.at(rule, since).endMs; at < since + YEAR; ) {
        found.push(at);
        at = periods.at(rule, at).endMs;
      }
      expect(found, zone).toEqual(boundaries);
    }
  });
});
