/**
 * AWS on this machine: moto, and cfn-lint. Where there is no Python, a named skip; in CI, an error.
 */

import { existsSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { describe, inject } from "vitest";

export interface RunningAws {
  /** The address of moto, for all services. */
  readonly endpoint: string;
  /** The interpreter of the environment, for cfn-lint. */
  readonly python: string;
  /** The folder of the compiled sources, with the Lambdas in it. */
  readonly build: string;
}

type State = RunningAws | { readonly skipped: string };

/** For tests that are named and not run. */
const NOWHERE: RunningAws = { endpoint: "", python: "", build: "" };
const TIMEOUT_MS = 300_000;
const POLL_MS = 100;

async function awaitState(): Promise<State> {
  const file = inject("awsState");
  const deadline = Date.now() + TIMEOUT_MS;
  while (!existsSync(file)) {
    if (Date.now() > deadline) return { skipped: "the environment was not ready in time" };
    await pause(POLL_MS);
  }
  return JSON.parse(readFileSync(file, "utf8")) as State;
}

/** Tests on what prepares in the background; collecting them waits for it. */
export async function describeAws(title: string, suite: (aws: RunningAws) => void): Promise<void> {
  const state = await awaitState();
  if (!("skipped" in state)) {
    describe(title, () => suite(state));
    return;
  }
  if (process.env.CI) throw new Error(`A CI run without AWS proves nothing: ${state.skipped}`);
  describe.skip(`${title} (${state.skipped})`, () => suite(NOWHERE));
}
