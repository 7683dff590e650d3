/** The feed of a log that any process may append to: it is read page by page, and polled. */

import { stoppable } from "../base/stoppable.ts";
import type { Timer } from "../base/time.ts";
import type { ChangeRecord, ChangesOptions } from "./item-store.ts";
import type { LogPage, LogStart } from "./item-table.ts";

/** Other processes cannot wake a reader, so it polls. */
const POLL_MS = 100;
const PAGE = 100;

export class PolledFeed {
  readonly #log: (from: LogStart, limit: number) => Promise<LogPage>;
  readonly #timer: Timer;
  readonly #closed: AbortSignal;
  readonly #waiting = new Set<() => void>();
  /** Counts the calls of `wake`, for readers that were not waiting yet. */
  #wakes = 0;

  constructor(options: {
    readonly log: (from: LogStart, limit: number) => Promise<LogPage>;
    readonly timer: Timer;
    readonly closed: AbortSignal;
  }) {
    this.#log = options.log;
    this.#timer = options.timer;
    this.#closed = options.closed;
  }

  /** Wakes the readers after a change by this process. */
  wake(): void {
    this.#wakes += 1;
    for (const wake of this.#waiting) wake();
  }

  read({ from = "now", signal }: ChangesOptions): AsyncIterableIterator<ChangeRecord> {
    return stoppable((ended) => this.#records(from, ended), this.#closed, signal);
  }

  async *#records(from: LogStart, ended: AbortSignal): AsyncGenerator<ChangeRecord, undefined> {
    let start = from;
    while (!ended.aborted) {
      const wakes = this.#wakes;
      const page = await this.#page(start, ended);
      if (page === undefined) return;
      const { records, position } = page;
      for (const record of records) {
        if (ended.aborted) return;
        yield record;
      }
      const isEnd = records.length === 0 && start !== "now";
      start = { after: position };
      if (isEnd && wakes === this.#wakes) await this.#more(ended);
    }
  }

  /** Returns a page of the log; `undefined` when the reader was stopped meanwhile. */
  async #page(from: LogStart, ended: AbortSignal): Promise<LogPage | undefined> {
    try {
      return await this.#log(from, PAGE);
    } catch (error) {
      if (ended.aborted) return undefined;
      throw error;
    }
  }

  /** Waits until this process writes, the next poll is due, or the reader is stopped. */
  async #more(ended: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const wake = () => woken.abort();
    this.#waiting.add(wake);
    ended.addEventListener("abort", wake, { once: true });
    await this.#timer.sleep(POLL_MS, woken.signal);
    ended.removeEventListener("abort", wake);
    this.#waiting.delete(wake);
  }
}
