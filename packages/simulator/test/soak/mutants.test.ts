/** Tests of the simulator: every mutant is caught within fifty seeds. */

import { describe, expect, test } from "vitest";
import { bundledWith } from "../simulation/bundle.ts";
import { MUTANTS } from "../simulation/mutants.ts";

const SEEDS = 50;

describe("the simulator catches a library that is broken on purpose", () => {
  for (const { name, changes, world, caughtBy } of MUTANTS) {
    test(`${name} is caught in the world "${world}" within ${SEEDS} seeds`, {
      timeout: 480_000,
    }, async () => {
      const { simulator, remove } = await bundledWith(changes);
      try {
        const { failure, runs } = await simulator.simulateSeeds({
          seed: 1,
          runs: SEEDS,
          minutes: 0.25,
          world,
        });
        expect(caughtBy, `after ${runs} seeds`).toContain(failure?.violation?.checker);
      } finally {
        remove();
      }
    });
  }
});
