/** Carries out the writes of snapshots. */

import { RateLimiterUnavailable } from "../domain/errors.ts";
import type { Timer } from "../domain/timer.ts";
import type { Item } from "../storage/item.ts";
import type { ItemStore } from "../storage/item-store.ts";
import { planSnapshot } from "./snapshot-write.ts";
import type { SnapshotTally } from "./usage-fold.ts";

const ATTEMPTS_MAX = 5;
const PAUSE_MS = 50;

export interface SnapshotWriterOptions {
  readonly store: ItemStore;
  readonly timer: Timer;
  readonly retentionDays: number;
}

export class SnapshotWriter {
  readonly #options: SnapshotWriterOptions;

  constructor(options: SnapshotWriterOptions) {
    this.#options = options;
  }

  /**
   * Counts a tally; false when all of it was counted before. A write whose outcome nobody knows is
   * simply repeated: had it happened, the mark would say so.
   */
  async write(tally: SnapshotTally): Promise<boolean> {
    const { store, retentionDays } = this.#options;
    let stored: Item | undefined;
    for (let attempt = 1; ; attempt += 1) {
      const write = planSnapshot(tally, stored, retentionDays);
      if (write === undefined) return false;
      try {
        const result = await store.update(write.key, write.change, write.condition);
        if (result.ok) return true;
        stored = result.item;
        if (attempt >= ATTEMPTS_MAX) throw new RateLimiterUnavailable(BUSY, BUSY_DETAILS);
      } catch (error) {
        if (!(error instanceof RateLimiterUnavailable) || attempt >= ATTEMPTS_MAX) throw error;
        await this.#options.timer.sleep(PAUSE_MS * 2 ** attempt);
      }
    }
  }
}

const BUSY = "The snapshot was changed by another aggregator too often";
const BUSY_DETAILS = { reason: "throttled", nothingWritten: true } as const;
