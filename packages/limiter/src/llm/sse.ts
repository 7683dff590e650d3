/**
 * Splits a stream of server-sent events into events. Lines end with LF, CR or CRLF, also mixed, and
 * a chunk may end anywhere: inside a character, and between CR and LF.
 */

const CR = 0x0d;
const LF = 0x0a;
const LINE_END = /\r\n|[\r\n]/;
/** A line that begins with a field of the standard; a comment has no name before its colon. */
const KNOWN_LINE = /^(?:(?:data|event|id|retry)?:|$)/;

export class SseSplitter {
  /** The parts of the event that is not complete yet. */
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  /** Whether the current line has no bytes so far. */
  #isLineEmpty = true;
  /** Whether the last byte was a CR, so that an LF belongs to the same line end. */
  #isAfterCr = false;

  /** How many bytes the event that is not complete has so far. */
  get restBytes(): number {
    return this.#partBytes;
  }

  /** Returns the bytes of the events that this chunk completes, each with its line ends. */
  push(chunk: Uint8Array): Uint8Array[] {
    const events: Uint8Array[] = [];
    if (chunk.length === 0) return events;
    // The second half of a line end whose first half was the last byte of the chunk before.
    let lineAt = this.#isAfterCr && chunk[0] === LF ? 1 : 0;
    // An event that ended with the first half has been returned already.
    let eventAt = this.#partBytes === 0 ? this.#cut(chunk, 0, lineAt, events) : 0;
    let isLineEmpty = this.#isLineEmpty;
    const ends = new LineEnds(chunk);
    for (let at = ends.from(lineAt); at !== -1; at = ends.from(lineAt)) {
      const isBlank = isLineEmpty && at === lineAt;
      isLineEmpty = true;
      lineAt = chunk[at] === CR && chunk[at + 1] === LF ? at + 2 : at + 1;
      if (isBlank) eventAt = this.#cut(chunk, eventAt, lineAt, events);
    }
    this.#isLineEmpty = isLineEmpty && lineAt === chunk.length;
    this.#isAfterCr = chunk[chunk.length - 1] === CR;
    this.#keep(chunk, eventAt, chunk.length);
    return events;
  }

  /** Returns the bytes of the event that is not complete, and forgets them. */
  takeRest(): Uint8Array {
    const parts = this.#parts;
    this.#parts = [];
    this.#partBytes = 0;
    return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
  }

  #cut(chunk: Uint8Array, from: number, to: number, events: Uint8Array[]): number {
    this.#keep(chunk, from, to);
    if (this.#partBytes > 0) events.push(this.takeRest());
    return to;
  }

  #keep(chunk: Uint8Array, from: number, to: number): void {
    if (from === to) return;
    this.#parts.push(to - from === chunk.length ? chunk : chunk.subarray(from, to));
    this.#partBytes += to - from;
  }
}

/** Finds the ends of lines in a chunk, each of the two characters once. */
class LineEnds {
  readonly #chunk: Uint8Array;
  #lf: number;
  #cr: number;

  constructor(chunk: Uint8Array) {
    this.#chunk = chunk;
    this.#lf = chunk.indexOf(LF);
    this.#cr = chunk.indexOf(CR);
  }

  /** Returns the place of the first end from there on; -1 where there is none. */
  from(at: number): number {
    if (this.#lf !== -1 && this.#lf < at) this.#lf = this.#chunk.indexOf(LF, at);
    if (this.#cr !== -1 && this.#cr < at) this.#cr = this.#chunk.indexOf(CR, at);
    return this.#lf === -1 || (this.#cr !== -1 && this.#cr < this.#lf) ? this.#cr : this.#lf;
  }
}

const decoder = new TextDecoder();

/**
 * Returns the `data` lines of an event, joined by line feeds as the standard says; empty for an
 * event without such lines, and `undefined` for bytes that are no event.
 */
export function dataOf(event: Uint8Array): string | undefined {
  const lines = decoder.decode(event).split(LINE_END);
  const data: string[] = [];
  for (const line of lines) {
    if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
  }
  if (data.length > 0) return data.join("\n");
  return lines.every((line) => KNOWN_LINE.test(line)) ? "" : undefined;
}
