import { failureOf } from "@zae-limiter/cli/frame/failure.ts";
import { growthOf, LINEAR_MAX } from "@zae-limiter/test-support/growth.ts";
import { expect, test } from "vitest";

test("a message of several lines becomes one line", () => {
  expect(failureOf(new Error("\n first \r\n\n\t second\n")).line).toBe(
    "first second (unexpected; --debug shows where it comes from)",
  );
});

test("a message with many spaces becomes a line in linear time", () => {
  const read = (size: number) => void failureOf(new Error(`${" ".repeat(size)}x`));
  expect(growthOf(read, 2000)).toBeLessThan(LINEAR_MAX);
});
