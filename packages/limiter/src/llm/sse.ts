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
    let eventAt = 0;
    let lineAt = 0;
    let lf = chunk.indexOf(LF);
    let cr = chunk.indexOf(CR);
    while (lf !== -1 || cr !== -1) {
      const isCr = lf === -1 || (cr !== -1 && cr < lf);
      const at = isCr ? cr : lf;
      const isSecondHalf = at === 0 && !isCr && this.#isAfterCr;
      const isBlank = at === lineAt && (at > 0 || this.#isLineEmpty);
      lineAt = isCr && chunk[at + 1] === LF ? at + 2 : at + 1;
      // The event that ended with the CR was returned with the chunk before: this is its last byte.
      const isLastByte = isSecondHalf && this.#partBytes === 0;
      if (isSecondHalf ? isLastByte : isBlank) eventAt = this.#cut(chunk, eventAt, lineAt, events);
      if (lf !== -1 && lf < lineAt) lf = chunk.indexOf(LF, lineAt);
      if (cr !== -1 && cr < lineAt) cr = chunk.indexOf(CR, lineAt);
    }
    if (chunk.length > 0) {
      this.#isLineEmpty = lineAt === chunk.length;
      this.#isAfterCr = chunk[chunk.length - 1] === CR;
    }
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
    events.push(this.takeRest());
    return to;
  }

  #keep(chunk: Uint8Array, from: number, to: number): void {
    if (from === to) return;
    this.#parts.push(to - from === chunk.length ? chunk : chunk.subarray(from, to));
    this.#partBytes += to - from;
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
