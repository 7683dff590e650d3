/**
 * Checks that refunds go to the shard that was consumed from: no process refunds more to a shard
 * than it consumed there, or in a shard merged into it. A bucket as a whole would not show it.
 */

import type { TableCall } from "@zae-limiter/testing/table/call.ts";
import type { ShardImage } from "./bucket-image.ts";
import type { BucketLanding } from "./ledger.ts";
import { Violation } from "./violation.ts";

const SHARDS_MAX = 64;

export class Returns {
  /** Amounts that each process consumed and has not refunded, by limit of a shard. */
  readonly #taken = new Map<string, Map<number, bigint>>();

  readonly #merged = new Set<string>();

  landed({ process }: TableCall, landings: readonly BucketLanding[]): void {
    for (const { before, after, merged } of landings) {
      if (after === undefined) continue;
      if (merged !== undefined) this.#mergeAll(after);
      for (const limit of after.limits) {
        const place = this.#merged.has(after.bucket) ? after.bucket : after.id;
        const id = `${place} ${limit.name}`;
        // A limit that was removed and added again is the same one for open leases.
        const was = before?.limits.find(({ name }) => name === limit.name);
        this.#count(id, process, limit.consumed - (was?.consumed ?? 0n));
      }
    }
  }

  /**
   * Counts the bucket as a whole from now on: what was consumed from a shard that is gone is
   * refunded to the one that has its share, or to that shard when it was split off again.
   */
  #mergeAll({ bucket, limits }: ShardImage): void {
    this.#merged.add(bucket);
    for (const { name } of limits) {
      for (let shard = 0; shard < SHARDS_MAX; shard += 1) {
        const id = `${bucket} ${shard} ${name}`;
        const taken = this.#taken.get(id);
        this.#taken.delete(id);
        for (const [process, amount] of taken ?? []) {
          this.#count(`${bucket} ${name}`, process, amount);
        }
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
