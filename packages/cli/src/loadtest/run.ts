/** One run from its beginning to its report. */

import type { MakeFleet } from "@zae-limiter/loadtest/fleet.ts";
import { LocalFleet } from "@zae-limiter/loadtest/local-fleet.ts";
import type { Plan } from "@zae-limiter/loadtest/plan.ts";
import { Results } from "@zae-limiter/loadtest/results.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { Prepared } from "./prepared.ts";
import { ProcessFleet } from "./process-fleet.ts";

interface Ran {
  readonly results: Results;
  readonly elapsedMs: number;
}

/** Returns workers on this machine: this process, or several others. */
export function localWorkers(prepared: Prepared, workers: number): MakeFleet {
  return (plan, results) => {
    if (workers === 1) {
      const { load, limiter } = prepared;
      const onSlice = results.add.bind(results);
      return new LocalFleet({ load, limiter, plan, onSlice });
    }
    return new ProcessFleet({
      file: prepared.file,
      store: prepared.store,
      plan,
      workers,
      onSlice: (worker, slice) => results.add(worker, slice),
      onLost: (lost) => results.lost.push(lost),
    });
  };
}

/** Lets the workers work; the signal ends the run early, with what there is. */
export async function runLoad(
  terminal: Terminal,
  plan: Plan,
  makeFleet: MakeFleet,
  signal: AbortSignal,
  follow?: (results: Results, over: AbortSignal) => Promise<void>,
): Promise<Ran> {
  const results = new Results();
  const fleet = makeFleet(plan, results);
  const stop = () => fleet.stop();
  const over = new AbortController();
  const following = follow?.(results, over.signal);
  const startedMs = terminal.timer.nowMs();
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    await fleet.run();
  } finally {
    signal.removeEventListener("abort", stop);
    over.abort();
    await following;
  }
  return { results, elapsedMs: terminal.timer.nowMs() - startedMs };
}
