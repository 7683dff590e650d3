/** Charts of usage, as wide as the terminal. */

import { isoSeconds, WINDOW_TYPES, type WindowType, windowEndMs } from "../core/windows.ts";
import type { UsageSnapshot } from "../records/usage-item.ts";
import { withThousands } from "./numbers.ts";

const HEIGHT = 8;
const COLUMNS_MIN = 20;
const POINTS_MAX = 100_000;

type Plot = (series: readonly number[], options: object) => string;

/** One chart per limit and window type; `undefined` where the package that draws is missing. */
export async function plotUsage(
  snapshots: readonly UsageSnapshot[],
  columns: number,
): Promise<string | undefined> {
  const plot = await loadPlot();
  if (plot === undefined) return undefined;
  const types = [...new Set(snapshots.map(({ windowType }) => windowType))];
  return types
    .map((type) =>
      chartsOf(
        type,
        snapshots.filter(({ windowType }) => windowType === type),
        columns,
        plot,
      ),
    )
    .join("\n\n");
}

async function loadPlot(): Promise<Plot | undefined> {
  try {
    // @ts-expect-error -- the package has no types of its own.
    const { default: chart } = (await import("asciichart")) as { default: { plot: Plot } };
    return chart.plot;
  } catch {
    return undefined;
  }
}

function chartsOf(
  type: string,
  snapshots: readonly UsageSnapshot[],
  columns: number,
  plot: Plot,
): string {
  const starts = snapshots.map(({ windowStart }) => windowStart).sort();
  const first = starts[0] ?? "";
  const last = starts.at(-1) ?? "";
  const windows = windowsBetween(type, first, last) ?? [...new Set(starts)];
  const names = [...new Set(snapshots.flatMap(({ counters }) => Object.keys(counters)))].sort();
  const charts = names.map((name) => {
    const sums = new Map<string, number>();
    for (const { windowStart, counters } of snapshots) {
      sums.set(windowStart, (sums.get(windowStart) ?? 0) + (counters[name] ?? 0));
    }
    const series = windows.map((window) => sums.get(window) ?? 0);
    return `${name}, ${type}\n${chart(series, columns, plot)}`;
  });
  const points = `${windows.length} ${windows.length === 1 ? "window" : "windows"}`;
  return [...charts, `${first} to ${last}, ${points}`].join("\n\n");
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

function chart(series: readonly number[], columns: number, plot: Plot): string {
  const top = Math.max(...series, 1);
  const bottom = Math.min(...series, 0);
  const label = Math.max(withThousands(top).length, withThousands(bottom).length);
  const width = Math.max(COLUMNS_MIN, columns - label - 3);
  return plot(fitted(series, width), {
    height: HEIGHT,
    min: bottom,
    max: top,
    format: (value: number) => withThousands(Math.round(value)).padStart(label),
  });
}

/** As many points as there are columns: averages of several, or each several times. */
export function fitted(series: readonly number[], width: number): number[] {
  if (series.length >= width) {
    return Array.from({ length: width }, (_, at) => {
      const start = Math.floor((at * series.length) / width);
      const part = series.slice(start, Math.floor(((at + 1) * series.length) / width));
      return part.reduce((sum, value) => sum + value, 0) / part.length;
    });
  }
  return Array.from(
    { length: width },
    (_, at) => series[Math.floor((at * series.length) / width)] as number,
  );
}
