/** Property tests that can be repeated: the seed is in the title of the test. */

import fc from "fast-check";
import { test } from "vitest";
import { casesOf } from "./effort.ts";

/** Set FC_SEED to explore other inputs; without it every run checks the same ones. */
const SEED = Number(process.env.FC_SEED ?? 20_251_115);
const RUNS = casesOf(10_000);

/** Runs `check` on generated inputs and reports the smallest one that breaks it. */
export function property<Inputs extends [unknown, ...unknown[]]>(
  name: string,
  inputs: { [Index in keyof Inputs]: fc.Arbitrary<Inputs[Index]> },
  check: (...values: Inputs) => void,
  runs = RUNS,
): void {
  test(`${name} (${runs} runs, FC_SEED=${SEED})`, { timeout: 60_000 }, () => {
    fc.assert(fc.property(...inputs, check), { seed: SEED, numRuns: runs });
  });
}
