/** Tables of text: columns as wide as needed and no lines, so that `grep` and `awk` work too. */

import { visible } from "./visible.ts";

/** A title, or one whose column is aligned. */
export type Column = string | { readonly title: string; readonly align: "left" | "right" };

/** Returns a column of numbers, aligned to the right. */
export function right(title: string): Column {
  return { title, align: "right" };
}

/** Returns rows under their titles; `paint` formats titles as headings. */
export async function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  paint: (title: string) => string,
): Promise<string> {
  const { default: Table } = await import("cli-table3");
  const made = new Table({
    head: columns.map((column) => paint(typeof column === "string" ? column : column.title)),
    colAligns: columns.map((column) => (typeof column === "string" ? "left" : column.align)),
    // Colours are the palette's; its own would come in addition.
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
    chars: NO_LINES,
  });
  made.push(...rows.map((row) => row.map(visible)));
  return made
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

const NO_LINES = {
  top: "",
  "top-mid": "",
  "top-left": "",
  "top-right": "",
  bottom: "",
  "bottom-mid": "",
  "bottom-left": "",
  "bottom-right": "",
  left: "",
  "left-mid": "",
  mid: "",
  "mid-mid": "",
  right: "",
  "right-mid": "",
  middle: "   ",
} as const;

/** Returns names and values in two columns. */
export function fields(
  rows: readonly (readonly [label: string, value: string])[],
  paint: (label: string) => string,
): string {
  const width = Math.max(...rows.map(([label]) => label.length));
  return rows
    .map(([label, value]) => `  ${paint(label.padEnd(width))}  ${visible(value)}`)
    .join("\n");
}
