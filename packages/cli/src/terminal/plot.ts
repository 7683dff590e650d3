/** Charts of usage, as wide as the terminal. */

import {
  isoSeconds,
  WINDOW_TYPES,
  type WindowType,
  windowEndMs,
} from "@zae-limiter/limiter/core/windows.ts";
import type { UsageSnapshot } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { chart } from "./chart.ts";

const POINTS_MAX = 100_000;

/** One chart per limit and window type. */
export function plotUsage(snapshots: readonly UsageSnapshot[], columns: number): string {
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
    return `${name}, ${type}\n${chart(amounts, axis, columns)}`;
  });
  const points = `${windows.length} ${windows.length === 1 ? "window" : "windows"}`;
  return [...charts, `${first} to ${last}, ${points}`].join("\n\n");
}

/** As much of a time as tells the windows of a type apart. */
function timeText(type: string, start: string): string {
  if (type === "hourly") return `${start.slice(5, 10)} ${start.slice(11, 16)}`;
  return type === "monthly" ? start.slice(0, 7) : start.slice(0, 10);
}

/** A window without usage has no record, and is 0 all the same. */
function windowsBetween(type: string, first: string, last: string): string[] | undefined {
  const known = WINDOW_TYPES.find((candidate): candidate is WindowType => candidate === type);
  const endMs = Date.parse(last);
  let ms = Date.parse(first);
  if (known === undefined || Number.isNaN(ms) || Number.isNaN(endMs)) return undefined;
  const windows: string[] = [];
  while (ms <= endMs && windows.length < POINTS_MAX) {
    windows.push(isoSeconds(ms));
    ms = windowEndMs(known, ms);
  }
  return windows;
}
