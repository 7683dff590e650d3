import { PeriodBook } from "@zae-limiter/limiter/buckets/embedded/period-book.ts";
import { decodePeriod } from "@zae-limiter/limiter/records/usage/period-item.ts";
import { OTHER_ENTITIES } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { expect, test } from "vitest";
import { snapshotItems } from "./snapshot-items.ts";

const NOON = Date.parse("2026-11-18T12:00:00Z");
const MIDNIGHT = NOON + 12 * 3_600_000;

function bookOf(maxEntities: number) {
  const { stored, items } = snapshotItems();
  const book = new PeriodBook(items, { retentionDays: 30, maxEntities });
  const close = (entityId: string, used: number, endMs: number) => {
    const amounts = { allowance: 9000, carried: 0, granted: 9000, used: used * 1000, late: 0 };
    const times = { kind: "session", startMs: endMs - 1000, endMs } as const;
    book.add(
      { namespaceId: "ns", entityId, resource: "r" },
      { limitName: "a", ...times, ...amounts },
    );
  };
  const statements = () =>
    [...stored.values()].map(decodePeriod).map((period) => [period?.entityId, period?.used]);
  return { book, close, statements };
}

test("statements beyond the bound of a day are summed, and the next day begins again", () => {
  const { close, statements } = bookOf(2);
  close("one", 1, NOON);
  close("one", 2, NOON + 1);
  close("one", 3, NOON + 2);
  close("two", 4, NOON + 3);
  expect(statements()).toEqual([
    ["one", 1],
    ["one", 2],
    [OTHER_ENTITIES, 7],
  ]);
  close("two", 5, MIDNIGHT);
  close("two", 6, MIDNIGHT + 1);
  expect(statements()).toEqual([
    ["one", 1],
    ["one", 2],
    [OTHER_ENTITIES, 12],
    ["two", 6],
  ]);
});

test("statements of a run that did not count are not counted toward the bound", () => {
  const { book, close, statements } = bookOf(3);
  close("one", 1, NOON);
  book.keep();
  for (let run = 1; run <= 3; run += 1) {
    book.begin();
    close("two", run, NOON);
  }
  book.keep();
  close("three", 4, NOON);
  expect(statements()).toEqual([
    ["one", 1],
    ["two", 3],
    ["three", 4],
  ]);
});
