import { decodeResets, encodeResets } from "@zae-limiter/limiter/domain/compact-schedule.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { LimitJson } from "@zae-limiter/limiter/domain/limit-spec.ts";
import { statusOf } from "@zae-limiter/limiter/domain/limit-status.ts";
import { localClock, localIso, localText, readTimeZone } from "@zae-limiter/limiter/domain/zone.ts";
import { scheduleVectors } from "@zae-limiter/test-support/golden-items.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { refusal } from "@zae-limiter/test-support/refusal.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

describe("texts of quotas", () => {
  test.each([
    ["req:10000/month Europe/Berlin", "0 0 1 * *", "req:10000/month Europe/Berlin"],
    ["req:10000/month", "0 0 1 * *", "req:10000/month UTC"],
    ["req:10k/month utc", "0 0 1 * *", "req:10000/month UTC"],
    ["tok:2M/week europe/berlin", "0 0 * * 1", "tok:2000000/week Europe/Berlin"],
    ["tok:5/week@sunday Europe/Berlin", "0 0 * * 7", "tok:5/week@sunday Europe/Berlin"],
    ["tok:5/week@monday", "0 0 * * 1", "tok:5/week UTC"],
    ["tok:5/day America/New_York@06:00", "0 6 * * *", "tok:5/day America/New_York@06:00"],
    ["tok:5/day@06:30", "30 6 * * *", "tok:5/day UTC@06:30"],
    ["tok:5/d UTC", "0 0 * * *", "tok:5/day UTC"],
    ["tok:5/day UTC@00:00", "0 0 * * *", "tok:5/day UTC"],
    ["req:5/month@15 Asia/Tokyo", "0 0 15 * *", "req:5/month@15 Asia/Tokyo"],
    ["req:5/month@15@06:00", "0 6 15 * *", "req:5/month@15 UTC@06:00"],
    ["req:5/quarter", "0 0 1 1,4,7,10 *", "req:5/quarter UTC"],
    ["req:5/year", "0 0 1 1 *", "req:5/year UTC"],
    ["req:5/year@04-01 Asia/Kolkata", "0 0 1 4 *", "req:5/year@04-01 Asia/Kolkata"],
    ["req:5/cron(0 6 * * MON-FRI) UTC", "0 6 * * 1-5", "req:5/cron(0 6 * * 1-5) UTC"],
    ["req:5/cron(0 0 1 * *)", "0 0 1 * *", "req:5/month UTC"],
    ["req:5/cron(0 0 31 * *)", "0 0 31 * *", "req:5/cron(0 0 31 * *) UTC"],
    [
      "req:5/cron(0 6 * * *; 0 18 * * *)",
      "0 6 * * *;0 18 * * *",
      "req:5/cron(0 6 * * *;0 18 * * *) UTC",
    ],
    ["req:5/month soft", "0 0 1 * *", "req:5/month UTC soft"],
  ])("%s is a quota", (text, cron, printed) => {
    const limit = Limit.parse(text);
    expect(limit).toMatchObject({ kind: "quota", refillAmount: 0, refillPeriodSeconds: 1 });
    expect(limit.rule).toMatchObject({ kind: "quota", cron, carry: "none" });
    expect(String(limit)).toBe(printed);
    expect(Limit.parse(printed).equals(limit)).toBe(true);
    expect(Limit.fromJSON(JSON.parse(JSON.stringify(limit)) as LimitJson)).toEqual(limit);
  });

  test.each([
    ["tok:400000/session:5hour", 18_000, "tok:400000/session:5hour"],
    ["tok:1k/session:90min soft", 5400, "tok:1000/session:90min soft"],
    ["tok:1/session:day", 86_400, "tok:1/session:day"],
  ])("%s is a session", (text, seconds, printed) => {
    const limit = Limit.parse(text);
    expect(limit).toMatchObject({ kind: "session", refillAmount: 0, rule: { seconds } });
    expect(String(limit)).toBe(printed);
    expect(Limit.parse(printed).equals(limit)).toBe(true);
    expect(Limit.fromJSON(JSON.parse(JSON.stringify(limit)) as LimitJson)).toEqual(limit);
  });

  test.each(["rpd:5/day", "rpd:5/1day", "rpd:5/d", "rpd:5/2days"])(
    "the rate %s still refills evenly",
    (text) => {
      expect(Limit.parse(text)).toMatchObject({ kind: "rate", refillAmount: 5, rule: undefined });
    },
  );

  test.each([
    ["req:5/2month", "a quota is for one month: write /month, and the amount for one month"],
    ["req:5/months", "a quota is for one month"],
    ["req:5/2day UTC", "a quota is for one day"],
    ["req:5/2week Europe/Berlin", "a quota is for one week"],
    ["req:5/day@6:00", "a time is written @HH:MM behind the zone"],
    ["req:5/day 06:00", "a time is written @HH:MM behind the zone"],
    ["req:5/month@15 Europe/Berlin 06:00", "a time is written @HH:MM behind the zone"],
    ["req:5/days UTC", "a quota is for one day"],
    ["req:5/day +02:00", 'there is no time zone "+02:00" here'],
    ["req:5/month:9", "a quota has no burst"],
    ["req:5/month Europe/Berlin:9", "a quota has no burst"],
    ["req:5/day UTC@06:00:9", "a quota has no burst"],
    ["req:5/session:5hour:9", "a quota has no burst"],
    ["req:5/cron(0 0 * * *):9", "a quota has no burst"],
    ["req:5/month@29", "not every month has a day 29; take 1 for its first day, or one up to 28"],
    ["req:5/month@31 UTC", "not every month has a day 31"],
    ["req:5/month@0", "expected a day from 1 to 28, got 0"],
    ["req:5/month@monday", 'expected a day from 1 to 28, got "monday"'],
    ["req:5/week@1", 'expected "monday" or "tuesday"'],
    ["req:5/year@02-29", "not every month has a day 29"],
    ["req:5/year@4", 'expected a date like "04-01" (MM-DD), got 4'],
    ["req:5/day@monday", 'every day has no "on"'],
    ["req:5/day UTC@24:00", 'expected a local time like "06:00", got "24:00"'],
    ["req:5/hour Europe/Berlin", "only quotas take a time zone or a time"],
    ["req:5/min@06:00", "only quotas take a time zone or a time"],
    ["req:5/10sec UTC", "only quotas take a time zone or a time"],
    [
      "req:5/month Europe/Berln",
      'there is no time zone "Europe/Berln" here; did you mean Europe/Berlin',
    ],
    ["req:5/month Berlin", "did you mean Europe/Berlin?"],
    ["req:5/month +02:00", 'there is no time zone "+02:00"'],
    ["req:5/month Mars/X", 'there is no time zone "Mars/X" here; expected a name such as Europe/'],
    ["req:5/month Germany", 'no time zone "Germany" here; expected a name such as Europe/Berlin'],
    ["req:5/month berln", "did you mean Europe/Berlin"],
    ["req:5/month Europe/Berlin@06:00 more", "name:amount/day|week|month"],
    ["req:5/session", "a session needs its length, such as /session:5hour"],
    ["req:5/session:5m", "m may be a minute or a month"],
    ["req:5/session:0sec", "the length of a session must be positive"],
    ["req:5/session:5hour UTC", "name:amount/day|week|month"],
    ["req:5/session:99999999999sec", "must be at most 1000000000"],
    ["req:5/cron(0 0 L * *)", "L, W and # are not supported"],
    ["req:5/cron(0 0 0 * * *)", "expected five fields"],
    ["req:5/cron(0 0 30 2 *)", '"0 0 30 2 *" never begins to match, so it never resets'],
    ["req:5/cron(0 0 31 2 *)", 'never resets in "req:5/cron('],
    ["req:5/cron(* * * * *)", "never begins to match"],
    ["req:5/cron(0 0", "name:amount/day|week|month"],
    ["req:1.5/month", "the amount must be a whole number"],
    ["req:0/month", "the amount must be positive"],
  ])("%o is refused with a sentence", (text, reason) => {
    const error = refusal(() => Limit.parse(text));
    expect(error).toMatchObject({ field: "limit", value: text });
    expect(error.reason).toContain(reason);
  });
});

describe("Limit.quota", () => {
  test("options say the same as texts", () => {
    const zone = { timeZone: "Europe/Berlin" };
    expect(String(Limit.quota("req", 5, { every: "month", ...zone, on: 15, at: "06:00" }))).toBe(
      "req:5/month@15 Europe/Berlin@06:00",
    );
    expect(String(Limit.quota("req", 5, { every: "week", on: "sunday" }))).toBe(
      "req:5/week@sunday UTC",
    );
    expect(String(Limit.quota("req", 5, { every: "day", soft: true }))).toBe("req:5/day UTC soft");
    expect(String(Limit.quota("req", 5, { cron: "0 6 * * 1-5", ...zone }))).toBe(
      "req:5/cron(0 6 * * 1-5) Europe/Berlin",
    );
    expect(String(Limit.quota("tok", 5, { after: { days: 1, hours: 2, minutes: 3 } }))).toBe(
      "tok:5/session:1563min",
    );
  });

  test("a rest or a debt may be carried; the JSON says so, the text does not", () => {
    const limit = Limit.quota("req", 5, { every: "month", carry: "both", carryMax: 3 });
    expect(limit.toJSON().quota).toEqual({
      every: "month",
      time_zone: "UTC",
      carry: "both",
      carry_max: 3,
    });
    expect(Limit.fromJSON(limit.toJSON()).equals(limit)).toBe(true);
    expect(Limit.parse(String(limit)).equals(limit)).toBe(false);
  });

  test.each([
    [{ every: "hour" }, "every"],
    [{ every: "month", carry: "all" }, "carry"],
    [{ every: "month", carry: "rest" }, "carryMax"],
    [{ every: "month", carry: "debt", carryMax: 3 }, "carryMax"],
    [{ every: "month", carry: "rest", carryMax: 1.5 }, "carryMax"],
    [{ every: "month", cron: "0 0 * * *" }, "options.every"],
    [{ every: "month", burst: 5 }, "options.burst"],
    [{ every: "month", timeZone: 5 }, "timeZone"],
    [{ every: "month", timeZone: "Nowhere" }, "timeZone"],
    [{ after: { hours: 5 }, timeZone: "UTC" }, "options.timeZone"],
    [{ after: { weeks: 5 } }, "after.weeks"],
    [{ after: {} }, "session_seconds"],
    [{ after: { hours: -1 } }, "after.hours"],
    [{ cron: 5 }, "cron"],
    [{}, "every"],
    [undefined, "options"],
  ])("options %o are refused", (options, field) => {
    const make = Limit.quota as (...values: unknown[]) => unknown;
    expect(refusal(() => make("req", 5, options)).field).toBe(field);
  });

  test("a rule fills nothing evenly, and a rate refills", () => {
    const { rule } = Limit.parse("req:5/month");
    const numbers = { name: "req", capacity: 5, refillAmount: 1, refillPeriodSeconds: 1, rule };
    expect(refusal(() => Limit.custom(numbers)).field).toBe("refill_amount");
    expect(
      refusal(() => Limit.custom({ ...numbers, refillAmount: 0, rule: undefined })).field,
    ).toBe("refill_amount");
  });

  test("JSON with a quota and the length of a session is refused", () => {
    const json = { ...Limit.parse("req:5/month").toJSON(), session_seconds: 5 };
    expect(refusal(() => Limit.fromJSON(json)).field).toBe("session_seconds");
  });

  test("every part of the rule makes another limit", () => {
    const texts = ["r:1/day UTC", "r:1/day Asia/Tokyo", "r:1/week", "r:1/session:day", "r:1/sec"];
    const limits = texts.map((text) => Limit.parse(text));
    const carried = Limit.quota("r", 1, { every: "day", carry: "debt" });
    const more = [...limits, carried, Limit.parse("r:1/session:2day")];
    for (const one of more) {
      expect(more.filter((other) => other.equals(one))).toEqual([one]);
    }
  });

  const zone = fc.constantFrom("UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata");
  const field = (max: number) => fc.integer({ min: 0, max });
  property(
    "a quota that is written and parsed again is equal",
    [zone, field(59), field(23), fc.constantFrom("*", "1", "15", "*/5", "1-28"), field(7)],
    (timeZone, minute, hour, day, weekday) => {
      const cron = `${minute} ${hour} ${day} * ${weekday === 0 ? "*" : weekday}`;
      const limit = Limit.quota("req", 5, { cron, timeZone });
      expect(Limit.parse(String(limit)).equals(limit)).toBe(true);
      expect(Limit.fromJSON(limit.toJSON()).equals(limit)).toBe(true);
    },
    500,
  );
});

describe("the store", () => {
  const vectors = scheduleVectors<{ encode: { reset_cron?: string; compact: string }[] }>();
  const resets = vectors.encode.filter(({ reset_cron }) => reset_cron !== undefined);

  test.each(resets)("$reset_cron is stored as $compact", ({ reset_cron = "", compact }) => {
    const { rule } = Limit.quota("req", 5, { cron: reset_cron });
    const cron = rule?.kind === "quota" ? rule.cron : "";
    expect(encodeResets(cron)).toBe(compact);
    expect(decodeResets(compact)).toBe(cron);
  });

  test.each(["", "2m0h0", "m0h0", "1m0m0", "1x5", "1h0m0", "1m0s500"])(
    "%o is no text of resets",
    (text) => {
      expect(decodeResets(text)).toBeUndefined();
    },
  );

  test("several resets are stored one after the other", () => {
    expect(encodeResets("0 6 * * *;0 18 * * 7")).toBe("1m0h6;m0h18w7");
    expect(decodeResets("1m0h6;m0h18w7")).toBe("0 6 * * *;0 18 * * 7");
  });
});

describe("zones", () => {
  test("names are read in any case, and second names stay", () => {
    expect(readTimeZone("america/new_york")).toEqual({ timeZone: "America/New_York" });
    expect(readTimeZone("Asia/Kolkata")).toEqual({ timeZone: "Asia/Kolkata" });
    expect(readTimeZone("Utc")).toEqual({ timeZone: "UTC" });
    expect(readTimeZone("+02:00")).toHaveProperty("problem");
    expect(readTimeZone("")).toHaveProperty("problem");
  });

  test("a second name in small letters becomes one that other systems find", () => {
    for (const name of ["asia/kolkata", "us/eastern", "America/indiana/indianapolis", "gmt"]) {
      const read = readTimeZone(name) as { readonly timeZone: string };
      expect(read.timeZone).toMatch(/^[A-Z]/);
      expect(read.timeZone).not.toMatch(/\/[a-z]/);
      const clock = localClock(read.timeZone);
      expect(clock(1.8e12)).toBe(localClock(name)(1.8e12));
    }
    for (const timeZone of ["US/Eastern", "Etc/GMT+5", "EST5EDT", "GB-Eire"]) {
      expect(readTimeZone(timeZone)).toEqual({ timeZone });
    }
  });

  test("instants are printed as the local clock shows them", () => {
    const ms = Date.parse("2026-11-30T23:00:00Z");
    expect(localText("Europe/Berlin", ms)).toBe("2026-12-01 00:00 Europe/Berlin");
    expect(localText("UTC", ms + 5000)).toBe("2026-11-30 23:00:05 UTC");
    expect(localIso("Europe/Berlin", ms)).toBe("2026-12-01T00:00:00+01:00");
    expect(localIso("America/St_Johns", ms)).toBe("2026-11-30T19:30:00-03:30");
    expect(localIso("UTC", ms)).toBe("2026-11-30T23:00:00Z");
  });
});

describe("statuses of quotas", () => {
  const limit = Limit.parse("req:10/day UTC");
  const period = { startMs: 1000, endMs: 61_000, usedMilli: 8500, atMs: 1000 };
  const check = { entityId: "key-1", resource: "gpt-4", limit };

  test("a refusal waits for the reset, and a request above the amount can never be granted", () => {
    expect(statusOf({ ...check, requested: 2, period }, 1500, limit.rate)).toMatchObject({
      kind: "quota",
      available: 1,
      exceeded: true,
      retryAfterSeconds: 60.001,
      fullAfterSeconds: 60,
      resetsAtMs: 61_000,
      periodStartMs: 1000,
      used: 9,
    });
    const never = statusOf({ ...check, requested: 11, period }, 1500, limit.rate);
    expect(never.retryAfterSeconds).toBe(Number.POSITIVE_INFINITY);
  });

  test("more than the amount may be there, and is granted", () => {
    const carried = statusOf({ ...check, requested: 12, period }, 13_000, limit.rate);
    expect(carried).toMatchObject({ exceeded: false, fullAfterSeconds: 0 });
  });

  test("a session that has not begun has no times", () => {
    const session = Limit.parse("tok:10/session:5hour");
    const status = statusOf({ ...check, limit: session, requested: 3 }, 10_000, session.rate);
    expect(status).toMatchObject({ kind: "session", exceeded: false, fullAfterSeconds: 0 });
    expect(status).not.toHaveProperty("resetsAtMs");
  });
});
