/** The workers of a run, wherever they are. */

import type { LoadChange } from "./model.ts";
import type { Plan } from "./plan.ts";
import type { Results } from "./results.ts";

export interface Fleet {
  /** Runs until the last worker has ended. Results come in meanwhile. */
  run(): Promise<void>;
  /** Changes the load of all workers together. */
  change(change: LoadChange): void;
  /** Ends the run early: users leave, and their leases end. */
  stop(): void;
}

/** Starts the workers of a run, which report to `results`. */
export type MakeFleet = (plan: Plan, results: Results) => Fleet;
