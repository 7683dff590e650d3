import { type Cron, readCron } from "@zae-limiter/limiter/core/cron.ts";
import { waitThrough } from "@zae-limiter/limiter/core/rate-schedule.ts";
import { openAt } from "@zae-limiter/limiter/core/window-edges.ts";
import { decodeWindows, encodeWindows } from "@zae-limiter/limiter/domain/compact-schedule.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Limit, type WindowOptions } from "@zae-limiter/limiter/domain/limit.ts";
import { cronsOf, whenText } from "@zae-limiter/limiter/domain/schedule.ts";
import { SCHEDULES } from "@zae-limiter/limiter/domain/schedules.ts";
import { scheduleVectors } from "@zae-limiter/test-support/golden-items.ts";
import { refusal } from "@zae-limiter/test-support/refusal.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const OFFICE = { when: "mon-fri 9-18", timeZone: "Europe/Berlin", scale: 0.5 };
const RPM = Limit.parse("rpm:1000");

function capacityAt(limit: Limit, at: string): number {
  return limit.at(Date.parse(at)).capacity;
}

describe("words of windows", () => {
  test.each([
    ["mon-fri 9-18", ["* 9-17 * * 1-5"]],
    ["sat,sun", ["* * * * 6,7"]],
    ["Sun-Thu 0-24", ["* * * * 0-4"]],
    ["fri-mon 12-13", ["* 12 * * 5,6,7,1"]],
    ["8:30-12", ["30-59 8 * * *", "* 9-11 * * *"]],
    ["8:30-9:15", ["30-59 8 * * *", "0-14 9 * * *"]],
    ["8:30-8:31", ["30 8 * * *"]],
    ["22-24,0-6", ["* 22-23 * * *", "* 0-5 * * *"]],
    ["cron(*/15 0-6 1,15 * *)", ["*/15 0-6 1,15 * *"]],
  ])("the words %s are the expressions %o", (when, crons) => {
    expect(cronsOf(when)).toEqual(crons);
  });

  test.each([
    ["22-6", "a window ends on the day"],
    ["9-25", "expected days and hours"],
    ["9:60-11", "expected days and hours"],
    ["monday 9-18", "expected days and hours"],
    ["mon 9-18 UTC", "expected days and hours"],
    ["", "expected days and hours"],
  ])("%o is refused with a sentence", (when, reason) => {
    expect(refusal(() => cronsOf(when)).reason).toContain(reason);
  });
});

describe("words of expressions", () => {
  test.each([
    ["* 9-17 * * 1-5", "mon-fri 9-18"],
    ["* * * * 6,7", "sat,sun"],
    ["* * * * 1,3-5,7", "mon,wed-fri,sun"],
    ["* 9-12,14-17 * * *", "9-13,14-18"],
    ["30-59 8 * * 1", "mon 8:30-9"],
    ["* * * * *", "0-24"],
    ["* 9 1 * *", "cron(* 9 1 * *)"],
    ["* 9 * 12 *", "cron(* 9 * 12 *)"],
    ["* 9 1-31 * 1-5", "cron(* 9 1-31 * 1-5)"],
    ["*/15 * * * *", "cron(*/15 * * * *)"],
  ])("the expression %s is the words %s", (cron, when) => {
    expect(whenText(cron)).toBe(when);
  });

  test("words of an expression are open in the same minutes of the week", () => {
    const minutes = fc.integer({ min: 0, max: 59 });
    const hours = fc.integer({ min: 0, max: 23 });
    const range = (one: number, two: number) => `${Math.min(one, two)}-${Math.max(one, two)}`;
    const field = (numbers: fc.Arbitrary<number>) =>
      fc.oneof(
        fc.constant("*"),
        fc.tuple(numbers, numbers).map(([one, two]) => range(one, two)),
      );
    const weekdays = fc.uniqueArray(fc.integer({ min: 1, max: 7 }), { minLength: 1 });
    const crons = fc.tuple(field(minutes), field(hours), weekdays.map(String));
    const property = fc.property(crons, fc.nat(7 * 1440 - 1), ([minute, hour, days], at) => {
      const cron = `${minute} ${hour} * * ${days}`;
      const isOpen = (texts: readonly string[]) =>
        openAt({ crons: texts.map(readIn), offsetAt: () => 0 }, at * 60_000) >= 0;
      expect(isOpen(cronsOf(whenText(cron)))).toBe(isOpen([cron]));
    });
    fc.assert(property, { numRuns: 500 });
  });
});

function readIn(text: string): Cron {
  const read = readCron(text);
  if ("problem" in read) throw new Error(read.problem);
  return read;
}

describe("a limit with windows", () => {
  test("the first window that is open applies, by the clock of the zone", () => {
    const limit = RPM.withSchedule([
      { when: "mon 12-13", timeZone: "Europe/Berlin", limit: "rpm:60/hour:200" },
      OFFICE,
    ]);
    expect(capacityAt(limit, "2026-11-16T07:59:59.999Z")).toBe(1000);
    expect(capacityAt(limit, "2026-11-16T08:00:00Z")).toBe(500);
    expect(limit.at(Date.parse("2026-11-16T11:30:00Z"))).toMatchObject({
      capacity: 200,
      refillAmount: 60,
      refillPeriodSeconds: 3600,
      schedule: undefined,
    });
    expect(capacityAt(limit, "2026-11-17T11:30:00Z")).toBe(500);
    expect(capacityAt(limit, "2026-11-21T11:30:00Z")).toBe(1000);
  });

  test("a window is open for longer on the day on which its hour is shown twice", () => {
    const night = RPM.withSchedule([{ when: "2-3", timeZone: "Europe/Berlin", scale: 2 }]);
    const ends = [];
    let at = Date.parse("2026-10-24T23:59:00Z");
    for (let count = 0; count < 3; count += 1) {
      at = SCHEDULES.endAt(night.rate, at);
      ends.push(new Date(at).toISOString());
    }
    expect(ends).toEqual([
      "2026-10-25T00:00:00.000Z",
      "2026-10-25T02:00:00.000Z",
      "2026-10-26T01:00:00.000Z",
    ]);
  });

  test("a window that the clock leaves out does not open that day", () => {
    const night = RPM.withSchedule([{ when: "2-3", timeZone: "Europe/Berlin", scale: 2 }]);
    const end = SCHEDULES.endAt(night.rate, Date.parse("2027-03-27T12:00Z"));
    expect(new Date(end).toISOString()).toBe("2027-03-29T00:00:00.000Z");
  });

  test("the JSON of a limit says its windows, the text only what holds without them", () => {
    const limit = RPM.withSchedule([OFFICE]);
    const json = JSON.parse(JSON.stringify(limit));
    expect(json.schedule).toEqual([{ cron: "* 9-17 * * 1-5", tz: "Europe/Berlin", scale: 0.5 }]);
    expect(Limit.fromJSON(json).equals(limit)).toBe(true);
    expect(limit.equals(RPM)).toBe(false);
    expect(String(limit)).toBe("rpm:1000/min");
  });

  test.each<[readonly WindowOptions[], string]>([
    [[], "expected at least one window"],
    [[{ when: "9-18" }], "a scale or numbers of its own"],
    [[{ when: "9-18", scale: 2, limit: "rpm:5" }], "a scale or numbers of its own"],
    [[{ when: "9-18", scale: 0.0001 }], "at most three decimals"],
    [[{ when: "9-18", scale: 0 }], "at most three decimals"],
    [[{ when: "9-18", scale: 1_000_000_000 }], "from 0.001"],
    [[{ when: "9-18", limit: "tpm:5" }], 'expected a limit named "rpm"'],
    [[{ when: "9-18", limit: "rpm:5/month" }], "that refills evenly"],
    [[OFFICE, { when: "9-18", scale: 2 }], "all windows of a limit have one time zone"],
    [[{ when: "9-18", scale: 2, timeZone: "Berlin" }], "did you mean Europe/Berlin?"],
    [[{ when: "cron(0 0 30 2 *)", scale: 2 }], "never matches"],
    [[{ when: "cron(0 0 L * *)", scale: 2 }], "L, W and # are not supported"],
  ])("windows %o are refused with a sentence", (windows, reason) => {
    expect(refusal(() => RPM.withSchedule(windows)).reason).toContain(reason);
  });

  test("quotas, sessions and slots have no windows", () => {
    for (const text of ["req:5/month", "req:5/session:5hour", "run:5 concurrent"]) {
      const error = refusal(() => Limit.parse(text).withSchedule([OFFICE]));
      expect(error.reason).toContain("only limits that refill evenly have windows");
    }
  });
});

interface Vectors {
  readonly encode: readonly { compact: string; cron?: string; decoded?: readonly unknown[][] }[];
  readonly matches: readonly { cron: string; tz: string; at: string; matches: boolean }[];
  readonly effective: readonly {
    schedule: string;
    tz: string;
    base: readonly [number, number, number];
    at: string;
    effective: readonly number[];
    next_boundary: number;
  }[];
  readonly retry_after: readonly {
    deficit_milli: number;
    base: readonly [number, number, number];
    schedule?: string;
    at: string;
    seconds: number;
  }[];
  readonly rejected: readonly { entry: string }[];
}

describe("windows of the Python library", () => {
  const vectors = scheduleVectors<Vectors>();
  const rateOf = (base: readonly [number, number, number], text: string, timeZone: string) => {
    const [capacityMilli, refillMilli, periodMs] = base;
    const schedule = { timeZone, windows: decodeWindows(text) ?? [] };
    return { capacityMilli, refillMilli, periodMs, schedule };
  };

  test("windows are stored to the letter as it stores them", () => {
    const stored = vectors.encode.filter(({ decoded }) => decoded !== undefined);
    expect(stored.length).toBeGreaterThan(5);
    for (const { compact, decoded = [] } of stored) {
      const windows = decodeWindows(compact) ?? [];
      const fields = windows.map((window) => [
        window.cron,
        window.scaleMilli === undefined ? null : window.scaleMilli / 1000,
        window.capacity ?? null,
        window.refillAmount ?? null,
        window.refillPeriodSeconds ?? null,
      ]);
      expect(fields).toEqual(decoded);
      expect(encodeWindows(windows)).toBe(compact);
    }
  });

  test.each(["2h9s5", "h9s5", "1h9", "1s5s6", "1q5s5", "1h9s5c6", "1h9s"])(
    "%s is of another version or form",
    (text) => {
      expect(decodeWindows(text)).toBeUndefined();
    },
  );

  test("windows are open at the instants at which it says so", () => {
    for (const { cron, tz, at, matches } of vectors.matches) {
      const limit = RPM.withSchedule([{ when: `cron(${cron})`, timeZone: tz, scale: 2 }]);
      expect(capacityAt(limit, at), `${cron} ${at}`).toBe(matches ? 2000 : 1000);
    }
  });

  test("the numbers in force and the next boundaries of its vectors are ours", () => {
    for (const { schedule, tz, base, at, effective, next_boundary } of vectors.effective) {
      const rate = rateOf(base, schedule, tz);
      const { capacityMilli, refillMilli, periodMs } = SCHEDULES.rateAt(rate, Date.parse(at));
      expect([capacityMilli, refillMilli, periodMs]).toEqual(effective);
      expect(SCHEDULES.endAt(rate, Date.parse(at))).toBe(next_boundary);
    }
  });

  test("the waits of its vectors are ours", () => {
    for (const { deficit_milli, base, schedule, at, seconds } of vectors.retry_after) {
      if (schedule === undefined) continue;
      const rates = SCHEDULES.inTime(rateOf(base, schedule, "UTC"));
      expect(waitThrough(deficit_milli, 0, rates, Date.parse(at))).toBe(seconds * 1000);
    }
  });

  test("entries that it refuses are refused", () => {
    for (const { entry } of vectors.rejected) {
      const json = entry.replaceAll("'", '"').replace("nan", "null");
      const windows = [JSON.parse(json)];
      expect(() => RPM.withWindows(windows), entry).toThrow(ValidationError);
    }
  });
});
