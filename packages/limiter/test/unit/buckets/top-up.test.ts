import { splitByRoom } from "@zae-limiter/limiter/buckets/top-up.ts";
import { expect, test } from "vitest";

test.each<[number, number[], number[]]>([
  [100, [50, 50], [50, 50]],
  [50, [50, 50], [25, 25]],
  [10, [30, 10], [8, 2]],
  [1, [30, 10], [1, 0]],
  [5, [1, 1, 8], [1, 0, 4]],
  [7, [-20, 10], [0, 7]],
  [1000, [30, 10], [30, 10]],
  [Number.POSITIVE_INFINITY, [30, -5, 10], [30, 0, 10]],
  [0, [30, 10], [0, 0]],
  [5, [0, 0], [0, 0]],
])("%d milli-tokens over shards with room for %j are split into %j", (addition, rooms, parts) => {
  expect(splitByRoom(addition, rooms)).toEqual(parts);
});
