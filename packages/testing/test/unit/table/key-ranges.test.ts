/** How many new items one partition key of an index takes, before and after it is cut by heat. */

import { DYNAMODB_THROUGHPUT, KeyRanges } from "@zae-limiter/testing/table/key-ranges.ts";
import { expect, test } from "vitest";

/** Offers items with different sort keys, and returns how many per second each minute took. */
function takenPerSecond(offeredPerSecond: number, minutes: number): number[] {
  const ranges = new KeyRanges(DYNAMODB_THROUGHPUT.indexWriteUnitsPerSecond, DYNAMODB_THROUGHPUT);
  return Array.from({ length: minutes }, (_, minute) => {
    let taken = 0;
    for (let item = 0; item < offeredPerSecond * 60; item += 1) {
      const nowMs = minute * 60_000 + (item * 1000) / offeredPerSecond;
      const sort = `BUCKET#user-${minute}-${item}#api#0`;
      if (!ranges.allows("namespace", sort, nowMs)) continue;
      ranges.use("namespace", sort, 1, nowMs);
      taken += 1;
    }
    return Math.round(taken / 60);
  });
}

test("1,000 new buckets a second are the limit of a namespace only until its index is cut", () => {
  const [first = 0, second = 0, third = 0, fourth = 0] = takenPerSecond(3500, 4);
  // A second's worth is saved up, and the cut comes after a minute of heat.
  expect(first).toBeGreaterThanOrEqual(1000);
  expect(first).toBeLessThan(1100);
  expect(second).toBeGreaterThan(1900);
  expect(second).toBeLessThan(2100);
  expect(third).toBeGreaterThan(3300);
  expect(fourth).toBe(3500);
});
