/** Tables of text: columns as wide as needed and no lines, so that `grep` and `awk` work too. */

import { visible } from "./visible.ts";

export interface Column {
  readonly title: string;
  /** Numbers stand to the right. */
  readonly align?: "left" | "right";
}

/** The rows under their titles; titles are given the look of a heading by `paint`. */
export async function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  paint: (title: string) => string,
): Promise<string> {
  const { default: Table } = await import("cli-table3");
  const made = new Table({
    head: columns.map(({ title }) => paint(title)),
    colAligns: columns.map(({ align }) => align ?? "left"),
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
