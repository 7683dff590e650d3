/** The workers of a run, wherever they are. */

import type { LoadChange } from "./model.ts";

export interface Fleet {
  /** Runs until the last worker has ended. Results come in meanwhile. */
  run(): Promise<void>;
  /** Changes the load of all workers together. */
  change(change: LoadChange): void;
  /** Ends the run early: users leave, and their leases end. */
  stop(): void;
}
