import {
  isoSeconds,
  WINDOW_TYPES,
  windowEndMs,
  windowStartMs,
} from "@zae-limiter/limiter/core/windows.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const moment = fc.integer({ min: 0, max: Date.UTC(2200, 0, 1) });
const type = fc.constantFrom(...WINDOW_TYPES);

describe("windows", () => {
  test.each([
    ["hourly", "2024-02-29T23:59:59.999Z", "2024-02-29T23:00:00Z", "2024-03-01T00:00:00Z"],
    ["daily", "2024-02-29T23:59:59.999Z", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"],
    ["monthly", "2024-02-29T23:59:59.999Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"],
    ["hourly", "2025-12-31T23:00:00.000Z", "2025-12-31T23:00:00Z", "2026-01-01T00:00:00Z"],
    ["monthly", "2025-12-31T23:00:00.000Z", "2025-12-01T00:00:00Z", "2026-01-01T00:00:00Z"],
  ] as const)("the %s window of %s is %s to %s", (window, at, start, end) => {
    expect(isoSeconds(windowStartMs(window, Date.parse(at)))).toBe(start);
    expect(isoSeconds(windowEndMs(window, Date.parse(at)))).toBe(end);
  });

  property("a window holds its moment and borders on the next", [type, moment], (window, ms) => {
    const start = windowStartMs(window, ms);
    const end = windowEndMs(window, ms);
    expect(start).toBeLessThanOrEqual(ms);
    expect(end).toBeGreaterThan(ms);
    expect(windowStartMs(window, start)).toBe(start);
    expect(windowStartMs(window, end - 1)).toBe(start);
    expect(windowStartMs(window, end)).toBe(end);
  });

  property("hours and days have a fixed length, months 28 to 31 days", [moment], (ms) => {
    expect(windowEndMs("hourly", ms) - windowStartMs("hourly", ms)).toBe(HOUR_MS);
    expect(windowEndMs("daily", ms) - windowStartMs("daily", ms)).toBe(DAY_MS);
    const days = (windowEndMs("monthly", ms) - windowStartMs("monthly", ms)) / DAY_MS;
    expect([28, 29, 30, 31]).toContain(days);
  });

  property("times are written in UTC with whole seconds and read back", [moment], (ms) => {
    const text = isoSeconds(ms);
    expect(text).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/);
    expect(Date.parse(text)).toBe(ms - (ms % 1000));
  });
});
