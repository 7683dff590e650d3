/** The engines for tests: the same suite on each one that runs, and a named skip for the others. */

import { describe, inject } from "vitest";
import type { Engine, RunningEngine } from "./engine.ts";

/** One `describe` per engine. A missing engine shows up as a skip with its reason. */
export function describeEngines(title: string, suite: (engine: RunningEngine) => void): void {
  for (const engine of inject("engines")) {
    if (isRunning(engine)) describe(`${title} on ${engine.name}`, () => suite(engine));
    else describe.skip(`${title} on ${engine.name}: ${engine.skipped}`, () => undefined);
  }
}

function isRunning(engine: Engine): engine is RunningEngine {
  return engine.endpoint !== undefined;
}
