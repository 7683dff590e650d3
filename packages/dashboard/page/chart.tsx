/** A bar chart over time, stacked unless its values do not add up. */

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { compactAmount } from "./format.ts";

export interface Series {
  readonly name: string;
  readonly values: readonly number[];
}

const COLOURS = 8;

/** Returns the colour of a series, which the style sheet has for light and dark. */
export function colourOf(at: number): string {
  return cssValue(`--series-${at % COLOURS}`);
}

function cssValue(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Returns a time on the axis: the hour, or the day where one begins. */
function moment(seconds: number): string {
  const date = new Date(seconds * 1000);
  if (date.getHours() !== 0 || date.getMinutes() !== 0) {
    return date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  }
  return date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

/** Whole numbers between two ticks, because half a token is never consumed. */
const STEPS = [
  ...[1, 2, 5],
  ...Array.from({ length: 14 }, (_, power) => [10, 20, 25, 50].map((n) => n * 10 ** power)).flat(),
];

/**
 * Returns each series on top of the ones before; drawn from the highest, so that all are visible.
 * Peaks are drawn in front of each other.
 */
function stackedData(
  seconds: readonly number[],
  series: readonly Series[],
  isStacked: boolean,
): uPlot.AlignedData {
  // A peak of none would be drawn as a line.
  const shown = ({ values }: Series) => values.map((value) => value || null);
  if (!isStacked) return [[...seconds], ...series.map(shown).reverse()];
  const sums: number[][] = [];
  let below = seconds.map(() => 0);
  for (const { values } of series) {
    below = below.map((sum, at) => sum + (values[at] ?? 0));
    sums.push(below);
  }
  return [[...seconds], ...sums.reverse()];
}

/** Returns how bars are drawn: those in front of others show these. */
function strokesOf(colour: string, isStacked: boolean) {
  if (isStacked) return { fill: colour, width: 0 };
  return { fill: `${colour}40`, stroke: colour, width: 2 };
}

export function StackedChart(props: {
  /** When each window begins, in seconds since 1970. */
  seconds: readonly number[];
  /** Seconds of a window. */
  gap: number;
  /** Each with a value per window. */
  series: readonly Series[];
  height: number;
  /** The limit whose amounts these are. */
  limitName: string;
  /** Whether the values of several series add up. */
  isStacked: boolean;
  label: string;
  theme: string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const { seconds, gap, series, height, limitName, isStacked, label, theme } = props;
  // Theme changes the colours.
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const [first = 0, last = first] = [seconds[0], seconds.at(-1)];
    const bars = uPlot.paths.bars?.({ size: [0.8, 48], align: 0 });
    const faint = cssValue("--faint");
    const line = cssValue("--line");
    const axis: uPlot.Axis = {
      stroke: faint,
      grid: { stroke: line, width: 1 },
      ticks: { stroke: line, width: 1 },
    };
    const chart = new uPlot(
      {
        width: element.clientWidth,
        height,
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, points: { show: false } },
        scales: {
          // Not what uPlot suggests: around a single window that is years.
          x: { range: () => [first - gap / 2, last + gap / 2] },
          y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] },
        },
        axes: [
          { ...axis, values: (_, splits) => splits.map(moment) },
          {
            ...axis,
            size: 56,
            incrs: STEPS,
            values: (_, splits) => splits.map((split) => compactAmount(limitName, split)),
          },
        ],
        series: [
          {},
          ...series.map((_, at) => ({
            ...strokesOf(colourOf(series.length - 1 - at), isStacked),
            points: { show: false },
            ...(bars === undefined ? {} : { paths: bars }),
          })),
        ],
      },
      stackedData(seconds, series, isStacked),
      element,
    );
    const resized = new ResizeObserver(() => {
      chart.setSize({ width: element.clientWidth, height });
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
      chart.destroy();
    };
  }, [seconds, gap, series, height, limitName, isStacked, theme]);
  return (
    <div
      ref={place}
      class="chart"
      role="img"
      aria-label={label}
      style={{ minHeight: `${height}px` }}
    />
  );
}
