/** The part of a partition that a query asks for, as two ends. */

import type { Query } from "./item-store.ts";

export interface SortRange {
  readonly from?: string;
  readonly to?: string;
}

/** Sorts after anything that a key can hold in this place. */
const LAST_CHARACTER = "\u{10ffff}";
/** No key has a NUL, so a text with this behind it sorts directly after the text. */
const FIRST_CHARACTER = "\u0001";

/**
 * Returns the range of a query. A prefix becomes a range too, since one local DynamoDB ignores case
 * in `begins_with`. An empty text is not a key, and as a lower end it excludes nothing.
 */
export function rangeOf(sort: Query["sort"] = {}): SortRange {
  const { from = "", to } =
    "beginsWith" in sort
      ? { from: sort.beginsWith, to: withLast(sort.beginsWith) }
      : { from: sort.from, to: sort.to };
  return { ...(from !== "" && { from }), ...(to !== undefined && { to }) };
}

/** Ranges that DynamoDB would refuse as malformed, though their answer is clear: nothing. */
export function isEmpty({ from = "", to }: SortRange): boolean {
  return to !== undefined && (to === "" || compare(from, to) > 0);
}

/**
 * Returns where a sort key lies, seen in the direction of the query: DynamoDB can continue a query
 * only from inside of its range.
 */
export function placeOf(
  key: string,
  { from, to }: SortRange,
  descending: boolean,
): "before" | "inside" | "end" | "after" {
  const [first, last] = descending ? [to, from] : [from, to];
  const direction = descending ? -1 : 1;
  if (first !== undefined && compare(key, first) * direction < 0) return "before";
  if (last === undefined) return "inside";
  const beyond = compare(key, last) * direction;
  if (beyond === 0) return "end";
  return beyond > 0 ? "after" : "inside";
}

/** The sort keys from one text, included, to below another. */
export interface HalfOpenRange {
  readonly from: string | undefined;
  readonly before: string | undefined;
}

/** Returns the range of a query without its upper end; `undefined` where nothing can be in it. */
export function halfOpenRange(sort: Query["sort"] = {}): HalfOpenRange | undefined {
  const range =
    "beginsWith" in sort
      ? { from: sort.beginsWith, before: afterPrefix(sort.beginsWith) }
      : { from: sort.from, before: sort.to === undefined ? undefined : sort.to + FIRST_CHARACTER };
  if (range.before !== undefined && compare(range.from ?? "", range.before) >= 0) return undefined;
  return range;
}

/** Returns the least text above all that begin with the prefix; none when there is no such text. */
function afterPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) as number);
  while (points.length > 0) {
    const last = points.pop() as number;
    // Between U+D7FF and U+E000 there are only halves of characters, which are not text.
    const next = last === 0xd7ff ? 0xe000 : last + 1;
    if (next <= 0x10ffff) return String.fromCodePoint(...points, next);
  }
  return undefined;
}

function withLast(prefix: string): string | undefined {
  return prefix === "" ? undefined : prefix + LAST_CHARACTER;
}

/** Keys sort by their bytes in UTF-8, which is not how JavaScript compares texts. */
function compare(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
