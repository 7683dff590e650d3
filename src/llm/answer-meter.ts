/**
 * Reads the usage of an answer from its bytes while they pass. Knows no kind of stream: the caller
 * hands over each chunk and forwards what comes back.
 */

import type { Format } from "./formats/format.ts";
import { quickText } from "./formats/quick-text.ts";
import type { MeteredCall } from "./metered-call.ts";
import { collect, type Prompt } from "./prompt-size.ts";
import { type SseEvent, SseSplitter } from "./sse.ts";
import { type Fields, fieldsOf } from "./usage.ts";

export interface AnswerMeter {
  /** Returns what to forward of a chunk and of earlier ones; often the chunk itself. */
  push(chunk: Uint8Array): Uint8Array;
  /** Returns what is left to forward when the answer is complete, and ends the lease. */
  finish(): { rest: Uint8Array; ended: Promise<void> };
}

/** A longer answer or event is forwarded without being read. */
const READ_BYTES_MAX = 64 * 1024 * 1024;
const NOTHING = new Uint8Array(0);

/** Returns the meter for a complete answer in JSON, or for a stream of events. */
export function answerMeter(
  contentType: string,
  format: Format,
  metered: MeteredCall,
  hidesUsage: boolean,
): AnswerMeter {
  if (!contentType.startsWith("text/event-stream")) return new PlainAnswer(format, metered);
  metered.startStreaming();
  return new StreamedAnswer(format, metered, hidesUsage);
}

class StreamedAnswer implements AnswerMeter {
  readonly #format: Format;
  readonly #metered: MeteredCall;
  /** The caller did not ask for usage, so the event that the limiter asked for is left out. */
  readonly #hidesUsage: boolean;
  readonly #splitter = new SseSplitter();
  #isTooLong = false;

  constructor(format: Format, metered: MeteredCall, hidesUsage: boolean) {
    this.#format = format;
    this.#metered = metered;
    this.#hidesUsage = hidesUsage;
  }

  push(chunk: Uint8Array): Uint8Array {
    if (this.#isTooLong) return chunk;
    const events = this.#splitter.push(chunk);
    const kept: Uint8Array[] = [];
    for (const event of events) if (!this.#read(event)) kept.push(event.bytes);
    this.#isTooLong = this.#splitter.rest.length > READ_BYTES_MAX;
    if (!this.#hidesUsage) return chunk;
    // An event is of no use to its reader before it is complete, so waiting for its end delays
    // nothing.
    if (this.#isTooLong) kept.push(this.#splitter.rest);
    return kept.length === 1 ? (kept[0] as Uint8Array) : Buffer.concat(kept);
  }

  finish(): { rest: Uint8Array; ended: Promise<void> } {
    const rest = this.#hidesUsage && !this.#isTooLong ? this.#splitter.rest : NOTHING;
    return { rest, ended: this.#metered.complete() };
  }

  /** Whether the event is to be hidden. */
  #read({ data }: SseEvent): boolean {
    if (data === "" || data === "[DONE]") return false;
    const { textPrefix } = this.#format;
    const quick = textPrefix === undefined ? undefined : quickText(data, textPrefix);
    if (quick !== undefined) {
      this.#metered.seeText(quick);
      return false;
    }
    const event = parsed(data);
    if (event === undefined) return false;
    const { usage, text, isUsageOnly } = this.#format.readEvent(event);
    if (usage !== undefined) this.#metered.seeUsage(usage);
    if (text !== undefined) this.#metered.seeText(text);
    return isUsageOnly === true && this.#hidesUsage;
  }
}

class PlainAnswer implements AnswerMeter {
  readonly #format: Format;
  readonly #metered: MeteredCall;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;

  constructor(format: Format, metered: MeteredCall) {
    this.#format = format;
    this.#metered = metered;
  }

  push(chunk: Uint8Array): Uint8Array {
    this.#bytes += chunk.length;
    if (this.#bytes <= READ_BYTES_MAX) this.#chunks.push(chunk);
    else this.#chunks.length = 0;
    return chunk;
  }

  finish(): { rest: Uint8Array; ended: Promise<void> } {
    return { rest: NOTHING, ended: this.#end() };
  }

  #end(): Promise<void> {
    const answer = parsed(Buffer.concat(this.#chunks).toString("utf8"));
    if (answer === undefined) return this.#metered.keepEstimate();
    const usage = this.#format.readUsage(answer);
    if (usage !== undefined) this.#metered.seeUsage(usage);
    if (usage?.output !== undefined) return this.#metered.complete();
    const { answerField } = this.#format;
    const answered = answerField === undefined ? undefined : answer[answerField];
    if (answered === undefined) return this.#metered.keepEstimate();
    const prompt: Prompt = { texts: [], tokens: 0 };
    collect(answered, prompt);
    this.#metered.seeText(prompt.texts.join(""));
    return this.#metered.complete();
  }
}

/** Returns the object, or `undefined` for text that is none. */
function parsed(text: string): Fields | undefined {
  try {
    return fieldsOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}
