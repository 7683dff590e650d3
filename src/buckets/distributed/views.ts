/**
 * What this client last saw of each bucket shard. A view is a hint, never a permission: it picks
 * the form of a write, whose conditions then decide.
 *
 * A limit that looks full may not be: others may have taken since. Each view therefore keeps how
 * often its limits turned out to be full, and guesses what was right more often than not.
 */

import { LRUCache } from "lru-cache";
import type { StoredBucket } from "../../records/bucket-item.ts";

const VIEWS_MAX = 10_000;
/** Weight of the newest sighting. */
const LEARNING_RATE = 0.1;

export interface View {
  /** `undefined`: there is no such item. */
  readonly bucket: StoredBucket | undefined;
  /** When a response showed it; views that were worked out here count as never seen. */
  readonly seenAtMs: number;
  /** Per limit, how often it turned out to be full, from 0 to 1. */
  readonly fullness: ReadonlyMap<string, number>;
}

const NOTHING_LEARNED: ReadonlyMap<string, number> = new Map();

export class Views {
  readonly #views = new LRUCache<string, View>({ max: VIEWS_MAX });

  get(id: string): View | undefined {
    return this.#views.get(id);
  }

  /** A response has shown the item, or that there is none. */
  see(id: string, bucket: StoredBucket | undefined, nowMs: number): View {
    const fullness = this.#views.get(id)?.fullness ?? NOTHING_LEARNED;
    const view = { bucket, seenAtMs: nowMs, fullness };
    this.#views.set(id, view);
    return view;
  }

  /**
   * The item will look like this after a write whose response did not show it yet, so that calls
   * which start meanwhile count with it.
   */
  expect(
    id: string,
    bucket: StoredBucket,
    balances: readonly { limitName: string; tokensMilli: number }[],
  ): void {
    const limits = new Map(bucket.limits);
    for (const { limitName, tokensMilli } of balances) {
      const stored = limits.get(limitName);
      if (stored !== undefined) limits.set(limitName, { ...stored, tokensMilli });
    }
    const fullness = this.#views.get(id)?.fullness ?? NOTHING_LEARNED;
    this.#views.set(id, {
      bucket: { ...bucket, limits },
      seenAtMs: Number.NEGATIVE_INFINITY,
      fullness,
    });
  }

  /** Remembers whether limits were full when somebody looked. */
  learn(id: string, sightings: readonly { limitName: string; full: boolean }[]): void {
    const view = this.#views.get(id);
    if (view === undefined) return;
    const fullness = new Map(view.fullness);
    for (const { limitName, full } of sightings) {
      const known = fullness.get(limitName) ?? 1;
      fullness.set(limitName, known + LEARNING_RATE * ((full ? 1 : 0) - known));
    }
    this.#views.set(id, { ...view, fullness });
  }

  forget(id: string): void {
    this.#views.delete(id);
  }

  clear(): void {
    this.#views.clear();
  }
}
