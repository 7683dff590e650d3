/**
 * Reads the usage of an answer from its bytes while they pass. The caller hands over each chunk and
 * forwards the bytes that it gets back, whatever kind of stream it has.
 */

import { anyFormat, type Format } from "./formats/format.ts";
import type { MeteredCall } from "./metered-call.ts";
import { textIn } from "./prompt-size.ts";
import { dataOf, SseSplitter } from "./sse.ts";
import { type Fields, fieldsOf, type KnownUsage, parsedObject, totalOf } from "./usage.ts";

export interface AnswerMeter {
  /** The id of a background response that is not final so far. */
  readonly pendingId: string | undefined;
  /** The id of a background response, also once it is final. */
  readonly backgroundId?: string | undefined;
  /** Returns the bytes to forward of a chunk and of earlier ones; often the chunk itself. */
  push(chunk: Uint8Array): Uint8Array;
  /**
   * Ends the lease of a complete answer, and returns the bytes that are left to forward. With a
   * `pendingId` the provider works on: the lease stays open, and the caller ends it.
   */
  finish(): Promise<{ readonly rest: Uint8Array; readonly pendingId?: string | undefined }>;
}

/** Headers of an answer that say how to read it; empty where there are none. */
interface AnswerHeaders {
  readonly contentType: string;
  readonly contentEncoding: string;
}

/** A longer answer or event is forwarded without being read, in bytes. */
const READ_BYTES_MAX = 64 * 1024 * 1024;
const NOTHING = new Uint8Array(0);

/** Returns the meter for a stream of events, for an answer in JSON, or for one that is neither. */
export function answerMeter(
  { contentType, contentEncoding }: AnswerHeaders,
  format: Format,
  metered: MeteredCall,
  hidesUsage: boolean,
  bytesMax = READ_BYTES_MAX,
): AnswerMeter {
  const encoding = contentEncoding.trim().toLowerCase();
  const type = contentType.trim().toLowerCase();
  if (encoding !== "" && encoding !== "identity") return new UnreadAnswer(metered);
  if (type.startsWith("text/event-stream")) {
    metered.startStreaming();
    return new StreamedAnswer(format, metered, hidesUsage, bytesMax);
  }
  // Sound and images are not text, and not worth keeping until their end.
  const isText = type === "" || type.startsWith("text/plain") || type.includes("json");
  return isText ? new PlainAnswer(format, metered, bytesMax) : new UnreadAnswer(metered);
}

/** Returns the usage that an error states, which was billed; `undefined` where it states none. */
export function usageOfError(text: string, format: Format): KnownUsage | undefined {
  const body = parsedObject(text);
  if (body === undefined) return undefined;
  for (const part of [body, fieldsOf(body["error"]), fieldsOf(body["response"])]) {
    const usage = format.readUsage(part);
    const found = usage !== undefined && totalOf(usage) > 0 ? usage : anyFormat.readUsage(part);
    if (found !== undefined && totalOf(found) > 0) return found;
  }
  return undefined;
}

/** Forwards an answer that cannot be read. */
class UnreadAnswer implements AnswerMeter {
  readonly pendingId = undefined;
  readonly #metered: MeteredCall;

  constructor(metered: MeteredCall) {
    this.#metered = metered;
    metered.seeUnread();
  }

  push(chunk: Uint8Array): Uint8Array {
    return chunk;
  }

  async finish(): Promise<{ rest: Uint8Array }> {
    await this.#metered.complete();
    return { rest: NOTHING };
  }
}

class StreamedAnswer implements AnswerMeter {
  readonly #format: Format;
  readonly #metered: MeteredCall;
  /** The caller did not ask for usage, so the event that the limiter asked for is left out. */
  readonly #hidesUsage: boolean;
  readonly #bytesMax: number;
  readonly #splitter = new SseSplitter();
  #isTooLong = false;
  #pendingId: string | undefined;
  #backgroundId: string | undefined;

  constructor(format: Format, metered: MeteredCall, hidesUsage: boolean, bytesMax: number) {
    this.#format = format;
    this.#metered = metered;
    this.#hidesUsage = hidesUsage;
    this.#bytesMax = bytesMax;
  }

  get pendingId(): string | undefined {
    return this.#metered.isBackground ? this.#pendingId : undefined;
  }

  get backgroundId(): string | undefined {
    return this.#metered.isBackground ? this.#backgroundId : undefined;
  }

  push(chunk: Uint8Array): Uint8Array {
    if (this.#isTooLong) return chunk;
    const kept: Uint8Array[] = [];
    for (const event of this.#splitter.push(chunk)) {
      if (!this.#read(event)) kept.push(event);
    }
    if (this.#splitter.restBytes > this.#bytesMax) {
      this.#isTooLong = true;
      this.#metered.seeUnread();
      kept.push(this.#splitter.takeRest());
    }
    // An event is of no use to its reader before it is complete, so waiting for its end delays
    // nothing.
    return this.#hidesUsage ? joined(kept) : chunk;
  }

  async finish(): Promise<{ rest: Uint8Array; pendingId?: string | undefined }> {
    const last = this.#splitter.takeRest();
    const isHidden = last.length === 0 || this.#read(last) || !this.#hidesUsage;
    const rest = isHidden ? NOTHING : last;
    return { rest, pendingId: await ended(this.#metered, this.pendingId) };
  }

  /** Reads an event, and returns whether it is to be hidden. */
  #read(event: Uint8Array): boolean {
    const data = dataOf(event);
    if (data === "" || data === "[DONE]") return false;
    const fields = data === undefined ? undefined : parsedObject(data);
    if (fields === undefined) {
      this.#metered.seeUnread();
      return false;
    }
    const { usage, text, isUsageOnly, isLast, pendingId } = this.#format.readEvent(fields);
    if (text !== undefined) this.#metered.seeText(text);
    if (usage !== undefined) this.#metered.seeUsage(usage, isLast);
    if (pendingId !== undefined || isLast === true) this.#pendingId = pendingId;
    this.#backgroundId ??= pendingId;
    return isUsageOnly === true && this.#hidesUsage;
  }
}

class PlainAnswer implements AnswerMeter {
  readonly #format: Format;
  readonly #metered: MeteredCall;
  readonly #bytesMax: number;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #pendingId: string | undefined;

  constructor(format: Format, metered: MeteredCall, bytesMax: number) {
    this.#format = format;
    this.#metered = metered;
    this.#bytesMax = bytesMax;
  }

  get pendingId(): string | undefined {
    return this.#pendingId;
  }

  push(chunk: Uint8Array): Uint8Array {
    this.#bytes += chunk.length;
    if (this.#bytes <= this.#bytesMax) this.#chunks.push(chunk);
    else this.#chunks = [];
    return chunk;
  }

  async finish(): Promise<{ rest: Uint8Array; pendingId?: string | undefined }> {
    const answer = parsedObject(Buffer.concat(this.#chunks).toString("utf8"));
    if (answer !== undefined) this.#read(answer);
    else if (this.#bytes > 0) this.#metered.seeUnread();
    return { rest: NOTHING, pendingId: await ended(this.#metered, this.#pendingId) };
  }

  #read(answer: Fields): void {
    const { readUsage, answerField, pendingIdOf } = this.#format;
    const usage = readUsage(answer);
    if (usage !== undefined) this.#metered.seeUsage(usage, true);
    if (answerField !== undefined && !((usage?.output ?? 0) > 0)) {
      this.#metered.seeText(textIn(answer[answerField]));
    }
    this.#pendingId = pendingIdOf?.(answer);
  }
}

/** Ends the lease unless a response is pending, whose id it returns. */
async function ended(
  metered: MeteredCall,
  pendingId: string | undefined,
): Promise<string | undefined> {
  if (pendingId === undefined) await metered.complete();
  // Without an id nothing can be learned about the response later.
  else if (pendingId === "") await metered.chargeMost();
  return pendingId || undefined;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
}
