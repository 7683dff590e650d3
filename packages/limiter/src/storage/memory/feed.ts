/** The feed of a memory store: the newest changes, and readers that wait for more. */

import { stoppable } from "../../base/stoppable.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import type { Item, Key } from "../item.ts";
import type { ChangeRecord, ChangesOptions } from "../item-store.ts";

/** How many changes are kept for readers that come later or lag behind. */
const KEPT = 10_000;
const SHARD = "memory";

/**
 * The changes of a store in one process, and its feed. It keeps the newest 10,000.
 *
 * @example
 * ```ts
 * import { ChangeLog } from 'zae-limiter/testing';
 * const log = new ChangeLog();
 * const key = { PK: 'ns/ENTITY#key-1', SK: '#META' };
 * log.append(key, undefined, { ...key, name: 'first' }, 1_800_000_000_000, false);
 * for await (const { after } of log.read({ from: 'oldest' })) {
 *   console.log(after?.['name']); // first
 *   break;
 * }
 * ```
 */
export class ChangeLog {
  /** Position of `#records[0]`; positions count from 1 and never repeat. */
  #first = 1;
  #records: ChangeRecord[] = [];
  readonly #waiting = new Set<() => void>();
  #closed = false;

  /** Adds a change, and wakes the readers that wait for one. */
  append(
    key: Key,
    before: Item | undefined,
    after: Item | undefined,
    atMs: number,
    expired: boolean,
  ): void {
    const sequence = String(this.#end).padStart(16, "0");
    const place = { shard: SHARD, sequence, position: sequence };
    this.#records.push({ key, before, after, atMs, expired, ...place });
    // Dropped in chunks, so that dropping costs nothing per change.
    if (this.#records.length >= 2 * KEPT) {
      this.#records = this.#records.slice(-KEPT);
      this.#first += KEPT;
    }
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** Returns the changes from a position on; it waits for more until it is broken off. */
  read({ from = "now", signal }: ChangesOptions): AsyncIterableIterator<ChangeRecord> {
    const now = this.#end;
    return stoppable((ended) => this.#read(from, now, ended), signal);
  }

  /** Ends all readers. */
  close(): void {
    this.#closed = true;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** Reads the log. `now` is its end when the feed was requested, not when it is first read. */
  async *#read(
    from: NonNullable<ChangesOptions["from"]>,
    now: number,
    signal: AbortSignal,
  ): AsyncGenerator<ChangeRecord, undefined> {
    let next = from === "now" ? now : this.#startOf(from);
    while (!this.#closed && !signal.aborted) {
      // A reader that lags too far behind would skip changes without knowing.
      if (next < this.#first) {
        throw new ValidationError("position", next, "these changes are not kept any more");
      }
      const record = this.#records[next - this.#first];
      if (record !== undefined) {
        next += 1;
        yield record;
      } else {
        await this.#more(signal);
      }
    }
  }

  /** The position of the next change. */
  get #end(): number {
    return this.#first + this.#records.length;
  }

  #startOf(from: "oldest" | { readonly after: string }): number {
    if (from === "oldest") return this.#first;
    const next = /^[0-9]+$/.test(from.after) ? Number(from.after) + 1 : Number.NaN;
    if (next <= this.#end) return next;
    throw new ValidationError("position", from.after, "expected the position of a change record");
  }

  #more(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        signal.removeEventListener("abort", wake);
        this.#waiting.delete(wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}
