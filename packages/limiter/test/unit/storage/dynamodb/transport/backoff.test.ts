/** How long a call waits before it is repeated. */

import { backoffMs } from "@zae-limiter/limiter/storage/dynamodb/transport/backoff.ts";
import { expect, test } from "vitest";

test.each<[string, number, number, number]>([
  ["20 ms at first", 0, 2000, 20],
  ["twice as long after each attempt", 3, 2000, 160],
  ["half a second", 30, 60_000, 500],
  ["a quarter of the time that is left", 30, 1000, 250],
  ["a millisecond where no time is left", 30, 0, 1],
])("the longest pause is %s", (_, attempt, leftMs, most) => {
  expect(backoffMs(attempt, () => 1, leftMs)).toBe(most);
});

test("the shortest pause is a millisecond", () => {
  expect(backoffMs(5, () => 0, 2000)).toBe(1);
});
