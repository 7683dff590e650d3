import { SweepClock } from "@zae-limiter/limiter/buckets/embedded/sweep-clock.ts";
import { expect, test } from "vitest";

const HOUR_MS = 3_600_000;

test("after a step back nothing is removed until an hour after the latest time", () => {
  let nowMs = 0;
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
  expect(at(1_000_000 + HOUR_MS)).toBe(1_000_000 + HOUR_MS);
});
