/** Lines over time, drawn again as the run goes on. */

import { colourOf } from "@zae-limiter/dashboard/page/chart.tsx";
import { clock } from "@zae-limiter/dashboard/page/format.ts";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

export interface Line {
  readonly name: string;
  readonly values: readonly number[];
}

const HEIGHT = 220;
/** Seconds between two times on the axis. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120];

function clockAt(seconds: number): string {
  return clock(seconds * 1000);
}

function cssValue(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function LineChart(props: {
  seconds: readonly number[];
  lines: readonly Line[];
  label: string;
  theme: string;
  format: (value: number) => string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const { seconds, lines, label, theme, format } = props;
  const names = lines.map(({ name }) => name).join();
  // Theme changes the colours.
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const [faint, line] = [cssValue("--faint"), cssValue("--line")];
    const axis: uPlot.Axis = { stroke: faint, grid: { stroke: line, width: 1 } };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        // The last time on the axis is centred below the end of the lines.
        padding: [null, 32, null, null],
        legend: { show: false },
        scales: { y: { range: (_, __, max) => [0, Math.max(0.001, max * 1.05)] } },
        axes: [
          { ...axis, incrs: STEPS, values: (_, splits) => splits.map(clockAt) },
          { ...axis, size: 64, values: (_, splits) => splits.map(format) },
        ],
        series: [
          {},
          ...names.split(",").map((_, at) => ({
            stroke: colourOf(at),
            width: 1.5,
            points: { show: false },
          })),
        ],
      },
      [[], ...names.split(",").map(() => [])] as unknown as uPlot.AlignedData,
      element,
    );
    chart.current = made;
    const resized = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
    };
  }, [names, theme, format]);
  useEffect(() => {
    chart.current?.setData([[...seconds], ...lines.map(({ values }) => [...values])]);
  }, [seconds, lines, theme]);
  return (
    <>
      <p class="chips">
        {lines.map(({ name }, at) => (
          <span key={name} class="chip">
            <span aria-hidden="true" style={{ color: colourOf(at) }}>
              ■
            </span>{" "}
            {name}
          </span>
        ))}
      </p>
      <div
        ref={place}
        class="chart"
        role="img"
        aria-label={label}
        style={{ minHeight: `${HEIGHT}px` }}
      />
    </>
  );
}
