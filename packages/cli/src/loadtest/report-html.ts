/** A run as one HTML page that loads nothing: tables, and charts as SVG. */

import { withThousands } from "../terminal/numbers.ts";
import type { LoadReport } from "./report.ts";
import { loadText, milliseconds } from "./report-text.ts";

const STYLE = `
:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif; }
body { max-width: 900px; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; white-space: normal; }
figure { margin: 1.5rem 0; } figcaption { display: flex; gap: 1rem; align-items: baseline; font-weight: 600; }
figcaption span { font-weight: 400; } figcaption small { opacity: .7; font-weight: 400; }
figcaption i { display: inline-block; width: .75rem; height: .2rem; margin-right: .35rem; vertical-align: middle; }
svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: currentColor; opacity: .75; }
svg .grid { stroke: currentColor; opacity: .15; } polyline { fill: none; stroke-width: 1.75; }
polyline.granted, polyline.p50 { stroke: #2a9d63; } i.granted, i.p50 { background: #2a9d63; }
polyline.refused, polyline.p95 { stroke: #d98e04; } i.refused, i.p95 { background: #d98e04; }
polyline.failed, polyline.p99 { stroke: #d1453b; } i.failed, i.p99 { background: #d1453b; }
polyline.degraded, polyline.curve { stroke: #3f7fd6; } i.degraded, i.curve { background: #3f7fd6; }
.bad { color: #d1453b; }
`;

const HEADINGS = ["users", "acquires", "per s", "granted", "refused", "degraded", "failed"];

export function reportHtml(report: LoadReport): string {
  const { title, storeName, plan, workers, elapsedMs, classes, total } = report;
  const seconds = (elapsedMs / 1000).toFixed(1);
  const about = `${seconds} s, ${loadText(plan)}, ${workers} ${workers === 1 ? "worker" : "workers"}`;
  const rows = [...classes, { name: "together", figures: total }].map(({ name, figures }) => {
    const { counts, acquires, perSecond } = figures;
    const cells = [
      ...[acquires, perSecond, counts.granted, counts.refused, counts.degraded, counts.failed].map(
        withThousands,
      ),
      ...[figures.p50Ms, figures.p95Ms, figures.p99Ms, figures.maxMs].map(milliseconds),
    ];
    return rowHtml("td", [name, ...cells]);
  });
  const heads = [...HEADINGS, "p50", "p95", "p99", "max"];
  return [
    "<!doctype html>",
    '<html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${escaped(title)}: load test</title><style>${STYLE}</style></head><body>`,
    `<h1>${escaped(title)} on ${escaped(storeName)}</h1><p>${escaped(about)}</p>`,
    ...report.broken.map(
      ({ condition, actual }) =>
        `<p class="bad">Failed: ${escaped(condition)}, and it was ${escaped(actual)}</p>`,
    ),
    `<table><thead>${rowHtml("th", heads)}</thead><tbody>${rows.join("")}</tbody></table>`,
    ...chartsHtml(report),
    ...factsHtml(report),
    "</body></html>",
    "",
  ].join("\n");
}

function chartsHtml({ intervals, percentiles, plan }: LoadReport): string[] {
  const { intervalMs } = plan;
  const over = (of: (interval: (typeof intervals)[number]) => number) =>
    intervals.map((interval) => [interval.atSeconds, of(interval)] as const);
  const perSecond = (count: number) => (count * 1000) / intervalMs;
  const outcomes = ["granted", "refused", "degraded", "failed"] as const;
  const seconds = (value: number) => value.toFixed(0);
  return [
    lineChart({
      title: "Acquires per second",
      xUnit: "by seconds",
      series: outcomes
        .filter((name) => name === "granted" || intervals.some(({ counts }) => counts[name] > 0))
        .map((name) => ({
          name,
          look: name,
          points: over(({ counts }) => perSecond(counts[name])),
        })),
      yText: withThousands,
      xText: seconds,
    }),
    lineChart({
      title: "Latency",
      xUnit: "by seconds",
      series: [
        { name: "p50", look: "p50", points: over(({ p50Ms }) => p50Ms) },
        { name: "p95", look: "p95", points: over(({ p95Ms }) => p95Ms) },
        { name: "p99", look: "p99", points: over(({ p99Ms }) => p99Ms) },
      ],
      yText: milliseconds,
      xText: seconds,
    }),
    lineChart({
      title: "Latency of the slowest",
      xUnit: "by share of all acquires",
      series: [
        {
          name: "all acquires",
          look: "curve",
          points: percentiles
            .filter(([percent]) => percent < 100)
            .map(([percent, ms]) => [-Math.log10(1 - percent / 100), ms] as const),
        },
      ],
      yText: milliseconds,
      xText: (nines) => `${Number((100 * (1 - 10 ** -nines)).toFixed(2))}%`,
    }),
  ];
}

function factsHtml({ cost, hasCost, consumed, cpuShare, lateMsMax, errors, lost }: LoadReport) {
  const facts: [string, string][] = [
    ...(hasCost
      ? ([
          ["calls per acquire", cost.callsPerAcquire.toFixed(2)],
          ["WCU per acquire", cost.writeUnitsPerAcquire.toFixed(2)],
          ["RCU per acquire", cost.readUnitsPerAcquire.toFixed(2)],
          ["dollars per million acquires", cost.dollarsPerMillion.toFixed(2)],
        ] as [string, string][])
      : []),
    ...Object.entries(consumed).map(([name, sum]): [string, string] => [
      `consumed ${name}`,
      withThousands(sum),
    ]),
    ["processor of the busiest worker", `${Math.round(100 * cpuShare)}%`],
    ["latest start of a task", milliseconds(lateMsMax)],
    ...errors.map(({ message, count }): [string, string] => [message, withThousands(count)]),
    ...lost.map(({ worker, atMs, reason }): [string, string] => [
      `worker ${worker} died: ${reason}`,
      `after ${(atMs / 1000).toFixed(1)} s`,
    ]),
  ];
  return [`<table><tbody>${facts.map((fact) => rowHtml("td", fact)).join("")}</tbody></table>`];
}

function rowHtml(cell: "td" | "th", texts: readonly string[]): string {
  return `<tr>${texts.map((text) => `<${cell}>${escaped(text)}</${cell}>`).join("")}</tr>`;
}

interface Series {
  readonly name: string;
  /** A class of the page's style, which has the colour. */
  readonly look: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

interface ChartOptions {
  readonly title: string;
  readonly xUnit: string;
  readonly series: readonly Series[];
  readonly yText: (value: number) => string;
  readonly xText: (value: number) => string;
}

const WIDTH = 720;
const HEIGHT = 220;
const LEFT = 64;
const BOTTOM = 28;
const TOP = 8;
const Y_STEPS = 4;
const X_STEPS_MAX = 6;
const RIGHT = 24;

/** Returns a line chart as SVG. */
function lineChart({ title, xUnit, series, yText, xText }: ChartOptions): string {
  const points = series.flatMap((one) => one.points);
  const xs = points.map(([x]) => x);
  const [xMin, xMax] = [Math.min(...xs, 0), Math.max(...xs, 1)];
  const yMax = niceMax(Math.max(...points.map(([, y]) => y), 0));
  const left = (x: number) => LEFT + ((x - xMin) / (xMax - xMin)) * (WIDTH - LEFT - RIGHT);
  const top = (y: number) => HEIGHT - BOTTOM - (y / yMax) * (HEIGHT - BOTTOM - TOP);
  const grid = Array.from({ length: Y_STEPS + 1 }, (_, at) => {
    const value = (yMax * at) / Y_STEPS;
    const y = top(value).toFixed(1);
    return (
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y}" y2="${y}"/>` +
      `<text x="${LEFT - 6}" y="${y}" dy="4" text-anchor="end">${escaped(yText(value))}</text>`
    );
  });
  const step = Math.max(1, niceMax((xMax - xMin) / X_STEPS_MAX));
  const ticks = Array.from({ length: Math.floor((xMax - xMin) / step) + 1 }, (_, at) => {
    const value = xMin + step * at;
    const x = left(value).toFixed(1);
    return `<text x="${x}" y="${HEIGHT - 8}" text-anchor="middle">${escaped(xText(value))}</text>`;
  });
  const lines = series.map(({ look, points: own }) => {
    const path = own.map(([x, y]) => `${left(x).toFixed(1)},${top(y).toFixed(1)}`).join(" ");
    return `<polyline class="${look}" points="${path}"/>`;
  });
  const legend = series.map(
    ({ name, look }) => `<span><i class="${look}"></i>${escaped(name)}</span>`,
  );
  return (
    `<figure><figcaption>${escaped(title)}<small>${escaped(xUnit)}</small>${legend.join("")}` +
    `</figcaption><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escaped(title)}">` +
    `${grid.join("")}${ticks.join("")}${lines.join("")}</svg></figure>`
  );
}

/** Returns the next larger number of the form 1, 2 or 5 times a power of ten. */
function niceMax(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((step) => step * power >= value) as number) * power;
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
