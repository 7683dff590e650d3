import { hourOf, hourStartMs } from "@zae-limiter/limiter/buckets/embedded/usage-hour.ts";
import { expect, test } from "vitest";

test("an hour holds its first millisecond, and not the first one of the next hour", () => {
  const startMs = Date.parse("2026-11-18T06:00:00Z");
  const hour = hourOf(startMs);
  expect(hourStartMs(hour)).toBe(startMs);
  expect(hourOf(startMs + 3_599_999)).toBe(hour);
  expect(hourOf(startMs + 3_600_000)).toBe(hour + 1);
});
