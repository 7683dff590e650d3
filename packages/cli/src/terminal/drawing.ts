/** A picture on a terminal that the next one replaces. Elsewhere they go below each other. */

import type { Terminal } from "./terminal.ts";

const ESCAPE = "\u001b";
const HIDE_CURSOR = `${ESCAPE}[?25l`;
const SHOW_CURSOR = `${ESCAPE}[?25h`;
/** Colours; the brackets keep them when a text is split by them. */
const COLOUR = new RegExp(`(${ESCAPE}\\[[0-9;]*m)`);

export class Drawing {
  readonly #terminal: Terminal;
  #lines = 0;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Draws a picture, which ends with a line end, over the last one. */
  draw(picture: string): void {
    const { out, isTerminal, columns, rows = Number.POSITIVE_INFINITY } = this.#terminal;
    if (!isTerminal) {
      out(picture);
      return;
    }
    // A line that wraps, or one that has left the screen at its top, could not be drawn over.
    const lines = picture
      .trimEnd()
      .split("\n")
      .slice(0, Math.max(1, rows - 1))
      .map((line) => clipped(line, columns));
    const back = this.#lines === 0 ? HIDE_CURSOR : `${ESCAPE}[${this.#lines}A${ESCAPE}[J`;
    // Written apart from the text, in which cursor moves have no effect.
    out(back);
    out(`${lines.join("\n")}\n`);
    this.#lines = lines.length;
  }

  /** Leaves the last picture on the screen and restores the terminal. */
  leave(): void {
    if (this.#lines > 0) this.#terminal.out(SHOW_CURSOR);
    this.#lines = 0;
  }
}

/**
 * Returns the part of a line that fits, with all of its colours, because the last one ends them.
 */
export function clipped(line: string, columns: number): string {
  let room = columns;
  return line
    .split(COLOUR)
    .map((part, at) => {
      // Every other part is a colour.
      if (at % 2 === 1) return part;
      const shown = [...part].slice(0, room);
      room -= shown.length;
      return shown.join("");
    })
    .join("");
}
