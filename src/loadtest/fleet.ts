/** The workers of a run, wherever they are. */

import type { LoadChange } from "./model.ts";

export interface Fleet {
  /** Ends when the last worker has. Results come in meanwhile. */
  run(): Promise<void>;
  /** Changes the load of all workers together. */
  change(change: LoadChange): void;
  /** Ends the run early: users leave, and their leases end. */
  stop(): void;
}
