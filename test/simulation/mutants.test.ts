/**
 * Tests of the simulator: libraries that are broken on purpose, each in a way that ordinary tests
 * might miss, and each is caught within fifty seeds.
 */

import { describe, expect, test } from "vitest";
import { bundledWith, type Change } from "./bundle.ts";

const SEEDS = 50;

interface Mutant {
  readonly name: string;
  readonly changes: readonly Change[];
  /** Which rule it breaks; another one may be noticed first. */
  readonly caughtBy: readonly string[];
}

const MUTANTS: readonly Mutant[] = [
  {
    name: "a refill that credits two per cent too much",
    changes: [
      {
        file: "src/buckets/distributed/image.ts",
        from: "mulAddDivRem(nowMs - bucket.refilledAtMs, refillMilli, 0, periodMs)",
        to: "mulAddDivRem(Math.floor((nowMs - bucket.refilledAtMs) * 1.02), refillMilli, 0, periodMs)",
      },
    ],
    caughtBy: ["over-admission", "conservation"],
  },
  {
    name: "a remainder that is lost whenever the epoch moves",
    changes: [
      {
        file: "src/buckets/distributed/rebase.ts",
        from: "plan.setRemainder(name, image, remainder);",
        to: "plan.setRemainder(name, image, 0 * remainder);",
      },
    ],
    caughtBy: ["conservation"],
  },
  {
    name: "what is given back goes to the first shard, wherever it was taken",
    changes: [
      {
        file: "src/buckets/distributed/adjuster.ts",
        from: "bucketKey(this.#context.namespaceId, entityId, resource, shard)",
        to: "bucketKey(this.#context.namespaceId, entityId, resource, 0 * shard)",
      },
    ],
    caughtBy: ["leases"],
  },
];

describe("mutants", () => {
  for (const { name, changes, caughtBy } of MUTANTS) {
    test(name, { timeout: 120_000 }, async () => {
      const { simulator, remove } = await bundledWith(changes);
      try {
        const { failure, runs } = await simulator.simulateSeeds({
          seed: 1,
          runs: SEEDS,
          minutes: 0.25,
        });
        expect(caughtBy, `after ${runs} seeds`).toContain(failure?.violation?.checker);
      } finally {
        remove();
      }
    });
  }
});
