/**
 * The position of a reader of the feed: for each shard that is being read, the last change seen.
 * Only these shards are written down. Their ancestors were read, and their descendants are still to
 * come.
 */

import { ValidationError } from "../../domain/errors/errors.ts";

/** Mark to begin from in a shard. */
export type Mark =
  | { readonly from: "horizon" }
  /** Everything that came at or after this time: for a reader that has seen nothing yet. */
  | { readonly from: "time"; readonly sinceMs: number }
  | { readonly from: "sequence"; readonly after: string };

type Front = ReadonlyMap<string, Mark>;

/** Returns the text a change record carries. */
export function formatPosition(front: Front): string {
  return JSON.stringify(
    Object.fromEntries([...front].map(([shard, mark]) => [shard, formatMark(mark)])),
  );
}

/** Reads a text that `formatPosition` has written. */
export function parsePosition(text: string): Map<string, Mark> {
  const marks = Object.entries(parseObject(text));
  return new Map(marks.map(([shard, mark]) => [shard, parseMark(mark, text)]));
}

function formatMark(mark: Mark): string {
  if (mark.from === "sequence") return mark.after;
  return mark.from === "time" ? `@${mark.sinceMs}` : "";
}

function parseMark(mark: unknown, text: string): Mark {
  const [, at, digits] = /^(@?)([0-9]*)$/.exec(String(mark)) ?? [];
  if (at === undefined || digits === undefined) throw malformed(text);
  if (at === "@") return { from: "time", sinceMs: Number(digits) };
  return digits === "" ? { from: "horizon" } : { from: "sequence", after: digits };
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch {
    // Reported below, like any other text that is not a position.
  }
  throw malformed(text);
}

function malformed(text: string): ValidationError {
  return new ValidationError("position", text, "expected the position of a change record");
}
