import { Deadline } from "@zae-limiter/limiter/base/time.ts";
import { Adjustments, type SharedAdjustment } from "@zae-limiter/limiter/buckets/adjustments.ts";
import { configOf, TARGET } from "@zae-limiter/test-support/table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect, test } from "vitest";

test("a write that adjustments share may take until the latest of their deadlines", async () => {
  const { timer } = new VirtualTime(1_800_000_000_000);
  const written: SharedAdjustment[] = [];
  const writer = {
    newTokens: () => "token",
    write: async (shared: SharedAdjustment) => void written.push(shared),
    hasArrived: async () => true,
  };
  const options = { timeoutMs: 1000, timer, random: () => 0.5, onWarning: () => {} };
  const adjustments = new Adjustments(writer, options);
  const adjustment = {
    ...TARGET,
    shard: 0,
    config: configOf(["a:100/day"]),
    deltasMilli: [1000],
  };
  const times = [100, 300, 900, 500];
  await Promise.all(times.map((ms) => adjustments.adjust(adjustment, new Deadline(timer, ms))));
  const [shared] = written.filter(({ shares }) => shares.length > 1);
  const latest = Math.max(...times.slice(-(shared?.shares.length ?? 0)));
  expect(shared?.deadline.leftMs).toBe(latest);
  expect(shared?.adjustment.deltasMilli).toEqual([1000 * (shared?.shares.length ?? 0)]);
});
