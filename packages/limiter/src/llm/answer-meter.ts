/**
 * Reads the usage of an answer from its bytes while they pass. Knows no kind of stream: the caller
 * hands over each chunk and forwards what comes back.
 */

import { bytesOf, byteTextOf, decoded } from "./byte-text.ts";
import { FastText } from "./formats/fast-text.ts";
import { fastUsage } from "./formats/fast-usage.ts";
import type { Format } from "./formats/format.ts";
import type { MeteredCall } from "./metered-call.ts";
import { textIn } from "./prompt-size.ts";
import { dataOf, SseSplitter } from "./sse.ts";
import { type Fields, fieldsOf, type KnownUsage } from "./usage.ts";

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
  readonly #fastText: FastText | undefined;
  #isTooLong = false;

  constructor(format: Format, metered: MeteredCall, hidesUsage: boolean) {
    this.#format = format;
    this.#metered = metered;
    this.#hidesUsage = hidesUsage;
    const { textPrefix } = format;
    if (textPrefix !== undefined) this.#fastText = new FastText(textPrefix);
  }

  push(chunk: Uint8Array): Uint8Array {
    if (this.#isTooLong) return chunk;
    const before = this.#splitter.rest;
    const events = this.#splitter.push(byteTextOf(chunk));
    const { rest } = this.#splitter;
    this.#isTooLong = rest.length > READ_BYTES_MAX;
    let kept = "";
    let hidden = 0;
    for (const event of events) {
      if (this.#read(event)) hidden += 1;
      else if (this.#hidesUsage) kept += event;
    }
    const isWhole = before === "" && rest === "" && hidden === 0;
    if (!this.#hidesUsage || isWhole) return chunk;
    // An event is of no use to its reader before it is complete, so waiting for its end delays
    // nothing.
    return bytesOf(this.#isTooLong ? kept + rest : kept);
  }

  finish(): { rest: Uint8Array; ended: Promise<void> } {
    const isHeld = this.#hidesUsage && !this.#isTooLong;
    const rest = isHeld ? bytesOf(this.#splitter.rest) : NOTHING;
    return { rest, ended: this.#metered.complete() };
  }

  /** Whether the event is to be hidden. */
  #read(event: string): boolean {
    const fast = this.#fastText?.of(event);
    if (fast !== undefined) {
      this.#metered.seeByteText(fast);
      return false;
    }
    const data = dataOf(event);
    const fields = data === "" || data === "[DONE]" ? undefined : parsed(decoded(data));
    if (fields === undefined) return false;
    const { usage, text, isUsageOnly } = this.#format.readEvent(fields);
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
    const last = this.#chunks.at(-1);
    const fast = last && this.#usageOf(fastUsage(last));
    if (fast?.output !== undefined) return this.#complete(fast);
    const answer = parsed(Buffer.concat(this.#chunks).toString("utf8"));
    if (answer === undefined) return this.#metered.keepEstimate();
    const usage = this.#usageOf(answer);
    if (usage?.output !== undefined) return this.#complete(usage);
    if (usage !== undefined) this.#metered.seeUsage(usage);
    const { answerField } = this.#format;
    const answered = answerField === undefined ? undefined : answer[answerField];
    if (answered === undefined) return this.#metered.keepEstimate();
    this.#metered.seeText(textIn(answered));
    return this.#metered.complete();
  }

  #usageOf(answer: Fields | undefined): KnownUsage | undefined {
    return answer && this.#format.readUsage(answer);
  }

  #complete(usage: KnownUsage): Promise<void> {
    this.#metered.seeUsage(usage);
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
