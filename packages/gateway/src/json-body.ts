/** Reads the JSON of a body, within bounds, and writes it again for the upstream. */

import { randomToken, systemRandom } from "@zae-limiter/limiter/base/random.ts";
import { isPlainObject } from "@zae-limiter/limiter/domain/check.ts";
import { messages } from "@zae-limiter/limiter/llm/formats/anthropic.ts";
import type { Format } from "@zae-limiter/limiter/llm/formats/format.ts";
import {
  chat,
  completions,
  embeddings,
  responses,
} from "@zae-limiter/limiter/llm/formats/openai.ts";
import type { Fields } from "@zae-limiter/limiter/llm/usage.ts";
import { Refused } from "./answers.ts";

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

const FORMATS: readonly Format[] = [chat, completions, responses, embeddings, messages];

/** Fields that the gateway reads: a server that ignores case must not read another one. */
const READ_FIELDS: ReadonlyMap<string, string> = new Map(
  [
    ...["model", "stream", "stream_options", "background"],
    ...FORMATS.flatMap(({ promptFields, maxFields }) => [...promptFields, ...maxFields]),
    ...FORMATS.flatMap(({ choicesFields = [], storedFields = [] }) => [
      ...choicesFields,
      ...storedFields,
    ]),
  ].map((name) => [folded(name), name]),
);

/** Returns the fields of a body; throws where they could mean something else to a server. */
export function readFields(body: Buffer): Fields {
  const fields = parsed(withMarks(body, checkShape(body)));
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

/** Returns the JSON of fields, with the numbers of the body that they were read from. */
export function textOf(fields: Fields): string {
  const text = JSON.stringify(fields);
  if (!text.includes(MARK)) return text;
  const [first, ...rest] = text.split(`"${MARK}`);
  // Each of the others begins with a number, and the quote that ended it as a text.
  return [first, ...rest.map((part) => part.replace('"', ""))].join("");
}

/** The types of fields that some servers convert where they have another one. */
const FIELD_TYPES = [
  ["model", "string"],
  ["stream", "boolean"],
  ["background", "boolean"],
  ["n", "number"],
  ["best_of", "number"],
  ["max_tokens", "number"],
  ["max_completion_tokens", "number"],
  ["max_output_tokens", "number"],
] as const;

function checkTypes(fields: Fields): void {
  for (const [name, type] of FIELD_TYPES) {
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

/** The bytes of a body that are one number. */
type Place = readonly [from: number, to: number];

/**
 * Refuses a body that would hold the process while it is parsed; one pass over its bytes. Returns
 * the places of numbers that JavaScript would write differently.
 */
function checkShape(body: Buffer): Place[] {
  const inexact: Place[] = [];
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
        break;
      default: {
        const end = endOfNumber(body, at);
        if (end - at >= INEXACT_LENGTH && isInexact(body, at, end)) inexact.push([at, end]);
        at = Math.max(at, end - 1);
      }
    }
    const isLarge = Math.max(keys, parents) > KEYS_MAX || values > VALUES_MAX;
    if (isLarge || depth > DEPTH_MAX) throw new NoJson(TOO_LARGE);
  }
  return inexact;
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

/** The length of the shortest number that JavaScript may write differently, such as `1e400`. */
const INEXACT_LENGTH = 5;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i;
const LONG = /\d{16}|e/i;

/** Returns where the number that begins at a byte ends; the same byte where none begins. */
function endOfNumber(body: Buffer, from: number): number {
  let at = from;
  while (isInNumber(body[at])) at += 1;
  return at;
}

/** Whether a byte is a digit, or another one that a number can have. */
function isInNumber(byte = 0): boolean {
  if (byte >= 0x30 && byte <= 0x39) return true;
  return byte === 0x2d || byte === 0x2e || byte === 0x2b || byte === 0x65 || byte === 0x45;
}

/** Whether a value is a number with more digits than JavaScript keeps, or a larger one. */
function isInexact(body: Buffer, from: number, to: number): boolean {
  const text = body.toString("latin1", from, to);
  if (!LONG.test(text) || !NUMBER.test(text) || String(Number(text)) === text) return false;
  let next = to;
  while ((body[next] ?? COLON) <= SPACE) next += 1;
  return body[next] !== COLON;
}

/** Marks texts that are numbers; no client can know it. */
const MARK = `number-${randomToken(systemRandom, 9)}:`;

/** Returns a body whose numbers at some places are texts with the mark. */
function withMarks(body: Buffer, places: readonly Place[]): Buffer {
  if (places.length === 0) return body;
  const parts: Buffer[] = [];
  let done = 0;
  for (const [from, to] of places) {
    parts.push(body.subarray(done, from), Buffer.from(`"${MARK}`), body.subarray(from, to));
    parts.push(Buffer.from('"'));
    done = to;
  }
  return Buffer.concat([...parts, body.subarray(done)]);
}
