/**
 * Splits a stream of server-sent events into events, at the byte level: a chunk may end anywhere,
 * also inside of a character. Lines end with LF or CRLF, as every provider sends them. All texts
 * here have one character per byte (`byte-text.ts`).
 */

const CR = 0x0d;
const SPACE = 0x20;
const FIELD = "data:";

export class SseSplitter {
  /** The event that is not complete yet. */
  #rest = "";
  /** Where its current line begins. */
  #lineAt = 0;

  /** Returns the events that this chunk completes, each with its line ends. */
  push(chunk: string): string[] {
    const events: string[] = [];
    let end = chunk.indexOf("\n");
    // Parts of a long event are only put together when there is a line to read.
    if (end === -1) {
      this.#rest += chunk;
      return events;
    }
    const text = this.#rest + chunk;
    let eventAt = 0;
    let lineAt = this.#lineAt;
    end += this.#rest.length;
    while (end !== -1) {
      const isBlank = end === lineAt || (end === lineAt + 1 && text.charCodeAt(lineAt) === CR);
      lineAt = end + 1;
      if (isBlank) {
        events.push(text.slice(eventAt, lineAt));
        eventAt = lineAt;
      }
      end = text.indexOf("\n", lineAt);
    }
    this.#rest = text.slice(eventAt);
    this.#lineAt = lineAt - eventAt;
    return events;
  }

  /** Bytes that belong to no complete event yet. */
  get rest(): string {
    return this.#rest;
  }
}

/** Returns the `data` lines of an event, joined by line ends as the standard says. */
export function dataOf(event: string): string {
  const at = event.startsWith(FIELD) ? 0 : event.indexOf(`\n${FIELD}`) + 1;
  if (at === 0 && !event.startsWith(FIELD)) return "";
  const end = event.indexOf("\n", at);
  // Nearly every event has one such line, and it is the last one.
  if (end >= event.length - 3 || event.indexOf(`\n${FIELD}`, end) === -1) {
    return dataLine(event, at, end);
  }
  return event
    .split("\n")
    .filter((line) => line.startsWith(FIELD))
    .map((line) => dataLine(line, 0, line.length))
    .join("\n");
}

/** Returns the value of the line from `at` to `end`. */
function dataLine(text: string, at: number, end: number): string {
  const from = at + FIELD.length;
  const to = text.charCodeAt(end - 1) === CR ? end - 1 : end;
  return text.slice(text.charCodeAt(from) === SPACE ? from + 1 : from, to);
}
