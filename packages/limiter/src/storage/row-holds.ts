/**
 * The rows that a step holds. Where warm calls change a row all the time, no step on it would ever
 * be done: after some conflicts the step makes such rows not warm, and other steps leave them alone
 * until it has written them, or until its time is over.
 */

import type { Clock } from "../base/time.ts";
import type { Key } from "./item.ts";
import type { Cell } from "./item-table.ts";
import { idOf } from "./step-cells.ts";
import { type WarmHold, warmRowIn } from "./warm-buckets.ts";

/** Conflicts after which a step holds rows, and for how long at most. */
const FREE_ATTEMPTS = 6;
const HOLD_MS = 500;

/** Asks the server to hold a row; absent where no row is warm. */
export type HoldRow = (hold: WarmHold) => Promise<boolean>;

interface HeldRow {
  readonly key: Key;
  readonly endMs: number;
}

export class RowHolds {
  readonly #ask: HoldRow | undefined;
  readonly #clock: Clock;
  readonly #held = new Map<string, HeldRow>();
  #seen = new Map<string, string | undefined>();

  constructor(ask: HoldRow | undefined, clock: Clock) {
    this.#ask = ask;
    this.#clock = clock;
  }

  /** Returns whether another step holds one of the rows, so that a commit would undo its work. */
  areOthers(reads: readonly Cell[]): boolean {
    if (this.#ask === undefined) return false;
    const nowMs = this.#clock();
    return reads.some(({ key, item }) => {
      const endMs = -(warmRowIn(item)?.until ?? 0);
      return endMs > nowMs && this.#held.get(idOf(key))?.endMs !== endMs;
    });
  }

  /**
   * Holds the rows that have changed since the attempt before. All steps do that in one order, so
   * that no two wait for each other.
   */
  async afterConflict(reads: readonly Cell[], attempt: number): Promise<void> {
    if (this.#ask === undefined) return;
    const rows = reads.filter(({ item }) => warmRowIn(item) !== undefined);
    const seen = this.#seen;
    this.#seen = new Map(rows.map(({ key, revision }) => [idOf(key), revision]));
    if (attempt < FREE_ATTEMPTS) return;
    const isBusy = ({ key, revision }: Cell) => seen.get(idOf(key)) !== revision;
    const busy = rows.filter(isBusy).toSorted(byId);
    for (const { key } of busy) {
      const nowMs = this.#clock();
      const endMs = nowMs + HOLD_MS;
      if (!(await this.#ask({ key, nowMs, endMs }))) return;
      this.#held.set(idOf(key), { key, endMs });
    }
  }

  /** Releases the rows that the step holds and has not written. */
  async release(written: readonly { readonly key: Key }[]): Promise<void> {
    for (const { key } of written) this.#held.delete(idOf(key));
    for (const { key, endMs } of this.#held.values()) {
      await this.#ask?.({ key, nowMs: endMs + 1, endMs: 1 });
    }
  }
}

function byId(one: Cell, other: Cell): number {
  return idOf(one.key) < idOf(other.key) ? -1 : 1;
}
