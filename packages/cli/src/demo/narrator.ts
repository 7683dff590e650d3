/** Tells the demonstration: headings, sentences and columns. */

import type { Palette } from "../terminal/palette.ts";
import type { Terminal } from "../terminal/terminal.ts";

const INDENT = "  ";
const GUTTER = "   ";

export class Narrator {
  readonly palette: Palette;
  readonly #out: (text: string) => void;
  #chapter = 0;

  constructor(terminal: Terminal) {
    this.palette = terminal.palette;
    this.#out = terminal.out;
  }

  chapter(title: string): void {
    this.#chapter += 1;
    this.#out(`\n${this.palette.title(`${this.#chapter}. ${title}`)}\n`);
  }

  say(text: string): void {
    this.#out(`${text}\n`);
  }

  /**
   * Rows in columns as wide as they need; the first row is the header. Numbers stand to the right,
   * of whatever is in the first column.
   */
  table(rows: readonly (readonly string[])[], kind: "words" | "numbers" = "words"): void {
    const widths = (rows[0] ?? []).map((_, column) =>
      Math.max(...rows.map((row) => row[column]?.length ?? 0)),
    );
    rows.forEach((row, index) => {
      const cells = row.map((cell, column) => {
        const width = widths[column] ?? 0;
        return kind === "numbers" && column > 0 ? cell.padStart(width) : cell.padEnd(width);
      });
      const line = cells.join(GUTTER).trimEnd();
      this.#out(`${INDENT}${index === 0 ? this.palette.faint(line) : line}\n`);
    });
  }
}
