/** Forecasts of quotas. */

import { forecastLines, statusEmptyAtMs } from "@zae-limiter/cli/terminal/forecast.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { statusOf } from "@zae-limiter/limiter/domain/limit-status.ts";
import { expect, test } from "vitest";

const BUDGET = Limit.parse("usd:$500/month Europe/Berlin");
const START = Date.parse("2026-10-31T23:00:00Z");
const END = Date.parse("2026-11-30T23:00:00Z");
/** Ten days after the beginning of the period. */
const NOW = Date.parse("2026-11-10T23:00:00Z");

function spent(dollars: number) {
  const milli = dollars * 1_000_000_000;
  const period = { startMs: START, endMs: END, usedMilli: milli, atMs: NOW };
  const check = { entityId: "ann", resource: "gpt-4", limit: BUDGET, requested: 0, period };
  return statusOf(check, 500_000_000_000 - milli, BUDGET.rate);
}

test("a budget that is used too fast has a day on which it is empty, in its zone", () => {
  expect(statusEmptyAtMs(spent(250), NOW)).toBe(Date.parse("2026-11-20T23:00:00Z"));
  expect(forecastLines([spent(250)], NOW)).toEqual([
    "ann usd is empty on 2026-11-21 00:00 Europe/Berlin at this pace",
  ]);
});

test("a budget that lasts until its reset, or that nothing was consumed of, has no forecast", () => {
  expect(statusEmptyAtMs(spent(160), NOW)).toBeUndefined();
  expect(statusEmptyAtMs(spent(0), NOW)).toBeUndefined();
  expect(statusEmptyAtMs(spent(250), START)).toBeUndefined();
});

test("the first calls of a period are no pace, unless they use a tenth of it", () => {
  const soon = START + 10_000;
  expect(statusEmptyAtMs(spent(49), soon)).toBeUndefined();
  expect(statusEmptyAtMs(spent(50), soon)).toBe(START + 100_000);
  const fourthDay = START + 3 * 86_400_000;
  expect(statusEmptyAtMs(spent(49), fourthDay - 1)).toBeUndefined();
  expect(statusEmptyAtMs(spent(51), fourthDay)).toBeLessThan(END);
});

test("a budget that is spent shows that by its bar, and is no forecast", () => {
  expect(statusEmptyAtMs(spent(500), NOW)).toBe(NOW);
  expect(forecastLines([spent(500), spent(501)], NOW)).toEqual([]);
});

test("a rate has no period, so it has no forecast", () => {
  const rate = Limit.parse("tpm:100/min");
  const check = { entityId: "ann", resource: "gpt-4", limit: rate, requested: 0 };
  expect(forecastLines([statusOf(check, 1000, rate.rate)], NOW)).toEqual([]);
});
