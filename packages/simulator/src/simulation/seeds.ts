/** Many runs, one seed after the other. */

import { type RunReport, simulate } from "./simulation.ts";
import { drawWorld, WORLD_NAMES, type WorldName } from "./worlds.ts";

/** Which seeds to run, and how. */
export interface SeedsOptions {
  /** The first seed. */
  readonly seed: number;
  readonly runs: number;
  /** Virtual minutes of each run; drawn by the seed when absent. */
  readonly minutes?: number | undefined;
  /** World of the runs; "all": one world after the other. Default "any". */
  readonly world?: WorldName | "all" | undefined;
  /** Whether a wrong refusal breaks a rule, which is the default, or is only counted. */
  readonly judgesRefusals?: boolean | undefined;
  /** Called after each run. */
  readonly onRun?: (report: RunReport) => void;
  readonly isStopped?: () => boolean;
}

/** Result of the runs of all seeds. */
export interface SeedsReport {
  readonly runs: number;
  readonly calls: number;
  readonly events: number;
  readonly crashes: number;
  readonly splits: number;
  /** Refusals that were compared with the ideal bucket, and those of them that were wrong. */
  readonly judgedRefusals: number;
  readonly wrongRefusals: number;
  /** The first run that broke a rule; nothing is run after it. */
  readonly failure: RunReport | undefined;
}

/**
 * Runs simulations until one of them breaks a rule: processes that share buckets on a simulated
 * table, with faults, crashes and wrong clocks, and checkers that watch every write.
 */
export async function simulateSeeds(options: SeedsOptions): Promise<SeedsReport> {
  const { seed, runs, minutes, world = "any", onRun, isStopped = () => false } = options;
  const sums = {
    ...{ runs: 0, calls: 0, events: 0, crashes: 0, splits: 0 },
    ...{ judgedRefusals: 0, wrongRefusals: 0 },
  };
  for (let at = 0; at < runs && !isStopped(); at += 1) {
    const drawn = drawWorld(worldOf(world, seed + at), seed + at, minutes);
    const { judgesRefusals = drawn.judgesRefusals } = options;
    const report = await simulate({ ...drawn, judgesRefusals });
    sums.runs += 1;
    sums.calls += report.calls;
    sums.events += report.events;
    sums.crashes += report.crashes;
    sums.splits += report.splits;
    sums.judgedRefusals += report.refusals.judged;
    sums.wrongRefusals += report.refusals.wrong;
    onRun?.(report);
    if (report.violation !== undefined) return { ...sums, failure: report };
  }
  return { ...sums, failure: undefined };
}

/** Returns the world; for "all" the seed decides, so that the seed alone repeats a run. */
function worldOf(world: WorldName | "all", seed: number): WorldName {
  return world === "all" ? (WORLD_NAMES[seed % WORLD_NAMES.length] as WorldName) : world;
}
