import { parseThreshold } from "@zae-limiter/loadtest/threshold.ts";
import { growthOf, LINEAR_MAX } from "@zae-limiter/test-support/growth.ts";
import { expect, test } from "vitest";

test("spaces around the parts of a threshold do not matter", () => {
  expect(parseThreshold("  p99  >  50  ms ").text).toBe("p99  >  50  ms");
  expect(() => parseThreshold("p99 > 50 m s")).toThrow("expected a condition like");
});

test("a threshold with many spaces is refused in linear time", () => {
  const read = (size: number) => {
    expect(() => parseThreshold(`p99>1${" ".repeat(size)}x`)).toThrow("expected a condition");
  };
  expect(growthOf(read, 2000)).toBeLessThan(LINEAR_MAX);
});
