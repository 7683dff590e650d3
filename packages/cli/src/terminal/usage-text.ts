/** Usage as text: a table of snapshots, and charts of them. */

import { isoSeconds, isWindowType, windowEndMs } from "@zae-limiter/limiter/core/windows.ts";
import { checkChoice, checkFields, checkInteger } from "@zae-limiter/limiter/domain/check.ts";
import type { UsageSnapshot } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { chart } from "./chart.ts";
import { shownAmount, withThousands } from "./numbers.ts";
import { right, table } from "./table.ts";

const COLUMNS = 80;

/** How usage is shown. */
export interface UsageTextOptions {
  /** Rows of windows, or a chart for each limit; a table by default. */
  readonly format?: "table" | "chart";
  /** How wide a chart is, in characters; 80 by default. */
  readonly columns?: number;
}

/**
 * Returns usage snapshots as `usage list` of the command line shows them. A chart adds up what the
 * snapshots of a window have: take `usage.withoutCascaded(snapshots)` for several entities.
 *
 * @example
 * ```ts
 * import { formatUsage, RateLimiter } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:');
 * await limiter.acquire({
 *   entityId: 'key-1', resource: 'gpt-4', limits: ['tpm:1000'], consume: { tpm: 300 },
 * });
 * const { snapshots } = await limiter.repository.usage.snapshots({ entityId: 'key-1' });
 * const text = await formatUsage(snapshots);
 * console.log(text.includes('tpm=300')); // true
 * await limiter.close();
 * ```
 */
export async function formatUsage(
  snapshots: readonly UsageSnapshot[],
  options: UsageTextOptions = {},
): Promise<string> {
  checkFields("options", options, ["format", "columns"]);
  const { format = "table", columns = COLUMNS } = options;
  checkChoice("format", format, ["table", "chart"]);
  checkInteger("columns", columns, 1, 10_000);
  if (snapshots.length === 0) return "";
  if (format === "chart") return usageChart(snapshots, columns);
  return usageTable(snapshots, (title) => title);
}

/** Returns snapshots in rows; `paint` formats the titles. */
export function usageTable(
  snapshots: readonly UsageSnapshot[],
  paint: (title: string) => string,
): Promise<string> {
  return table(
    ["WINDOW", "TYPE", "RESOURCE", "ENTITY", right("EVENTS"), "CONSUMED"],
    snapshots.map((snapshot) => [
      snapshot.windowStart,
      snapshot.windowType,
      snapshot.resource,
      snapshot.entityId,
      withThousands(snapshot.totalEvents),
      [countersText(snapshot.counters, snapshot.overdrawn), peaksText(snapshot.peaks)]
        .filter((text) => text !== "")
        .join(", "),
    ]),
    paint,
  );
}

/** Returns `rpm=3, tpm=1,200, usd=$0.50`, and how often a soft limit was left below zero. */
export function countersText(
  counters: UsageSnapshot["counters"],
  overdrawn: UsageSnapshot["overdrawn"] = {},
): string {
  return Object.keys(counters)
    .sort()
    .map((name) => {
      const times = overdrawn[name];
      const debt = times === undefined ? "" : ` (overdrawn ${withThousands(times)}x)`;
      return `${name}=${shownAmount(name, counters[name] ?? 0)}${debt}`;
    })
    .join(", ");
}

/** Returns `parallel=17 at once`: slots are held, and not consumed. */
function peaksText(peaks: UsageSnapshot["peaks"] = {}): string {
  return Object.keys(peaks)
    .sort()
    .map((name) => `${name}=${withThousands(peaks[name] ?? 0)} at once`)
    .join(", ");
}

const POINTS_MAX = 100_000;

/** Draws a chart for each limit and window type. */
export function usageChart(snapshots: readonly UsageSnapshot[], columns: number): string {
  const types = [...new Set(snapshots.map(({ windowType }) => windowType))];
  return types
    .map((type) =>
      chartsOf(
        type,
        snapshots.filter(({ windowType }) => windowType === type),
        columns,
      ),
    )
    .join("\n\n");
}

function chartsOf(type: string, snapshots: readonly UsageSnapshot[], columns: number): string {
  const starts = snapshots.map(({ windowStart }) => windowStart).sort();
  const first = starts[0] ?? "";
  const last = starts.at(-1) ?? "";
  const windows = windowsBetween(type, first, last) ?? [...new Set(starts)];
  const names = [...new Set(snapshots.flatMap(({ counters }) => Object.keys(counters)))].sort();
  const axis = { first: timeText(type, first), last: timeText(type, last) };
  const charts = names.map((name) => {
    const sums = new Map<string, number>();
    for (const { windowStart, counters } of snapshots) {
      sums.set(windowStart, (sums.get(windowStart) ?? 0) + (counters[name] ?? 0));
    }
    const amounts = windows.map((window) => sums.get(window) ?? 0);
    return `${name}, ${type}\n${chart(amounts, axis, columns, (amount) => shownAmount(name, amount))}`;
  });
  const points = `${windows.length} ${windows.length === 1 ? "window" : "windows"}`;
  return [...charts, `${first} to ${last}, ${points}`].join("\n\n");
}

/** Returns the part of a time that differs between windows of a type. */
function timeText(type: string, start: string): string {
  if (type === "hourly") return `${start.slice(5, 10)} ${start.slice(11, 16)}`;
  return type === "monthly" ? start.slice(0, 7) : start.slice(0, 10);
}

/** Returns the starts of all windows between two, because one without usage has no record. */
function windowsBetween(type: string, first: string, last: string): string[] | undefined {
  const endMs = Date.parse(last);
  let ms = Date.parse(first);
  if (!isWindowType(type) || Number.isNaN(ms) || Number.isNaN(endMs)) return undefined;
  const windows: string[] = [];
  while (ms <= endMs && windows.length < POINTS_MAX) {
    windows.push(isoSeconds(ms));
    ms = windowEndMs(type, ms);
  }
  return windows;
}
