import {
  balanceInForce,
  inForce,
  seenWindow,
  withOtherRate,
} from "@zae-limiter/limiter/buckets/rates-in-time.ts";
import { forceTake, type Level, type Rate, refill } from "@zae-limiter/limiter/core/bucket.ts";
import { walk, walkBack } from "@zae-limiter/limiter/core/rate-schedule.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { SCHEDULES } from "@zae-limiter/limiter/domain/schedules.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Midnight of a Monday, a week before the clocks of Berlin are set back. */
const MONDAY = Date.parse("2026-10-19T00:00Z");
const BASE = Limit.parse("rpm:60/min:600");
/** A window that leaves next to nothing. */
const NIGHT = { when: "20-21,22-23", scale: 0.001 };

const windows = fc.array(
  fc.record({
    when: fc.constantFrom("9-18", "mon-fri 9-18", "0-6,22-24", "sat,sun", "2-3", "12:30-13:15"),
    scale: fc.constantFrom(0.001, 0.5, 0.333, 2, 7),
    timeZone: fc.constant("Europe/Berlin"),
  }),
  { minLength: 1, maxLength: 3 },
);
const tokens = fc.integer({ min: -3_000_000, max: 600_000 });
const times = fc.array(fc.integer({ min: 1, max: 2 * DAY_MS }), { minLength: 1, maxLength: 6 });

function levelAt(tokensMilli: number, refilledAtMs = MONDAY): Level {
  return { tokensMilli, refilledAtMs, remainder: 0 };
}

/** Folds a level to a time, as a write does. */
function folded(level: Level, rate: Rate, nowMs: number): Level {
  const now = inForce(level, rate, nowMs);
  return refill(now.level, now.rate, nowMs);
}

describe("a level through boundaries", () => {
  property(
    "a balance does not depend on when, and how often, a bucket is written on the way",
    [windows, tokens, times],
    (drawn, tokensMilli, steps) => {
      const { rate } = BASE.withSchedule(drawn);
      const whole = steps.reduce((sum, step) => sum + step, MONDAY);
      let stepped = levelAt(tokensMilli);
      let now = MONDAY;
      for (const step of steps) {
        now += step;
        stepped = folded(stepped, rate, now);
      }
      expect(balanceInForce(levelAt(tokensMilli), rate, whole)).toBe(stepped.tokensMilli);
    },
    300,
  );

  property(
    "a balance is never above what the window in force holds",
    [windows, tokens, times],
    (drawn, tokensMilli, [step = 1]) => {
      const { rate } = BASE.withSchedule(drawn);
      const { capacityMilli } = SCHEDULES.rateAt(rate, MONDAY + step);
      const balance = balanceInForce(levelAt(tokensMilli), rate, MONDAY + step);
      expect(balance).toBeLessThanOrEqual(capacityMilli);
    },
  );

  test("shards hold together what the whole bucket does", () => {
    const { rate } = BASE.withSchedule([{ when: "9-18", scale: 0.5 }]);
    const [now, shards] = [MONDAY + 9 * HOUR_MS + 60_000, [0, 1, 2, 3]];
    const balances = shards.map((shard) => {
      const { level, rate: share } = inForce(levelAt(0, now - 120_000), rate, now, shard, 4);
      return refill(level, share, now).tokensMilli;
    });
    expect(balances.reduce((sum, one) => sum + one, 0)).toBe(90_000);
  });

  test("a level of a clock that is ahead is taken as it is", () => {
    const { rate } = BASE.withSchedule([{ when: "9-18", scale: 0.5 }]);
    const nine = MONDAY + 9 * HOUR_MS;
    const ahead = levelAt(200_000, nine + 10);
    const { level, rate: now } = inForce(ahead, rate, nine - 10);
    expect(level).toBe(ahead);
    expect(now.capacityMilli).toBe(300_000);
    expect(forceTake(level, now, 1000, nine - 10).tokensMilli).toBe(199_000);
  });

  test("a bucket that was idle for years is never fuller than its windows allow", () => {
    const { rate } = BASE.withSchedule([{ when: "cron(30 * * * *)", scale: 0.001 }]);
    const now = MONDAY + 400 * DAY_MS;
    expect(balanceInForce(levelAt(-600_000), rate, now)).toBeLessThanOrEqual(600_000);
    expect(balanceInForce(levelAt(-600_000), rate, now)).toBeGreaterThan(0);
  });

  test("a bucket that was idle over many boundaries is cut by those that were skipped", () => {
    // Most boundaries are at weekends, so the last 64 before a Monday take the least time.
    const { rate } = BASE.withSchedule([
      { when: "sat,sun 0-2,4-6,8-10", scale: 0.5 },
      { when: "22-24", scale: 0.001 },
    ]);
    for (const days of [41, 42, 48, 49, 56, 63]) {
      const now = MONDAY + days * DAY_MS;
      expect(balanceInForce(levelAt(600_000), rate, now), `${days} days`).toBe(600);
    }
  });

  property(
    "a bucket that was idle over many boundaries is never fuller than one that was not",
    [windows, tokens, fc.integer({ min: 500, max: 1500 })],
    (drawn, tokensMilli, idleHours) => {
      const now = MONDAY + idleHours * HOUR_MS;
      const { rate } = BASE.withSchedule([...drawn, { ...NIGHT, timeZone: "Europe/Berlin" }]);
      let stepped = levelAt(tokensMilli);
      for (;;) {
        const end = SCHEDULES.endAt(rate, stepped.refilledAtMs);
        if (end > now) break;
        stepped = folded(stepped, rate, end);
      }
      stepped = folded(stepped, rate, now);
      const idle = balanceInForce(levelAt(tokensMilli), rate, now);
      expect(idle).toBeLessThanOrEqual(stepped.tokensMilli);
    },
    100,
  );

  test("a level of a clock that is weeks ahead comes to no more when its time has come", () => {
    const { rate } = BASE.withSchedule([
      { when: "mon-fri 9-10,11-12,13-14,15-16", scale: 0.001 },
      { when: "sun", scale: 3 },
    ]);
    for (let days = 1; days < 60; days += 1) {
      const ahead = levelAt(1000, MONDAY + days * DAY_MS + 9.5 * HOUR_MS);
      const back = walkBack(ahead, SCHEDULES.inTime(rate), MONDAY);
      const again = balanceInForce(back, rate, ahead.refilledAtMs);
      expect(again, `${days} days`).toBeLessThanOrEqual(1000);
    }
  });

  test("a walk ends where windows end before they begin", () => {
    const rates = { rateAt: () => BASE.rate, endAt: () => MONDAY, all: () => [BASE.rate] };
    const walked = walk(levelAt(0), rates, MONDAY + DAY_MS);
    expect(walked.tokensMilli).toBeLessThanOrEqual(BASE.rate.capacityMilli);
  });

  test("other windows cut a balance and keep the rest of it", () => {
    const plain = BASE.rate;
    const { rate } = BASE.withSchedule([{ when: "9-18", scale: 0.5 }]);
    const noon = MONDAY + 12 * HOUR_MS;
    expect(withOtherRate(levelAt(0, noon - 60_000), plain, rate, noon).tokensMilli).toBe(60_000);
    expect(withOtherRate(levelAt(600_000, noon), plain, rate, noon).tokensMilli).toBe(300_000);
    expect(withOtherRate(levelAt(0, noon - 60_000), rate, plain, noon).tokensMilli).toBe(30_000);
  });

  test("a balance is known until the next boundary at most", () => {
    const { rate } = BASE.withSchedule([{ when: "9-18", scale: 0.5 }]);
    const seen = seenWindow(rate, MONDAY);
    expect(seen).toMatchObject({ endMs: MONDAY + 9 * HOUR_MS, isWindow: true });
  });
});
