import { hourOf, hourStartMs } from "@zae-limiter/limiter/buckets/embedded/usage-hour.ts";
import { expect, test } from "vitest";

test.each([
  [0, 0],
  [3_599_999, 0],
  [3_600_000, 1],
  [-1, -1],
])("%d ms after 1970 lie in the hour %d", (nowMs, hour) => {
  expect(hourOf(nowMs)).toBe(hour);
  expect(hourOf(hourStartMs(hour))).toBe(hour);
});
