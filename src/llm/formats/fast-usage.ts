/**
 * Finds `usage` at the end of an answer in JSON without parsing the rest, which may be long: an
 * answer with embeddings has thousands of numbers.
 */

import { bufferOf } from "../byte-text.ts";
import type { Fields } from "../usage.ts";

const KEY = '"usage":';
/** Where it is looked for first, so that a long answer need not become a text. */
const TAIL_BYTES = 1024;
/**
 * An object whose members are plain values, or objects of plain values. Then members of the answer
 * that hold no other object, and the end of the answer. So `usage` is a member of the answer
 * itself, and not of something in it.
 */
const OBJECT = /\{(?:[^{}[\]"]|"[^"\\]*"|\{(?:[^{}[\]"]|"[^"\\]*")*\})*\}/;
const MEMBER = /\s*,\s*"[^"\\]*"\s*:\s*(?:[\w.+-]+|"[^"\\]*"|\{\s*\}|\[\s*\])/;
const USAGE_AND_END = new RegExp(`^\\s*(${OBJECT.source})(?:${MEMBER.source})*\\s*\\}\\s*$`);

/** Returns an answer with nothing but its usage; `undefined` where it has to be parsed whole. */
export function fastUsage(lastChunk: Uint8Array): Fields | undefined {
  const text = textFromKey(bufferOf(lastChunk));
  const usage = text === undefined ? undefined : USAGE_AND_END.exec(text)?.[1];
  if (usage === undefined) return undefined;
  try {
    return { usage: JSON.parse(usage) as unknown };
  } catch {
    return undefined;
  }
}

/** Returns what follows the last key of that name. */
function textFromKey(chunk: Buffer): string | undefined {
  const tail = chunk.toString("latin1", Math.max(0, chunk.length - TAIL_BYTES));
  const tailAt = tail.lastIndexOf(KEY);
  if (tailAt !== -1) return tail.slice(tailAt + KEY.length);
  const at = chunk.length <= TAIL_BYTES ? -1 : chunk.lastIndexOf(KEY);
  return at === -1 ? undefined : chunk.toString("latin1", at + KEY.length);
}
