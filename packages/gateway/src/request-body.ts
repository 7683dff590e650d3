/** Bodies of requests: how much of them a gateway holds, and what it reads of them. */

import type { IncomingMessage } from "node:http";
import { isPlainObject } from "@zae-limiter/limiter/domain/check.ts";
import type { Fields } from "@zae-limiter/limiter/llm/usage.ts";
import { Refused } from "./answers.ts";

/** Bodies of one key that this process reads at a time. */
const BODIES_PER_KEY = 64;
/** Bytes of one key that this process holds at a time, in bodies of the largest size. */
const LARGEST_PER_KEY = 8;
/** Bytes of all keys together, in bodies of the largest size. */
const LARGEST_IN_ALL = 64;

/** Deepest nesting of a body, and most keys, objects and lists: far more than calls have. */
const DEPTH_MAX = 128;
const KEYS_MAX = 50_000;
/** Most values of a body: an embedding may have a list of 300,000 numbers. */
const VALUES_MAX = 500_000;

const TOO_LARGE =
  `The body nests deeper than ${DEPTH_MAX} levels, or has more than ${KEYS_MAX} keys, objects or ` +
  `lists, or more than ${VALUES_MAX} values.`;
const UNREAD = "The body must be a JSON object in UTF-8, not compressed.";
const SAYS_JSON = /^application\/json\b/i;

/** Says that a body is not read as JSON; it may be something else. */
class NoJson extends Refused {
  constructor(message: string) {
    super(400, "invalid_request_error", message);
  }
}

/** A body in memory. */
export interface OpenBody {
  /** The bytes that the client sent, then those that are sent on; empty once released. */
  bytes: Buffer;
  /** Forgets the bytes, which are not needed once an answer begins. */
  release(): void;
}

export const NO_BYTES: Buffer = Buffer.alloc(0);

interface Held {
  count: number;
  bytes: number;
}

/** Reads bodies, within bounds for each key and for the process. */
export class RequestBodies {
  readonly #bytesMax: number;
  readonly #byKey = new Map<string, Held>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Reads a body; refuses it before a byte is read where the key holds too many already. */
  async read(request: IncomingMessage, keyId: string): Promise<OpenBody> {
    const length = request.headers["content-length"];
    const announced = length === undefined ? undefined : Number(length);
    if (announced !== undefined && announced > this.#bytesMax) throw this.#tooLong();
    const isChunked = request.headers["transfer-encoding"] !== undefined;
    const held = this.#hold(keyId, announced ?? (isChunked ? this.#bytesMax : 0));
    try {
      const bytes = await this.#bytesOf(request);
      held.shrink(bytes.length);
      const body = {
        bytes,
        release: () => {
          body.bytes = NO_BYTES;
          held.shrink(0);
        },
      };
      return body;
    } catch (error) {
      held.shrink(0);
      throw error;
    }
  }

  /** Counts a body with the bytes that it may have, until it is read and its length is known. */
  #hold(keyId: string, bytes: number): { shrink(to: number): void } {
    const held = this.#byKey.get(keyId) ?? { count: 0, bytes: 0 };
    const isTooMuch =
      held.count >= BODIES_PER_KEY || held.bytes + bytes > LARGEST_PER_KEY * this.#bytesMax;
    const retry = { "retry-after": "1" };
    if (isTooMuch) {
      const message = "This key has too many requests open whose bodies wait. Try again later.";
      throw new Refused(429, "too_many_open_bodies", message, retry);
    }
    if (this.#bytes + bytes > LARGEST_IN_ALL * this.#bytesMax) {
      const message = "The gateway holds too many bodies at the moment. Try again later.";
      throw new Refused(503, "server_error", message, retry);
    }
    held.count += 1;
    held.bytes += bytes;
    this.#bytes += bytes;
    this.#byKey.set(keyId, held);
    let isRead = false;
    let left = bytes;
    return {
      shrink: (to) => {
        // A body that has been read waits for nothing but the provider.
        if (!isRead) held.count -= 1;
        isRead = true;
        held.bytes -= left - to;
        this.#bytes -= left - to;
        left = to;
        if (held.count === 0 && held.bytes === 0) this.#byKey.delete(keyId);
      },
    };
  }

  async #bytesOf(request: IncomingMessage): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    await new Promise<void>((resolve, reject) => {
      request.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= this.#bytesMax) return void chunks.push(chunk);
        request.pause();
        reject(this.#tooLong());
      });
      let isRead = false;
      request.on("end", () => {
        isRead = true;
        resolve();
      });
      request.on("error", reject);
      const leave = () => {
        if (!isRead) reject(new Error("The client has hung up"));
      };
      request.on("close", leave);
      if (request.destroyed) leave();
    });
    // The request keeps its listeners, which must not keep the body.
    return Buffer.concat(chunks.splice(0));
  }

  #tooLong(): Refused {
    const message = `The body has more than ${this.#bytesMax} bytes.`;
    return new Refused(413, "request_too_large", message, { connection: "close" });
  }
}

/** A refused request may leave this much of its body to be read, so that its connection lives. */
const UNREAD_BYTES_MAX = 64 * 1024;

/** Whether the unread rest of a body may be so long that its connection is better closed. */
export function hasUnreadBody({ headers, complete }: IncomingMessage): boolean {
  if (complete) return false;
  if (headers["transfer-encoding"] !== undefined) return true;
  return Number(headers["content-length"] ?? 0) > UNREAD_BYTES_MAX;
}

/** Fields that the gateway reads: a server that ignores case must not read another one. */
const READ_FIELDS: ReadonlyMap<string, string> = new Map(
  [
    ...["model", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens"],
    ...["max_output_tokens", "background", "messages", "prompt", "input", "system", "tools"],
  ].map((name) => [folded(name), name]),
);

/** Returns the fields of a body; throws where they could mean something else to a server. */
export function readFields(body: Buffer): Fields {
  checkShape(body);
  const fields = parsed(body);
  const seen = new Set<string>();
  for (const key of Object.keys(fields)) {
    const fold = folded(key);
    if (seen.has(fold) || (READ_FIELDS.get(fold) ?? key) !== key) {
      const name = JSON.stringify(key.slice(0, 100));
      const message = `The field ${name} of the body differs from another one only by case.`;
      throw new Refused(400, "invalid_request_error", message);
    }
    seen.add(fold);
  }
  checkTypes(fields);
  return fields;
}

/** The types of fields that some servers convert where they have another one. */
const FIELD_TYPES = {
  model: "string",
  stream: "boolean",
  background: "boolean",
  n: "number",
  max_tokens: "number",
  max_completion_tokens: "number",
  max_output_tokens: "number",
} as const;

function checkTypes(fields: Fields): void {
  for (const [name, type] of Object.entries(FIELD_TYPES)) {
    const value = fields[name];
    if (value === undefined || value === null || typeof value === type) continue;
    const message = `The field "${name}" of the body must be a ${type}.`;
    throw new Refused(400, "invalid_request_error", message);
  }
}

/** Returns the fields of a body that is an object, or says so; `undefined` for any other body. */
export function readFieldsIfAny(body: Buffer, contentType = ""): Fields | undefined {
  try {
    return readFields(body);
  } catch (error) {
    const saysObject = SAYS_JSON.test(contentType) && firstByte(body) === OPENING_BRACE;
    if (error instanceof NoJson && !saysObject) return undefined;
    throw error;
  }
}

/** Returns the first byte that is no white space; `undefined`: there is none. */
function firstByte(body: Buffer): number | undefined {
  return body.find((byte) => byte > SPACE);
}

/** Maps keys that some JSON reader takes for the same to one text: Go ignores case. */
function folded(key: string): string {
  return key.toLowerCase().toUpperCase();
}

const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function parsed(body: Buffer): Fields {
  let fields: unknown;
  try {
    fields = JSON.parse(UTF_8.decode(body));
  } catch {
    throw new NoJson(UNREAD);
  }
  if (!isPlainObject(fields)) throw new NoJson(UNREAD);
  return fields;
}

const [QUOTE, BACKSLASH, COLON, COMMA, SPACE] = [0x22, 0x5c, 0x3a, 0x2c, 0x20];
const [OPENING_BRACE, CLOSING_BRACE, OPENING_BRACKET, CLOSING_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d];

/** Refuses a body that would hold the process while it is parsed; one pass over its bytes. */
function checkShape(body: Buffer): void {
  let [depth, parents, keys, values] = [0, 0, 0, 0];
  for (let at = 0; at < body.length; at += 1) {
    switch (body[at]) {
      case QUOTE:
        at = endOfText(body, at);
        break;
      case COLON:
        keys += 1;
        break;
      case COMMA:
        values += 1;
        break;
      case OPENING_BRACE:
      case OPENING_BRACKET:
        depth += 1;
        parents += 1;
        break;
      case CLOSING_BRACE:
      case CLOSING_BRACKET:
        depth -= 1;
    }
    const isLarge = Math.max(keys, parents) > KEYS_MAX || values > VALUES_MAX;
    if (isLarge || depth > DEPTH_MAX) throw new NoJson(TOO_LARGE);
  }
}

/** Returns where the text that begins at a quote ends. */
function endOfText(body: Buffer, from: number): number {
  let at = body.indexOf(QUOTE, from + 1);
  while (at !== -1 && isEscaped(body, at, from)) at = body.indexOf(QUOTE, at + 1);
  return at === -1 ? body.length : at;
}

/** Whether an odd number of backslashes precedes a quote. */
function isEscaped(body: Buffer, quoteAt: number, from: number): boolean {
  let at = quoteAt - 1;
  while (at > from && body[at] === BACKSLASH) at -= 1;
  return (quoteAt - 1 - at) % 2 === 1;
}
