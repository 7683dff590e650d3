/** How long groups wait, and how many writes of a bucket are under way. */

import {
  FULL_PACE,
  goesNow,
  paceAfter,
  pauseMs,
  throttledPauseMs,
} from "@zae-limiter/limiter/buckets/gathering.ts";
import { describe, expect, test } from "vitest";

describe("a group that was overtaken", () => {
  test.each([
    [0, 0],
    [4, 0],
    [5, 1],
    [6, 2],
    [9, 16],
    [40, 16],
  ])("a group that was overtaken %i times waits %i ms on average", (rounds, ms) => {
    expect(pauseMs(rounds, () => 0.5)).toBe(ms);
  });
});

describe("the pace of a bucket", () => {
  test.each([
    ["stays while nothing is throttled", ["consumed"], 2, 2],
    ["halves the writes under way first", ["throttled"], 1, 2],
    ["doubles the pause when one write is left", ["throttled", "throttled"], 1, 4],
    ["recovers with the first write", ["throttled", "throttled", "consumed"], 2, 2],
    ["is bounded", Array.from({ length: 20 }, () => "throttled" as const), 1, 250],
  ] as const)("the pace of a bucket %s", (_, outcomes, width, average) => {
    let pace = FULL_PACE;
    for (const outcome of outcomes) pace = paceAfter(pace, outcome);
    expect(pace).toEqual({ width, pauseMs: average });
  });

  test("one group waits between half and one and a half of the average", () => {
    expect(throttledPauseMs(FULL_PACE, () => 0)).toBe(1);
    expect(throttledPauseMs(FULL_PACE, () => 1)).toBe(3);
  });
});

describe("consumes that wait", () => {
  test.each<[string, number, number, number, number, boolean]>([
    ["go at once when no write is under way", 2, 0, 1, 9, true],
    ["go next to a write of one consume", 2, 1, 1, 1, true],
    ["wait next to a write of two until there are two", 2, 1, 1, 2, false],
    ["go next to a write of two when there are two", 2, 1, 2, 2, true],
    ["wait next to a large write until there are more than half as many", 2, 1, 32, 64, false],
    ["go next to a large write when there are more than half as many", 2, 1, 33, 64, true],
    ["wait when as many writes are under way as may be", 2, 2, 100, 1, false],
    ["wait next to any write where the store throttles", 1, 1, 100, 1, false],
    ["are none: nothing goes", 2, 0, 0, 1, false],
  ])("the consumes that wait %s", (_, width, underWay, waiting, lastSize, expected) => {
    expect(goesNow({ ...FULL_PACE, width }, underWay, waiting, lastSize)).toBe(expected);
  });
});
