/**
 * What is given back goes where it was taken: no process ever gives a shard more than it took
 * there. A bucket as a whole would not show it.
 */

import type { TableCall } from "../table/call.ts";
import type { BucketLanding } from "./ledger.ts";
import { Violation } from "./violation.ts";

export class Returns {
  /** By limit of a shard: per process, what it took and has not given back. */
  readonly #taken = new Map<string, Map<number, bigint>>();

  landed({ process }: TableCall, landings: readonly BucketLanding[]): void {
    for (const { before, after } of landings) {
      if (after === undefined) continue;
      for (const limit of after.limits) {
        const id = `${after.id} ${limit.name}`;
        // A limit that was removed and added again is the same one for open leases.
        const was = before?.limits.find(({ name }) => name === limit.name);
        this.#count(id, process, limit.consumed - (was?.consumed ?? 0n));
      }
    }
  }

  #count(id: string, process: number, amount: bigint): void {
    if (amount === 0n) return;
    const byProcess = this.#taken.get(id) ?? new Map<number, bigint>();
    this.#taken.set(id, byProcess);
    const left = (byProcess.get(process) ?? 0n) + amount;
    byProcess.set(process, left);
    if (left >= 0n) return;
    const detail = `process ${process} gave back ${-left} milli more than it had taken there`;
    throw new Violation("leases", id, detail);
  }
}
