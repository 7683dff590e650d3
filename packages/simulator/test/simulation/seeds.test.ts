/** A handful of seeds in every run of the tests; `npm run soak` runs a thousand. */

import { drawParameters, type Parameters } from "@zae-limiter/simulator/simulation/parameters.ts";
import { simulateSeeds } from "@zae-limiter/simulator/simulation/seeds.ts";
import { shrink } from "@zae-limiter/simulator/simulation/shrink.ts";
import { type RunReport, simulate } from "@zae-limiter/simulator/simulation/simulation.ts";
import { WORLD_NAMES } from "@zae-limiter/simulator/simulation/worlds.ts";
import { describe, expect, test } from "vitest";
import { bundledWith } from "./bundle.ts";

const SEEDS = 8;
const MINUTES = 0.2;
const SEEDS_PER_WORLD = 3;

/** What a seed draws, with less of it, so that it is over in a moment. */
function small(seed: number, more: Partial<Parameters> = {}): Parameters {
  return { ...drawParameters(seed, 0.1), callsPerSecond: 30, ...more };
}

describe("fixed seeds", () => {
  test(`${SEEDS} seeds break no rule`, async () => {
    const reports: RunReport[] = [];
    const onRun = (report: RunReport) => reports.push(report);
    const { failure, runs } = await simulateSeeds({
      seed: 4001,
      runs: SEEDS,
      minutes: MINUTES,
      onRun,
    });
    expect(failure?.violation?.message).toBeUndefined();
    expect(runs).toBe(SEEDS);
    // They would prove little if nothing happened in them.
    const sum = (of: (report: RunReport) => number) =>
      reports.reduce((total, report) => total + of(report), 0);
    expect(sum(({ calls }) => calls)).toBeGreaterThan(3000);
    expect(sum(({ splits }) => splits)).toBeGreaterThan(5);
    expect(sum(({ crashes }) => crashes)).toBeGreaterThan(0);
    expect(sum(({ usage }) => usage.conflicts)).toBeGreaterThan(0);
    expect(sum(({ outcomes }) => outcomes.committed ?? 0)).toBeGreaterThan(300);
    expect(sum(({ outcomes }) => outcomes.refused ?? 0)).toBeGreaterThan(100);
  });

  test.each(WORLD_NAMES.filter((world) => world !== "any"))(
    "the first seeds of the world %s break no rule",
    async (world) => {
      const { failure, calls } = await simulateSeeds({
        seed: 1,
        runs: SEEDS_PER_WORLD,
        minutes: 0.1,
        world,
      });
      expect(failure?.violation?.message).toBeUndefined();
      expect(calls).toBeGreaterThan(25);
    },
  );

  test.each([
    [40_063, "a call in line that asked again and again, in no time"],
    [40_093, "a shard that was replaced although the bucket had been created again"],
  ])("seed %i is clean: it has shown %s", async (seed) => {
    const { failure } = await simulateSeeds({ seed, runs: 1 });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test.each([3, 5])(
    "seed %i of the world splits is clean: it has shown a consume that no call was told of",
    async (seed) => {
      const { failure } = await simulateSeeds({ seed, runs: 1, minutes: 0.25, world: "splits" });
      expect(failure?.violation?.message).toBeUndefined();
    },
  );

  test("seed 1079 of the world merges is clean: it has shown a split that undid a merge", async () => {
    const { failure } = await simulateSeeds({ seed: 1079, runs: 1, minutes: 0.2, world: "merges" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test("seed 1036 of the world merges is clean: it has shown a consume without a refund", async () => {
    const { failure } = await simulateSeeds({ seed: 1036, runs: 1, minutes: 0.2, world: "merges" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test.each([820_002, 820_027, 820_066])(
    "seed %i of the world waits is clean: it has shown a wait for limits of others",
    async (seed) => {
      const { failure } = await simulateSeeds({ seed, runs: 1, world: "waits" });
      expect(failure?.violation?.message).toBeUndefined();
    },
  );

  test.each([
    ["several", "a wait for limits of others"],
    ["operated", "a call behind a queue that exceeded its time"],
  ] as const)("seed 810281 of the world %s is clean: it has shown %s", async (world, _shown) => {
    const { failure } = await simulateSeeds({ seed: 810_281, runs: 1, world });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test("seed 7100 of the world moved is clean: it has shown a stale state that refused", async () => {
    const { failure } = await simulateSeeds({ seed: 7100, runs: 1, minutes: 0.25, world: "moved" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test("seed 5000236 of the world moved is clean: the checker knew no refusal below a circle", async () => {
    const { failure } = await simulateSeeds({ seed: 5_000_236, runs: 1, world: "moved" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test("seed 970093 of the world filled is clean: a full bucket refused for a waiter's sake", async () => {
    const { failure } = await simulateSeeds({ seed: 970_093, runs: 1, world: "filled" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test("seed 6000749 of the world filled is clean: a grant showed old states of other shards as new", async () => {
    const { failure } = await simulateSeeds({ seed: 6_000_749, runs: 1, world: "filled" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test("seed 8000026 of the world waits is clean: a call lost its place while it asked", async () => {
    const { failure } = await simulateSeeds({ seed: 8_000_026, runs: 1, world: "waits" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test("seed 9000941 of the world filled is clean: a waiter was refused for calls that were refused", async () => {
    const { failure } = await simulateSeeds({ seed: 9_000_941, runs: 1, world: "filled" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test("seed 12000728 of the world links is clean: the checker dropped a waiter in the same instant", async () => {
    const { failure } = await simulateSeeds({ seed: 12_000_728, runs: 1, world: "links" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test("seed 1200116 of the world merges is clean: the checker counted shards that were gone", async () => {
    const { failure } = await simulateSeeds({ seed: 1_200_116, runs: 1, world: "merges" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test("seed 1200177 of the world expiring is clean: the checker did not know late clocks", async () => {
    const { failure } = await simulateSeeds({ seed: 1_200_177, runs: 1, world: "expiring" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test("seed 1200384 is clean: the checker did not know a bucket that was created again", async () => {
    const { failure } = await simulateSeeds({ seed: 1_200_384, runs: 1, world: "any" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test("seed 1600869 of the world lost is clean: the checker forgot time that a shard had not", async () => {
    const { failure } = await simulateSeeds({ seed: 1_600_869, runs: 1, world: "lost" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test.each([1_500_325, 1_601_029])(
    "seed %i of the world lost is clean: a process knew of a limit that the bucket did not have yet",
    async (seed) => {
      const { failure } = await simulateSeeds({ seed, runs: 1, world: "lost" });
      expect(failure?.violation?.message).toBeUndefined();
    },
  );

  test("seed 2000122 of the world waits is clean: a waiter rested on after a refund", async () => {
    const { failure } = await simulateSeeds({ seed: 2_000_122, runs: 1, world: "waits" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test.each([
    [2_000_064, "any"],
    [2_020_685, "lost"],
  ] as const)(
    "seed %i of the world %s is clean: a clock was behind that of the last write to a full bucket",
    async (seed, world) => {
      const { failure } = await simulateSeeds({ seed, runs: 1, world });
      expect(failure?.violation?.message).toBeUndefined();
    },
  );

  test.each([
    [2_010_387, "splits"],
    [2_020_381, "lost"],
  ] as const)(
    "seed %i of the world %s is clean: a refund waited for later ones that shared its write",
    async (seed, world) => {
      const { failure } = await simulateSeeds({ seed, runs: 1, world });
      expect(failure?.violation?.message).toBeUndefined();
    },
  );

  test("seed 2050444 of the world moved is clean: a parent refused by a link that was gone", async () => {
    const { failure } = await simulateSeeds({ seed: 2_050_444, runs: 1, world: "moved" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test("seed 3100527 of the world operated is clean: a bypass came with a smaller capacity", async () => {
    const { failure } = await simulateSeeds({ seed: 3_100_527, runs: 1, world: "operated" });
    expect(failure?.violation?.message).toBeUndefined();
  });

  test("the same seed is the same run, event by event", async () => {
    const parameters = small(7, {
      faults: { lostResponses: 0.05, serverErrors: 0.05, lagMs: 500, duplicateRecords: 0.1 },
      crashesPerMinute: 60,
      skewMs: 100,
      processes: 3,
    });
    const [first, second] = [await simulate(parameters), await simulate(parameters)];
    expect(second).toEqual(first);
    expect(first.hash).toMatch(/^[0-9a-f]{14}$/);
    const other = await simulate({ ...parameters, seed: 8 });
    expect(other.hash).not.toBe(first.hash);
  });

  test("keeping the log changes nothing but the log", async () => {
    const parameters = small(9);
    const [without, with_] = [
      await simulate(parameters),
      await simulate(parameters, { keepsLog: true }),
    ];
    expect(with_.hash).toBe(without.hash);
    expect(without.log).toEqual([]);
    expect(with_.log.length).toBeGreaterThan(50);
  });

  test("seeds draw different worlds", () => {
    const drawn = Array.from({ length: 200 }, (_, seed) => drawParameters(seed, undefined));
    const share = (holds: (parameters: Parameters) => boolean) =>
      drawn.filter(holds).length / drawn.length;
    for (const fault of ["lostResponses", "serverErrors", "lagMs", "transactionMs"] as const) {
      expect(share(({ faults }) => faults[fault] !== undefined)).toBeGreaterThan(0.15);
      expect(share(({ faults }) => faults[fault] !== undefined)).toBeLessThan(0.5);
    }
    expect(share(({ faults }) => Object.keys(faults).length === 0)).toBeGreaterThan(0);
    expect(share(({ crashesPerMinute }) => crashesPerMinute > 0)).toBeGreaterThan(0.15);
    expect(share(({ writeUnitsPerSecond }) => writeUnitsPerSecond <= 10)).toBeGreaterThan(0.25);
  });

  test("a run stops when its signal aborts", async () => {
    let runs = 0;
    const report = await simulateSeeds({
      seed: 1,
      runs: 100,
      minutes: 0.02,
      onRun: () => {
        runs += 1;
      },
      isStopped: () => runs >= 2,
    });
    expect(report.runs).toBe(2);
  });
});

describe("a run that fails", () => {
  test("a run that fails is cut down to the little that shows it", {
    timeout: 120_000,
  }, async () => {
    const { simulator, remove } = await bundledWith([
      {
        file: "packages/simulator/src/checkers/shape.ts",
        from: "const SHARDS_MAX = 64;",
        to: "const SHARDS_MAX = 0;",
      },
    ]);
    try {
      const { failure } = await simulator.simulateSeeds({ seed: 1, runs: 5, minutes: 0.1 });
      if (failure === undefined) throw new Error("expected that no bucket is allowed");
      const { report: shortest, lines } = await simulator.shrink(failure);
      expect(shortest.violation?.checker).toBe("shards");
      expect(shortest.parameters).toMatchObject({
        faults: {},
        processes: 1,
        entities: 1,
      });
      expect(shortest.parameters.minutes).toBeLessThan(0.1);
      expect(lines.length).toBeLessThan(20);
      expect(lines.some((line) => line.includes("VIOLATION shards"))).toBe(true);
    } finally {
      remove();
    }
  });

  test("a long log is reduced to the bucket it is about", async () => {
    const report = await simulate(small(3, { entities: 2, family: "none", callsPerSecond: 100 }), {
      keepsLog: true,
    });
    expect(report.log.length).toBeGreaterThan(100);
    const shrunk = await shrink(report, () => true);
    expect(shrunk.report.hash).toBe(report.hash);
    expect(shrunk.lines.length).toBeLessThanOrEqual(80);
  });
});
