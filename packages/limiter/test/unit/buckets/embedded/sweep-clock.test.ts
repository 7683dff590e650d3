import { SweepClock } from "@zae-limiter/limiter/buckets/embedded/sweep-clock.ts";
import { expect, test } from "vitest";

const HOUR_MS = 3_600_000;

test("after a step back nothing is removed until an hour after the latest time", () => {
  let nowMs = 1_000_000;
  const clock = new SweepClock(() => nowMs);
  const at = (ms: number) => {
    nowMs = ms;
    return clock.nowMs();
  };
  expect(at(1_000_000)).toBe(1_000_000);
  // A small step back is the work of a service that keeps clocks in time.
  expect(at(998_000)).toBe(998_000);
  expect(at(997_999)).toBeUndefined();
  expect(at(1_000_000 + HOUR_MS - 1)).toBeUndefined();
  // From there the clock is known again, but it has come there in a jump.
  expect(at(1_000_000 + HOUR_MS)).toBe(1_000_000);
});

test("after a jump ahead only what was over before it is removed, until the clock has gone on", () => {
  let nowMs = 1_000_000;
  const clock = new SweepClock(() => nowMs);
  const at = (ms: number) => {
    nowMs = ms;
    return clock.nowMs();
  };
  expect(at(1_000_000)).toBe(1_000_000);
  expect(at(1_600_000)).toBe(1_600_000);
  expect(at(1_600_000 + HOUR_MS)).toBe(1_600_000);
  // It was set back: the bucket that would have been removed is still there.
  expect(at(1_600_001)).toBeUndefined();
});

test("a process that works once in a while removes what was over the time before", () => {
  let nowMs = 0;
  const clock = new SweepClock(() => nowMs);
  const seen = [0, 1, 2, 3].map((day) => {
    nowMs = day * 24 * HOUR_MS;
    return clock.nowMs();
  });
  expect(seen).toEqual([0, 0, 24 * HOUR_MS, 48 * HOUR_MS]);
  for (let steps = 0; steps < 6; steps += 1) {
    nowMs += HOUR_MS / 6;
    clock.nowMs();
  }
  expect(clock.nowMs()).toBe(nowMs);
});
