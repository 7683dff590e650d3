/** The engines for tests: the same suite on each one that runs, and a named skip for the others. */

import { describe, inject } from "vitest";
import type { Engine, RunningEngine } from "./engine.ts";

/** One `describe` per engine. A missing engine shows up as a skip with its reason. */
export function describeEngines(title: string, suite: (engine: RunningEngine) => void): void {
  for (const { name } of inject("engines")) describeEngine(name, title, suite);
}

/** The same on one engine only, for suites that are long enough for a file per engine. */
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
