/** The part of a partition that a query asks for, as two inclusive ends. */

import type { Query } from "./item-store.ts";

export interface SortRange {
  readonly from?: string;
  readonly to?: string;
}

/** Sorts after anything that a key can hold in this place. */
const LAST_CHARACTER = "\u{10ffff}";

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

function withLast(prefix: string): string | undefined {
  return prefix === "" ? undefined : prefix + LAST_CHARACTER;
}

/** Keys sort by their bytes in UTF-8, which is not how JavaScript compares texts. */
function compare(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
