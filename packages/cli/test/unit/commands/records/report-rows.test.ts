/** The folding of a usage report, and the time it covers. */

import { reportPeriod, zoneOption } from "@zae-limiter/cli/commands/records/report-period.ts";
import { reportRows } from "@zae-limiter/cli/commands/records/report-rows.ts";
import type { UsageSnapshot } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { expect, test } from "vitest";

function snapshot(
  entityId: string,
  resource: string,
  windowStart: string,
  counters: Record<string, number>,
): UsageSnapshot {
  const window = { windowType: "hourly", windowStart, windowEnd: windowStart };
  return { entityId, resource, ...window, counters, totalEvents: 1 };
}

const SNAPSHOTS = [
  snapshot("ann", "gpt-4", "2026-11-01T22:00:00Z", { tpm: 10, usd: 5 }),
  snapshot("ann", "gpt-4", "2026-11-01T23:00:00Z", { tpm: 20, usd: 7 }),
  snapshot("bob", "gpt-4", "2026-11-01T23:00:00Z", { tpm: 400 }),
  snapshot("bob", "claude", "2026-11-02T08:00:00Z", { tpm: 1, usd: 100 }),
];
const ALL = { snapshots: SNAPSHOTS, countedOnce: SNAPSHOTS };
const NOW = Date.parse("2026-11-18T12:00:00Z");

test("rows are the sums of an entity and a resource, those that cost most first", () => {
  const { rows, total, limitNames } = reportRows(ALL, ["entity", "resource"], "UTC");
  expect(
    rows.map(({ parts, totalEvents, counters }) => ({ parts, totalEvents, counters })),
  ).toEqual([
    {
      parts: { entity: "bob", resource: "claude" },
      totalEvents: 1,
      counters: { tpm: 1, usd: 100 },
    },
    { parts: { entity: "ann", resource: "gpt-4" }, totalEvents: 2, counters: { tpm: 30, usd: 12 } },
    { parts: { entity: "bob", resource: "gpt-4" }, totalEvents: 1, counters: { tpm: 400 } },
  ]);
  expect(total).toEqual({ totalEvents: 4, counters: { tpm: 431, usd: 112 } });
  expect(limitNames).toEqual(["tpm", "usd"]);
});

test("an hour belongs to the day of the zone in which it begins, and days come in their order", () => {
  const days = (zone: string) =>
    reportRows(ALL, ["day"], zone).rows.map(({ parts, counters }) => [parts.day, counters["tpm"]]);
  expect(days("UTC")).toEqual([
    ["2026-11-01", 430],
    ["2026-11-02", 1],
  ]);
  expect(days("Europe/Berlin")).toEqual([
    ["2026-11-01", 10],
    ["2026-11-02", 421],
  ]);
});

test("what ancestors include is in the rows of its entities, and once in the total", () => {
  const team = snapshot("team", "gpt-4", "2026-11-01T22:00:00Z", { tpm: 10, usd: 5 });
  const own = snapshot("ann", "gpt-4", "2026-11-01T22:00:00Z", { tpm: 10, usd: 5 });
  const input = { snapshots: [team, own], countedOnce: [team] };
  const byEntity = reportRows(input, ["entity"], "UTC");
  expect(byEntity.rows.map(({ parts, isCascaded }) => [parts.entity, isCascaded])).toEqual([
    ["ann", true],
    ["team", false],
  ]);
  expect(byEntity.total).toEqual({ totalEvents: 1, counters: { tpm: 10, usd: 5 } });
  expect(reportRows(input, ["resource"], "UTC").rows).toMatchObject([
    { counters: { tpm: 10, usd: 5 }, isCascaded: false },
  ]);
});

test("nothing is no rows and an empty total", () => {
  const nothing = reportRows({ snapshots: [], countedOnce: [] }, ["entity"], "UTC");
  expect(nothing).toEqual({ rows: [], total: { totalEvents: 0, counters: {} }, limitNames: [] });
});

test.each([
  [{ month: "2026-11" }, "UTC", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"],
  [{ month: "2026-10" }, "Europe/Berlin", "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"],
  [{ month: "2026-12" }, "Asia/Kolkata", "2026-11-30T18:30:00Z", "2026-12-31T18:30:00Z"],
  [{}, "Europe/Berlin", "2026-10-31T23:00:00Z", "2026-11-30T23:00:00Z"],
  [
    { from: "2026-10-25", to: "2026-10-25" },
    "Europe/Berlin",
    "2026-10-24T22:00:00Z",
    "2026-10-25T23:00:00Z",
  ],
  [{ from: "2026-11-15" }, "UTC", "2026-11-15T00:00:00Z", "2026-11-19T00:00:00Z"],
])("%j in %s is from %s to %s", (options, zone, start, end) => {
  const { startMs, endMs } = reportPeriod(options, zone, NOW);
  expect([startMs, endMs]).toEqual([Date.parse(start), Date.parse(end)]);
});

test.each([
  [{ month: "2026-13" }, 'expected --month like 2026-11, got "2026-13"'],
  [{ month: "november" }, 'expected --month like 2026-11, got "november"'],
  [{ month: "2026-11", from: "2026-11-01" }, "--month and --from exclude each other"],
  [{ to: "2026-11-01" }, "--to needs --from, the first day"],
  [{ from: "2026-02-30" }, 'expected --from as a day like 2026-11-15, got "2026-02-30"'],
  [
    { from: "2026-11-02", to: "2026-11-01" },
    'expected --to on or after --from 2026-11-02, got "2026-11-01"',
  ],
  [{ from: "2020-01-01", to: "2026-01-01" }, "expected at most 366 days, got 2193"],
])("%j is refused: %s", (options, message) => {
  expect(() => reportPeriod(options, "UTC", NOW)).toThrow(message);
});

test("the name of a zone is read in any case, and a wrong one names those that are likely", () => {
  expect(zoneOption("europe/berlin")).toBe("Europe/Berlin");
  expect(() => zoneOption("Berlin")).toThrow(
    'there is no time zone "Berlin" here; did you mean Europe/Berlin?',
  );
});
