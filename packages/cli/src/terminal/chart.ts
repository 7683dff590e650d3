/** A chart of amounts over time: columns of blocks, with numbers at both axes. */

import { withThousands } from "./numbers.ts";

const HEIGHT = 8;
const WIDTH_MIN = 10;
/** A column is at most this wide, gap included: one window is not a wall. */
const COLUMN_MAX = 8;
/** Eighths of a cell, from below. */
const EIGHTHS = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;
const FULL = "█";

export interface Axis {
  /** Below the first and the last amount. */
  readonly first: string;
  readonly last: string;
}

/** Draws as many columns as there is room for; more amounts than that are averaged. */
export function chart(
  amounts: readonly number[],
  axis: Axis,
  columns: number,
  shown: (amount: number) => string = withThousands,
): string {
  const top = Math.max(...amounts, 1);
  const bottom = Math.min(...amounts, 0);
  const label = Math.max(shown(top).length, shown(bottom).length, middleOf(top, shown).length);
  const width = Math.max(WIDTH_MIN, columns - label - 2);
  const drawn = fitted(amounts, width);
  const cells = Math.min(COLUMN_MAX, Math.floor(width / drawn.length));
  const above = bottom < 0 ? rowsAbove(top, bottom) : HEIGHT;
  const row = (name: string, mark: string, cell: (amount: number) => string) =>
    `${name.padStart(label)} ${mark}${drawn.map((amount) => column(cell(amount), cells)).join("")}`;
  const middle = middleOf(top, shown);
  const rows = Array.from({ length: above }, (_, at) => {
    const name = at === 0 ? shown(top) : at === above / 2 ? middle : "";
    const below = above - 1 - at;
    return row(name, name === "" ? "│" : "┤", (amount) => cellAbove(amount / top, above, below));
  });
  const floor = `${"0".padStart(label)} ┼${"─".repeat(cells * drawn.length)}`;
  const depths = Array.from({ length: HEIGHT - above }, (_, at) => {
    const name = at === HEIGHT - above - 1 ? shown(bottom) : "";
    const deep = (amount: number) => (amount / bottom) * (HEIGHT - above) >= at + 0.5;
    return row(name, name === "" ? "│" : "┤", (amount) => (deep(amount) ? FULL : " "));
  });
  const times = timeLine(axis, cells * drawn.length, width);
  const lines = [...rows, floor, ...depths, `${" ".repeat(label + 2)}${times}`];
  return lines.map((line) => line.trimEnd()).join("\n");
}

/** Returns as many amounts as there are columns: all of them, or averages of several. */
export function fitted(series: readonly number[], width: number): readonly number[] {
  if (series.length <= width) return series;
  return Array.from({ length: width }, (_, at) => {
    const start = Math.floor((at * series.length) / width);
    const part = series.slice(start, Math.floor(((at + 1) * series.length) / width));
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}

/** Returns the rows above zero, which leave at least one on either side. */
function rowsAbove(top: number, bottom: number): number {
  const share = Math.round((HEIGHT * top) / (top - bottom));
  return Math.min(HEIGHT - 1, Math.max(1, share));
}

/** Returns the number in the middle of the axis, if it is whole or rounding does not show. */
function middleOf(top: number, shown: (amount: number) => string): string {
  return top >= 20 || top % 2 === 0 ? shown(Math.round(top / 2)) : "";
}

function cellAbove(share: number, rows: number, below: number): string {
  if (share <= 0) return " ";
  const eighths = Math.round((share * rows - below) * 8);
  // An amount above zero is never shown as nothing.
  const least = below === 0 ? 1 : 0;
  return EIGHTHS[Math.min(8, Math.max(least, eighths))] ?? " ";
}

/** Returns a column of cells; one cell stays free between two, where there are enough of them. */
function column(cell: string, cells: number): string {
  return cells === 1 ? cell : `${cell.repeat(cells - 1)} `;
}

/** Returns the times under the ends of the axis; the last one only where both have room. */
function timeLine({ first, last }: Axis, drawn: number, room: number): string {
  const length = Math.max(drawn, first.length);
  const gap = length - first.length - last.length;
  if (first === last || gap < 1) {
    const both = `${first} … ${last}`;
    return first !== last && both.length <= room ? both : first;
  }
  return `${first}${" ".repeat(gap)}${last}`;
}
