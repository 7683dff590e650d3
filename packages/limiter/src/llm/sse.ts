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
    let isLineEmpty = this.#isLineEmpty;
    let isAfterCr = this.#isAfterCr;
    let from = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at];
      if (byte !== CR && byte !== LF) {
        isLineEmpty = false;
        isAfterCr = false;
        continue;
      }
      const isSecondHalf = byte === LF && isAfterCr;
      isAfterCr = byte === CR;
      // The event that ended with the CR was returned with the chunk before: this is its last byte.
      if (isSecondHalf && at === 0 && this.#partBytes === 0) from = this.#cut(chunk, 0, 1, events);
      if (isSecondHalf) continue;
      if (!isLineEmpty) {
        isLineEmpty = true;
        continue;
      }
      if (isAfterCr && chunk[at + 1] === LF) {
        at += 1;
        isAfterCr = false;
      }
      from = this.#cut(chunk, from, at + 1, events);
    }
    this.#isLineEmpty = isLineEmpty;
    this.#isAfterCr = isAfterCr;
    this.#keep(chunk, from, chunk.length);
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
