/** Names of models: which are possible, and which entries of a list match them. */

import { checkResource } from "@zae-limiter/limiter/domain/names.ts";

/** An entry that ends with one of these is the beginning of names; `*` is not part of it. */
const ENDS_OF_BEGINNINGS = ["-", "/", ":", ".", "*"];

/** Returns the beginning that an entry describes; `undefined` for an entry that is a name. */
export function beginningOf(entry: string): string | undefined {
  if (!ENDS_OF_BEGINNINGS.some((end) => entry.endsWith(end))) return undefined;
  return entry.endsWith("*") ? entry.slice(0, -1) : entry;
}

/** Returns the entry that is the name, else the longest beginning of it; `undefined`: none. */
export function entryFor(entries: Iterable<string>, name: string): string | undefined {
  let best: string | undefined;
  let bestLength = -1;
  for (const entry of entries) {
    if (entry === name) return entry;
    const beginning = beginningOf(entry);
    if (beginning === undefined || beginning.length <= bestLength) continue;
    if (!name.startsWith(beginning)) continue;
    best = entry;
    bestLength = beginning.length;
  }
  return best;
}

/**
 * Returns the length of the longest entry that a name begins with, for routing; -1 for none. Here
 * names are beginnings, too: `o3` also routes `o3-mini`, which does not make that name known.
 */
export function routedLength(entries: readonly string[], name: string): number {
  let length = -1;
  for (const entry of entries) {
    const beginning = beginningOf(entry) ?? entry;
    if (beginning.length > length && name.startsWith(beginning)) length = beginning.length;
  }
  return length;
}

/** Returns why no model can have a name; `undefined` when a model can. */
export function modelNameProblem(name: string): string | undefined {
  try {
    checkResource(name);
  } catch (error) {
    return (error as Error).message;
  }
  // Cloudflare and others have scopes, as in `@cf/meta/llama-3`; a name without one is ours.
  if (!name.startsWith("@") || name.includes("/")) return undefined;
  return `"${name}" is reserved: names that begin with "@" are resources of the limiter`;
}
