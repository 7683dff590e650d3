/**
 * Splits a stream of server-sent events into events, at the byte level: a chunk may end anywhere,
 * also inside of a character. Lines end with LF or CRLF, as every provider sends them.
 */

/** One event with all of its bytes, and the text of its `data` lines. */
export interface SseEvent {
  readonly bytes: Uint8Array;
  readonly data: string;
}

const LF = 0x0a;
const CR = 0x0d;
const NOTHING = new Uint8Array(0);

export class SseSplitter {
  /** Bytes of the event that is not complete yet. */
  #rest: Uint8Array = NOTHING;
  /** Where its current line begins, and up to where it was searched for the end of that line. */
  #lineAt = 0;
  #searchedTo = 0;

  /** Returns the events that this chunk completes. */
  push(chunk: Uint8Array): SseEvent[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const events: SseEvent[] = [];
    let eventAt = 0;
    let lineAt = this.#lineAt;
    let end = bytes.indexOf(LF, this.#searchedTo);
    while (end !== -1) {
      const isBlank = end === lineAt || (end === lineAt + 1 && bytes[lineAt] === CR);
      lineAt = end + 1;
      if (isBlank) {
        const event = bytes.subarray(eventAt, lineAt);
        events.push({ bytes: event, data: dataOf(event) });
        eventAt = lineAt;
      }
      end = bytes.indexOf(LF, lineAt);
    }
    this.#rest = bytes.subarray(eventAt);
    this.#lineAt = lineAt - eventAt;
    this.#searchedTo = this.#rest.length;
    return events;
  }

  /** The bytes that no event has used yet. */
  get rest(): Uint8Array {
    return this.#rest;
  }
}

/** Returns the `data` lines of an event, joined by line ends as the standard says. */
function dataOf(event: Uint8Array): string {
  const text = Buffer.from(event.buffer, event.byteOffset, event.byteLength).toString("utf8");
  const at = text.startsWith("data:") ? 0 : text.indexOf("\ndata:") + 1;
  if (at === 0 && !text.startsWith("data:")) return "";
  const end = text.indexOf("\n", at);
  // Nearly every event has one such line, and it is the last one.
  if (text.indexOf("\ndata:", end) === -1) return dataLine(text.slice(at, end));
  return text
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map(dataLine)
    .join("\n");
}

function dataLine(line: string): string {
  const from = line.charCodeAt("data:".length) === 0x20 ? "data: ".length : "data:".length;
  return line.endsWith("\r") ? line.slice(from, -1) : line.slice(from);
}
