import { expect, test } from "vitest";
import { askedAt, isFullNow } from "../../../../src/buckets/distributed/overtaking.ts";
import { NOW, requestOf, shardOf } from "./known.ts";

test.each([
  ["the time of the request", 5, 0, 10, 5],
  ["the base time, where it is later", 5, 8, 10, 8],
  ["now at the latest", 5, 20, 10, 10],
])("a failed write is judged by %s", (_, askedMs, baseMs, nowMs, expected) => {
  const bucket = { ...shardOf(1), refilledAtMs: baseMs };
  expect(askedAt(askedMs, bucket, nowMs)).toBe(expected);
});

test("a bucket that had too little is full a day later, and not at once", () => {
  const at = (nowMs: number) => isFullNow(requestOf(1), shardOf(0), { nowMs, ttlMultiplier: 7 });
  expect(at(NOW)).toBe(false);
  expect(at(NOW + 2 * 86_400_000)).toBe(true);
});
