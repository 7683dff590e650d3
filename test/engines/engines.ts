/** The engines for tests: the same suite on each one that runs, and a named skip for the others. */

import { describe, inject } from "vitest";
import type { Engine, RunningEngine } from "./engine.ts";

/**
 * Declares a suite on the first engine that runs, in `npm run test:nightly` on each of them: both
 * pass the contract of items, which everything above it builds on. A missing engine is a skip with
 * its reason.
 */
export function describeEngines(title: string, suite: (engine: RunningEngine) => void): void {
  const engines = inject("engines");
  const first = engines.find(isRunning) ?? engines[0];
  const chosen = process.env.ZAEL_NIGHTLY === undefined ? [first] : engines;
  for (const engine of chosen) if (engine !== undefined) describeEngine(engine.name, title, suite);
}

/** Declares a suite on the engine of this name, or a skip with the reason why it does not run. */
export function describeEngine(
  name: Engine["name"],
  title: string,
  suite: (engine: RunningEngine) => void,
): void {
  const engine = inject("engines").find((each) => each.name === name);
  if (engine === undefined) throw new Error(`the set-up knows no engine ${name}`);
  if (isRunning(engine)) describe(`${title} on ${name}`, () => suite(engine));
  else describe.skip(`${title} on ${name}: ${engine.skipped}`, () => undefined);
}

function isRunning(engine: Engine): engine is RunningEngine {
  return engine.endpoint !== undefined;
}
