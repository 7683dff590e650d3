/** The pure parts of the page: the windows of a chart, and buckets that refill while it is open. */

import type { BalanceJson, OverviewJson } from "@zae-limiter/dashboard/wire.ts";
import { expect, test } from "vitest";
import { limitsIn } from "../../page/limit-words.ts";
import { availableAfter, refilled } from "../../page/refill.ts";
import { chartWindows } from "../../page/windows.ts";

const iso = (seconds: readonly number[]) =>
  seconds.map((each) => new Date(each * 1000).toISOString().slice(0, 16));

const DAY = { start: "2026-01-14T09:20:00.000Z", end: "2026-01-15T09:20:00.000Z" };

test("a chart of 24 hours has 24 windows, although only one hour has usage", () => {
  const hours = iso(chartWindows("hourly", DAY, ["2026-01-15T09:00:00Z"]));
  expect(hours).toHaveLength(24);
  expect(hours[0]).toBe("2026-01-14T10:00");
  expect(hours.at(-1)).toBe("2026-01-15T09:00");
});

test("a chart of a year has a window for each month, also for those of other lengths", () => {
  const year = { start: "2025-01-14T00:00:00.000Z", end: "2026-01-15T00:00:00.000Z" };
  const months = iso(chartWindows("monthly", year, []));
  expect(months).toHaveLength(12);
  expect([months[0], months[1], months.at(-1)]).toEqual([
    "2025-02-01T00:00",
    "2025-03-01T00:00",
    "2026-01-01T00:00",
  ]);
});

test("a range of too many windows keeps its first, its last, and those with usage", () => {
  const decade = { start: "2016-01-01T00:00:00.000Z", end: "2025-12-31T23:59:59.999Z" };
  expect(iso(chartWindows("hourly", decade, ["2020-05-05T05:00:00Z"]))).toEqual([
    "2016-01-01T00:00",
    "2020-05-05T05:00",
    "2025-12-31T23:00",
  ]);
});

test("a range without a window shows the windows with usage, each once", () => {
  const used = ["2026-01-15T09:00:00Z"];
  const minute = { start: "2026-01-15T09:20:00.000Z", end: "2026-01-15T09:21:00.000Z" };
  expect(iso(chartWindows("hourly", minute, used))).toEqual(["2026-01-15T09:00"]);
  const hour = { start: "2026-01-15T09:00:00.000Z", end: "2026-01-15T09:21:00.000Z" };
  expect(iso(chartWindows("hourly", hour, used))).toEqual(["2026-01-15T09:00"]);
});

function balance(entityId: string, available: number): BalanceJson {
  return {
    entityId,
    resource: "gpt-4",
    limitName: "rpm",
    available,
    capacity: 60,
    refillPerSecond: 1,
    shardCount: 1,
  };
}

test("a quota keeps its balance until it resets, and is full then", () => {
  const quota = { ...balance("key-1", 4), refillPerSecond: 0, resets: "resets at 00:00" };
  expect(availableAfter({ ...quota, resetsInSeconds: 90 }, 89)).toBe(4);
  expect(availableAfter({ ...quota, resetsInSeconds: 90 }, 90)).toBe(60);
  expect(availableAfter(quota, 1000)).toBe(4);
  // It has carried something, or was topped up.
  expect(availableAfter({ ...quota, available: 70, resetsInSeconds: 90 }, 5)).toBe(70);
});

test("a bucket that has refilled since the last walk leaves the lists and the counts", () => {
  const seen: OverviewJson = {
    atMs: 0,
    complete: true,
    durationMs: 1,
    buckets: 40,
    emptyCount: 30,
    debtCount: 10,
    disabledCount: 0,
    bypassCount: 0,
    scarceCount: 20,
    empty: [balance("owes-much", -9), balance("owes-little", -1), balance("empty", 0)],
    scarce: [balance("scarce", 3), balance("almost-fine", 11)],
    busiest: [],
  };
  expect(refilled(seen, 0)).toEqual(seen);
  const later = refilled(seen, 1);
  expect(later.empty.map(({ entityId }) => entityId)).toEqual(["owes-much", "owes-little"]);
  expect(later.scarce.map(({ entityId }) => entityId)).toEqual(["scarce"]);
  expect(later).toMatchObject({ emptyCount: 29, debtCount: 9, scarceCount: 19 });
});

test("limits are split at spaces and commas, and words without a name belong to theirs", () => {
  expect(limitsIn("rpm:100, tpm:5/min soft  req:9/month Europe/Berlin")).toEqual([
    "rpm:100",
    "tpm:5/min soft",
    "req:9/month Europe/Berlin",
  ]);
  const cron = "req:9/cron(0 0 1 1,4,7,10 *) Asia/Tokyo";
  expect(limitsIn(`${cron},rpm:1`)).toEqual([cron, "rpm:1"]);
});
