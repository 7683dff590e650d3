/**
 * Smaller versions of the scenarios, and what must be true of them. `docs/operators/scale.md` has
 * the large ones.
 */

import { IdealFlow } from "@zae-limiter/simulator/scenarios/ideal-flow.ts";
import { runScenario } from "@zae-limiter/simulator/scenarios/run.ts";
import type { Scenario } from "@zae-limiter/simulator/scenarios/scenario.ts";
import { SCENARIOS } from "@zae-limiter/simulator/scenarios/scenarios.ts";
import { zipf } from "@zae-limiter/simulator/scenarios/zipf.ts";
import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import { describe, expect, test } from "vitest";

const SECONDS_TO_SETTLE = 5;

describe("a hot bucket", { timeout: 240_000 }, () => {
  test("a hot bucket at 4,000 writes per second settles at 4 to 8 shards within 5 s, and stays", async () => {
    const { timeline, violation, latencyMs } = await runScenario(SCENARIOS.hot, { seconds: 9 });
    expect(violation).toBeUndefined();
    const settled = timeline.filter(({ second }) => second > SECONDS_TO_SETTLE);
    const counts = new Set(settled.map(({ shards }) => shards));
    expect(counts.size).toBe(1);
    for (const count of counts) {
      expect(count).toBeGreaterThanOrEqual(4);
      expect(count).toBeLessThanOrEqual(8);
    }
    expect(latencyMs.p50).toBeLessThan(20);
  });

  test("a hot bucket gets what it is configured for, and is hardly throttled, once it has settled", async () => {
    const perSecond = 5000;
    const tenant: Scenario = {
      ...SCENARIOS.tenant,
      processes: 50,
      callsPerSecond: perSecond,
      limits: [`rps:${perSecond}/sec`],
      rateOf: () => ({ capacity: perSecond, perSecond }),
    };
    const { settled, violation, unavailable } = await runScenario(tenant, { seconds: 13 });
    expect(violation).toBeUndefined();
    expect(unavailable).toBe(0);
    expect(settled.admittedPerSecond).toBeGreaterThanOrEqual(0.95 * perSecond);
    expect(settled.throttledShare).toBeLessThan(0.02);
  });
});

describe("other scenarios", () => {
  test("a flood of refused calls costs little where the last answer is remembered", async () => {
    const [with_, without] = [
      await runScenario(
        { ...SCENARIOS.flood, callsPerSecond: 2000, processes: 10 },
        { seconds: 4 },
      ),
      await runScenario(
        { ...SCENARIOS["flood-asking"], callsPerSecond: 2000, processes: 10 },
        { seconds: 4 },
      ),
    ];
    for (const { violation, admittedShare } of [with_, without]) {
      expect(violation).toBeUndefined();
      expect(admittedShare).toBeGreaterThan(0.9);
      expect(admittedShare).toBeLessThanOrEqual(1.01);
    }
    expect(with_.callsPerAcquire).toBeLessThan(without.callsPerAcquire);
  });

  test("children that cascade charge their parent, and both are counted", async () => {
    const { entities = [], ...family } = SCENARIOS.family;
    const children = 50;
    const small: Scenario = {
      ...family,
      entities: entities.slice(0, children + 1),
      processes: 5,
      callsPerSecond: 200,
      next: (random) => [`child-${Math.floor(random() * children)}`, "parent"],
    };
    const { violation, admittedShare, callsPerAcquire } = await runScenario(small, { seconds: 4 });
    expect(violation).toBeUndefined();
    expect(admittedShare).toBeGreaterThan(0.95);
    expect(callsPerAcquire).toBeGreaterThan(1.9);
  });

  test("the same seed gives the same report", async () => {
    const small = { ...SCENARIOS.zipf, processes: 20, callsPerSecond: 300 };
    const [first, second] = [
      await runScenario(small, { seconds: 2, seed: 9 }),
      await runScenario(small, { seconds: 2, seed: 9 }),
    ];
    expect(second).toEqual(first);
    expect(first.offered).toBeGreaterThan(400);
  });
});

describe("their parts", () => {
  test("the ideal admits the capacity and what accrues, all or nothing", () => {
    const flow = new IdealFlow((id) => ({ capacity: id === "parent" ? 3 : 10, perSecond: 1 }));
    for (let call = 0; call < 10; call += 1) flow.offer(["child", "parent"], 0);
    expect(flow.admitted).toBe(3);
    flow.offer(["child", "parent"], 2000);
    flow.offer(["child", "parent"], 2000);
    flow.offer(["child", "parent"], 2000);
    expect(flow.admitted).toBe(5);
  });

  test("Zipf: the first rank is twice as frequent as the second", () => {
    const draw = zipf(1000, 1, seededRandom(1));
    const counts = [0, 0];
    for (let draws = 0; draws < 50_000; draws += 1) {
      const rank = draw();
      if (rank < 2) counts[rank] = (counts[rank] ?? 0) + 1;
    }
    const [first = 0, second = 1] = counts;
    expect(first / second).toBeGreaterThan(1.85);
    expect(first / second).toBeLessThan(2.15);
  });
});
