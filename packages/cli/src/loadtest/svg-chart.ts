/** Line charts as SVG, for a page that loads nothing. */

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

export function lineChart({ title, xUnit, series, yText, xText }: ChartOptions): string {
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

export function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
