/** A handful of seeds in every run of the tests; `npm run soak` runs a thousand. */

import { drawParameters, type Parameters } from "@zae-limiter/simulator/simulation/parameters.ts";
import { simulateSeeds } from "@zae-limiter/simulator/simulation/seeds.ts";
import { shrink } from "@zae-limiter/simulator/simulation/shrink.ts";
import { type RunReport, simulate } from "@zae-limiter/simulator/simulation/simulation.ts";
import { WORLD_NAMES, type WorldName } from "@zae-limiter/simulator/simulation/worlds.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { describeUnless } from "@zae-limiter/test-support/unless.ts";
import { describe, expect, test } from "vitest";
import { bundledWith } from "./bundle.ts";

const SEEDS = 8;
const MINUTES = 0.2;
const SEEDS_PER_WORLD = 3;

/**
 * Seeds that have shown a fault of the library or of a checker, with the minutes they need. A seed
 * leads to the same place only as long as the library draws the same numbers, so these do not
 * replace the tests of the faults, and run each night.
 */
const FORMER_FAULTS: readonly [number, WorldName, string, number?][] = [
  [40_063, "any", "a call in a queue that asked again and again, in no time"],
  [40_093, "any", "a shard that was replaced although the bucket had been created again"],
  [3, "splits", "a consume that no call got an answer for", 0.25],
  [5, "splits", "a consume that no call got an answer for", 0.25],
  [1079, "merges", "a split that undid a merge", 0.2],
  [1036, "merges", "a consume without a refund", 0.2],
  [820_002, "waits", "a wait for limits of others"],
  [820_027, "waits", "a wait for limits of others"],
  [820_066, "waits", "a wait for limits of others"],
  [810_281, "several", "a wait for limits of others"],
  [810_281, "operated", "a call behind a queue that exceeded its time"],
  [7100, "moved", "a stale state that refused", 0.25],
  [5_000_236, "moved", "a checker that knew no refusal below a circle"],
  [970_093, "filled", "a full bucket that refused for a waiter's sake"],
  [6_000_749, "filled", "a grant that showed old states of other shards as new"],
  [8_000_026, "waits", "a call that lost its place while it asked"],
  [9_000_941, "filled", "a waiter that was refused for calls that were refused"],
  [12_000_728, "links", "a checker that dropped a waiter in the same instant"],
  [1_200_116, "merges", "a checker that counted shards that were gone"],
  [1_200_177, "expiring", "a checker that did not know late clocks"],
  [1_200_384, "any", "a checker that did not know a bucket that was created again"],
  [1_600_869, "lost", "a checker that forgot time that a shard had not"],
  [1_500_325, "lost", "a process that knew of a limit that the bucket did not have yet"],
  [1_601_029, "lost", "a process that knew of a limit that the bucket did not have yet"],
  [2_000_122, "waits", "a waiter that rested on after a refund"],
  [2_000_064, "any", "a clock behind that of the last write to a full bucket"],
  [2_020_685, "lost", "a clock behind that of the last write to a full bucket"],
  [2_010_387, "splits", "a refund that waited for later ones that shared its write"],
  [2_020_381, "lost", "a refund that waited for later ones that shared its write"],
  [2_050_444, "moved", "a parent that refused by a link that was gone"],
  [3_100_527, "operated", "a bypass that came with a smaller capacity"],
  [15, "quotas", "an answer that came after the reset", 0.25],
  [88, "zones", "a consume from shards in different periods", 0.25],
  [100_101, "zones", "a state from before a merge that refused", 0.25],
  [3, "windows", "a boundary that clocks which are seconds apart were granted twice", 0.25],
  [30_115, "slots", "a call that waited for its turn beyond its time"],
  [30_038, "slots", "a refusal by the time of a plan that waited for its turn"],
  [78_000_087, "slots", "a wait for a slot and for tokens that slept beyond its time"],
  [78_000_583, "slots", "a transaction that was refused and came late"],
  [78_000_086, "windows", "a checker that did not know what a late clock gives up at a boundary"],
  [92_000_978, "windows", "a checker that let no debt be deeper by what a late clock gives up"],
  [95_000_011, "windows", "a checker that split a time with a boundary in it by the later numbers"],
  [61_000_411, "windows", "a bucket that was idle over a small window and was not cut by it"],
];

/** Draws the parameters of a seed, and makes the run short. */
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

  describeUnless(NIGHTLY_ONLY)("seeds that have shown a fault", () => {
    test.each(FORMER_FAULTS)(
      "seed %i of the world %s is clean: it has shown %s",
      async (seed, world, _shown, minutes) => {
        const { failure } = await simulateSeeds({ seed, runs: 1, world, minutes });
        expect(failure?.violation?.message).toBeUndefined();
      },
    );
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
