/** How long groups wait, and how many writes of a bucket are under way. */

import { describe, expect, test } from "vitest";
import {
  FULL_PACE,
  paceAfter,
  pauseMs,
  throttledPauseMs,
} from "../../../../src/buckets/distributed/pacing.ts";

describe("a group that was overtaken", () => {
  test.each([
    [0, 0],
    [4, 0],
    [5, 1],
    [6, 2],
    [9, 16],
    [40, 16],
  ])("after %i rounds waits %i ms on average", (rounds, ms) => {
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
  ] as const)("%s", (_, outcomes, width, average) => {
    let pace = FULL_PACE;
    for (const outcome of outcomes) pace = paceAfter(pace, outcome);
    expect(pace).toEqual({ width, pauseMs: average });
  });

  test("one group waits between half and one and a half of the average", () => {
    expect(throttledPauseMs(FULL_PACE, () => 0)).toBe(1);
    expect(throttledPauseMs(FULL_PACE, () => 1)).toBe(3);
  });
});
