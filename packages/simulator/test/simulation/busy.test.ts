/**
 * Buckets that are too busy, in a few virtual seconds, most of them at night: they take half a
 * minute. `npm run soak:mutants` has longer ones.
 */

import { runScenario } from "@zae-limiter/simulator/scenarios/run.ts";
import { SCENARIOS } from "@zae-limiter/simulator/scenarios/scenarios.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { describe, expect, test } from "vitest";

describe("a busy bucket", () => {
  itUnless(NIGHTLY_ONLY)(
    "a busy bucket that has nothing left refuses, is not split, and is hardly asked",
    async () => {
      const report = await runScenario(SCENARIOS.flood, { seconds: 2 });
      expect(report.violation).toBeUndefined();
      expect(report.unavailable).toBe(0);
      expect(report.shards).toBe(1);
      expect(report.admittedShare).toBeGreaterThan(0.97);
      expect(report.callsPerAcquire).toBeLessThan(0.6);
    },
  );

  itUnless(NIGHTLY_ONLY)(
    "a busy bucket that has enough is split until it is not busy, and no call is refused",
    async () => {
      const scenario = { ...SCENARIOS.hot, processes: 20, callsPerSecond: 2000 };
      const { timeline, violation, refused, shards } = await runScenario(scenario, { seconds: 6 });
      expect(violation).toBeUndefined();
      expect(refused).toBe(0);
      expect(shards).toBe(4);
      const { throttled, calls, admitted } = timeline.at(-1) as (typeof timeline)[number];
      expect(throttled).toBe(0);
      expect(calls / admitted).toBeLessThan(1.5);
    },
  );

  // Whether a limit was full is judged at the time of the write: a round trip later it is full
  // again, and with that as its experience a process would need 1.6 calls.
  test("a bucket that is used for four fifths and nearly always full needs 1.4 calls per acquire", async () => {
    const limit = 500;
    const scenario = {
      ...SCENARIOS.hot,
      processes: 20,
      callsPerSecond: 400,
      limits: [`rps:${limit}/sec`],
      rateOf: () => ({ capacity: limit, perSecond: limit }),
    };
    const report = await runScenario(scenario, { seconds: 8 });
    expect(report.violation).toBeUndefined();
    expect(report.refused).toBe(0);
    expect(report.callsPerAcquire).toBeLessThan(1.4);
  });
});
