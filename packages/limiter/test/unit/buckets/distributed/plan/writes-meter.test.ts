import { isSaturated } from "@zae-limiter/limiter/buckets/distributed/plan/writes-meter.ts";
import { expect, test } from "vitest";
import { NOW, shardOf } from "../known.ts";

test.each<[string, number | undefined, boolean]>([
  ["has no meter", undefined, false],
  ["is idle", -60_000, false],
  ["has writes for nearly a second ahead", 999, false],
  ["has writes for a second ahead", 1000, true],
  ["has writes for two seconds ahead", 2000, true],
  ["was metered by a wrong clock", 60_000, false],
])("a bucket that %s is saturated: %s ms ahead, %s", (_, aheadMs, saturated) => {
  const meterMs = aheadMs === undefined ? undefined : NOW + aheadMs;
  expect(isSaturated({ ...shardOf(1), meterMs }, NOW)).toBe(saturated);
});

test("a clock that is behind the base time cannot tell", () => {
  expect(isSaturated({ ...shardOf(1), meterMs: NOW + 1500 }, NOW - 1)).toBe(false);
});
