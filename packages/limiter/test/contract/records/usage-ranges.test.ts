import { rangesAfter, usageRanges } from "@zae-limiter/limiter/records/usage/usage-ranges.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { expect, test } from "vitest";

const START = "2026-11-15T10:00:00Z";
const END = "2026-11-15T12:00:00Z";
const scope = { partition: "n/ENTITY#e" };

test("a window and a time are a range of keys, and old keys are one of their own", () => {
  const times = { window: "hourly", start: START, end: END } as const;
  expect(usageRanges(scope, "#USAGE#r#", times)).toEqual([
    {
      ...scope,
      sort: { from: `#USAGE#r#hourly#${START}`, to: `#USAGE#r#hourly#${END}~` },
      descending: true,
    },
    { ...scope, sort: { from: `#USAGE#r#${START}`, to: `#USAGE#r#${END}~` }, descending: true },
  ]);
});

test("a time alone is a range for every window, in the order of the keys", () => {
  const ranges = usageRanges(scope, "P#", { window: undefined, start: START, end: undefined });
  const bounds = ranges.map(({ sort }) => sort as { from: string; to: string });
  expect(bounds.map(({ from }) => from)).toEqual([
    `P#monthly#${START}`,
    `P#hourly#${START}`,
    `P#daily#${START}`,
    `P#${START}`,
  ]);
  for (const { from, to } of bounds) expect(from < to).toBe(true);
  const ends = bounds.flatMap(({ from, to }) => [to, from]);
  expect(ends.toSorted().toReversed()).toEqual(ends);
});

test("a query without bounds is one range; a time span that ends before it begins has none", () => {
  expect(usageRanges(scope, "P#", undefined)).toEqual([
    { ...scope, sort: { beginsWith: "P#" }, descending: true },
  ]);
  expect(usageRanges(scope, "P#", { window: "daily", start: END, end: START })).toEqual([]);
});

test("after an item, the ranges above it are done and those below it are whole", () => {
  const times = { window: undefined, start: START, end: END };
  const ranges = usageRanges(scope, "P#", times);
  const last: Item = { PK: "n/ENTITY#e", SK: `P#hourly#${END}` };
  const left = rangesAfter(ranges, last);
  expect(left).toEqual([{ ...ranges[1], after: last }, ranges[2], ranges[3]]);
});
