/**
 * Finds `usage` at the end of an answer in JSON without parsing the rest, which may be long: an
 * answer with embeddings has thousands of numbers.
 */

import { bufferOf } from "../byte-text.ts";
import { type Fields, objectOf } from "../usage.ts";

/** Inside of a JSON string each quote has a backslash before it, so this is found outside only. */
const KEY = '"usage":';
/** Where it is looked for first, so that a long answer need not become a text. */
const TAIL_BYTES = 1024;

/** Returns an answer with nothing but its usage; `undefined` where it has to be parsed whole. */
export function fastUsage(lastChunk: Uint8Array): Fields | undefined {
  const text = textFromKey(bufferOf(lastChunk));
  if (text === undefined) return undefined;
  try {
    // Were it a member of something in the answer, there would be a bracket too many.
    const usage = objectOf((JSON.parse(`{${text}`) as Fields)["usage"]);
    return usage && { usage };
  } catch {
    return undefined;
  }
}

/** Returns what begins with the last key of that name. */
function textFromKey(chunk: Buffer): string | undefined {
  const tail = chunk.toString("latin1", Math.max(0, chunk.length - TAIL_BYTES));
  const tailAt = tail.lastIndexOf(KEY);
  if (tailAt !== -1) return tail.slice(tailAt);
  const at = chunk.length <= TAIL_BYTES ? -1 : chunk.lastIndexOf(KEY);
  return at === -1 ? undefined : chunk.toString("latin1", at);
}
