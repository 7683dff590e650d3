/** The form of limits, numbers and times. */

import { limitText } from "@zae-limiter/cli/terminal/limit-text.ts";
import { duration, withThousands } from "@zae-limiter/cli/terminal/numbers.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { expect, test } from "vitest";

test.each([
  ["tpm:10000", "tpm: 10,000/min"],
  ["tpm:10000:15000", "tpm: 10,000/min (burst: 15,000)"],
  ["rpm:100/5min", "rpm: 100/5min"],
  ["rps:50/sec", "rps: 50/sec"],
  ["x:1/90sec", "x: 1/90sec"],
  ["x:1/7day", "x: 1/7day, refills evenly"],
  [
    "x:10000/month Europe/Berlin",
    "x: 10,000/month Europe/Berlin, resets on day 1 of the month at 00:00",
  ],
  ["x:5/week@sunday@06:00", "x: 5/week@sunday UTC@06:00, resets on sunday at 06:00"],
  ["x:5/day UTC soft", "x: 5/day UTC, resets at 00:00, soft"],
  ["x:5/year", "x: 5/year UTC, resets on 01-01 at 00:00"],
  ["x:5/cron(0 6 * * 1-5)", "x: 5/cron(0 6 * * 1-5) UTC, resets by its cron expression"],
  ["x:5/session:5hour", "x: 5/session:5hour, resets 5 hours after its first use"],
  ["x:5/session:min", "x: 5/session:min, resets 1 minute after its first use"],
])("%s prints %j (op 25)", (text, expected) => {
  expect(limitText(Limit.parse(text))).toBe(expected);
});

test("what a quota carries is said, so that a change of it is seen", () => {
  const text = (name: string, options: object) =>
    limitText(Limit.quota(name, 5, { every: "day", ...options })).split("00:00")[1];
  expect(text("x", { carry: "debt" })).toBe(", carries a debt");
  expect(text("x", { carry: "rest", carryMax: 5000 })).toBe(", carries what is left up to 5,000");
  const both = { carry: "both", carryMax: 2_000_000 };
  expect(text("usd", both)).toBe(", carries a debt, and what is left up to $2.00");
});

test("a limit with windows says which numbers it has in each", () => {
  const zone = { timeZone: "Europe/Berlin" };
  const limit = Limit.parse("rpm:100 soft").withSchedule([
    { when: "9-12:30,14-18", scale: 0.5, ...zone },
    { when: "sat,sun", limit: "rpm:5000", ...zone },
    { when: "cron(* 9 1 * *)", scale: 0.5, ...zone },
  ]);
  expect(limitText(limit)).toBe(
    "rpm: 100/min, by the clock of Europe/Berlin x 0.5 in 9-12 and 12-12:30 and 14-18, " +
      "capacity 5,000 refill 5,000 period 60 in sat,sun, x 0.5 in cron(* 9 1 * *), soft",
  );
});

test.each([
  [0, "0.0 s"],
  [0.01, "0.1 s"],
  [9.91, "10.0 s"],
  [10.2, "11 s"],
  [59.5, "1 min"],
  [61, "1 min 1 s"],
  [3600, "1 h"],
  [5400, "1 h 30 min"],
  [90_000, "1 d 1 h"],
  [Number.POSITIVE_INFINITY, "never"],
])("%d seconds are %j", (seconds, expected) => {
  expect(duration(seconds)).toBe(expected);
});

test("numbers have separators, also below zero", () => {
  expect([0, 999, 1000, -1234567].map(withThousands)).toEqual(["0", "999", "1,000", "-1,234,567"]);
});
