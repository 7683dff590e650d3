/** Reads the most frequent kind of event without parsing it, which would take most of the time. */

const USAGE = '"usage":{';
const DELTA = '"delta"';
const CLOSING_BRACE = 0x7d;

/**
 * Reads events that have one delta with nothing but text. Inside of a JSON string each quote has a
 * backslash before it, so a delta and `"usage"` are found as parts of the event and never inside a
 * text. All events of a stream begin alike, so the beginning is searched once.
 */
export class FastText {
  readonly #prefix: string;
  /** What the last such event had before its text. */
  #head: string | undefined;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Returns the text of the event; `undefined` for any other event. */
  of(data: string): string | undefined {
    const head = this.#head;
    // `startsWith` compares character by character, which takes twenty times as long.
    const hasHead = head !== undefined && data.slice(0, head.length) === head;
    const from = hasHead ? head.length : this.#textAt(data);
    if (from === -1) return undefined;
    const end = data.indexOf('"', from);
    if (end === -1 || data.charCodeAt(end + 1) !== CLOSING_BRACE) return undefined;
    if (data.indexOf(DELTA, end) !== -1 || data.indexOf(USAGE, end) !== -1) return undefined;
    const text = data.slice(from, end);
    if (text.includes("\\")) return undefined;
    if (!hasHead) this.#head = data.slice(0, from);
    return text;
  }

  /** Returns where the text of the first delta begins; -1 without one, or after usage. */
  #textAt(data: string): number {
    const at = data.indexOf(DELTA);
    if (at === -1 || !data.startsWith(this.#prefix, at)) return -1;
    const usageAt = data.indexOf(USAGE);
    return usageAt !== -1 && usageAt < at ? -1 : at + this.#prefix.length;
  }
}
