/**
 * Finds `usage` at the end of an answer in JSON without parsing the rest, which may be long: an
 * answer with embeddings has thousands of numbers.
 */

import type { Fields } from "../usage.ts";

const KEY = '"usage":';
/** An object whose members are plain values, or objects of plain values. */
const OBJECT = /^\s*(\{(?:[^{}[\]"]|"[^"\\]*"|\{(?:[^{}[\]"]|"[^"\\]*")*\})*\})/;
/**
 * What may follow it: members that hold no other object, then the end of the answer. So `usage` is
 * a member of the answer itself, and not of something in it.
 */
const END = /^(?:\s*,\s*"[^"\\]*"\s*:\s*(?:[\w.+-]+|"[^"\\]*"|\{\s*\}|\[\s*\]))*\s*\}\s*$/;

/** Returns an answer with nothing but its usage; `undefined` where it has to be parsed whole. */
export function fastUsage(lastChunk: Uint8Array): Fields | undefined {
  const chunk = Buffer.from(lastChunk.buffer, lastChunk.byteOffset, lastChunk.byteLength);
  const at = chunk.lastIndexOf(KEY);
  if (at === -1) return undefined;
  const text = chunk.toString("latin1", at + KEY.length);
  const usage = OBJECT.exec(text)?.[0];
  if (usage === undefined || !END.test(text.slice(usage.length))) return undefined;
  try {
    return { usage: JSON.parse(usage) as unknown };
  } catch {
    return undefined;
  }
}
