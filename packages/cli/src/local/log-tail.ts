/** The end of a log, and what is added to it. */

import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** The most that is read of the end of a log. */
const TAIL_BYTES_MAX = 1_000_000;

/** Returns the last lines of a file; none when it does not exist. */
export function lastLines(path: string, count: number): string[] {
  const { text } = readFrom(path, Number.NEGATIVE_INFINITY);
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return count === 0 ? [] : lines.slice(-count);
}

/** Hands out the lines that are added, each once it is complete. */
export class LogFollower {
  readonly #path: string;
  #position: number;
  #rest = "";

  /** From the end of the file as it is now. */
  constructor(path: string) {
    this.#path = path;
    this.#position = readFrom(path, Number.POSITIVE_INFINITY).end;
  }

  newLines(): string[] {
    const { text, end } = readFrom(this.#path, this.#position);
    this.#position = end;
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    return lines;
  }
}

/** Reads the text after a position, which moves back where the file has become shorter. */
function readFrom(path: string, position: number): { text: string; end: number } {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { text: "", end: 0 };
    throw error;
  }
  try {
    const { size } = fstatSync(file);
    const shortened = position > size && Number.isFinite(position);
    const from = shortened ? 0 : Math.min(Math.max(position, size - TAIL_BYTES_MAX, 0), size);
    const buffer = Buffer.alloc(size - from);
    const length = readSync(file, buffer, 0, buffer.length, from);
    return { text: buffer.toString("utf8", 0, length), end: from + length };
  } finally {
    closeSync(file);
  }
}
