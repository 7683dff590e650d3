/**
 * Which parts of a partition hold the snapshots that are asked for.
 *
 * Keys are `…{window}#{start}…`, so a window and a time are a range of keys. The Python library
 * has no window in its keys; its snapshots are a range of their own, below all others. Ranges are
 * in descending order: read one after the other they are in the order of the keys.
 */

import { WINDOW_TYPES, type WindowType } from "../../core/windows.ts";
import { type Item, textAt } from "../../storage/item.ts";
import type { Query } from "../../storage/item-store.ts";
import { indexNamed } from "../../storage/table.ts";

/** Sorts after everything that names and times are made of. */
const HIGHEST = "~";
const DIGITS = { lowest: "0", highest: "9" };

interface UsageTimes {
  readonly window: WindowType | undefined;
  /** As stored window starts are written. */
  readonly start: string | undefined;
  readonly end: string | undefined;
}

/** Returns the queries that find everything that matches, and as little else as the keys allow. */
export function usageRanges(
  scope: Omit<Query, "sort" | "descending">,
  prefix: string,
  times: UsageTimes | undefined,
): Query[] {
  if (times === undefined || Object.values(times).every((value) => value === undefined)) {
    return [{ ...scope, sort: { beginsWith: prefix }, descending: true }];
  }
  const { window, start = "", end = "" } = times;
  const types = WINDOW_TYPES.filter((type) => window === undefined || type === window);
  const ours = types.toSorted().toReversed();
  const sorts = ours.map((type) => ({
    from: `${prefix}${type}#${start}`,
    to: `${prefix}${type}#${end}${HIGHEST}`,
  }));
  sorts.push({
    from: `${prefix}${start || DIGITS.lowest}`,
    to: `${prefix}${end || DIGITS.highest}${HIGHEST}`,
  });
  // Stores refuse a range that ends before it begins.
  const possible = sorts.filter(({ from, to }) => from <= to);
  return possible.map((sort) => ({ ...scope, sort, descending: true }));
}

/** Returns the rest of the ranges after an item that was returned. */
export function rangesAfter(ranges: readonly Query[], last: Item): Query[] {
  return ranges.flatMap((range) => {
    const { sort = {} } = range;
    const at = textAt(last, range.index === undefined ? "SK" : indexNamed(range.index).sort) ?? "";
    if ("beginsWith" in sort) return [{ ...range, after: last }];
    if (at < (sort.from ?? "")) return [];
    return [at > (sort.to ?? "") ? range : { ...range, after: last }];
  });
}
