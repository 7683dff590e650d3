/** Tells the operator once when the store goes away, and once when it is back. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";

/** How long to wait between two looks at a store that is away. */
const PROBE_MS = 2000;

export interface StoreWatchOptions {
  /** Asks the store for a sign of life. */
  readonly isAvailable: () => Promise<boolean>;
  readonly timer: Timer;
  readonly tell: (line: string) => void;
}

export class StoreWatch {
  readonly #options: StoreWatchOptions;
  readonly #stopped = new AbortController();
  #isLost = false;

  constructor(options: StoreWatchOptions) {
    this.#options = options;
  }

  /** A call could not be decided, or passed uncounted; `error` says why where that is known. */
  lost(error?: Error): void {
    if (this.#isLost || this.#stopped.signal.aborted) return;
    this.#isLost = true;
    const reason = error === undefined ? "" : `: ${withoutContext(error.message)}`;
    this.#options.tell(`The store cannot be reached${reason}`);
    void this.#untilBack();
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** A call may be decided without the store, so that only the store itself tells it is back. */
  async #untilBack(): Promise<void> {
    const { isAvailable, timer, tell } = this.#options;
    const { signal } = this.#stopped;
    do await timer.sleep(PROBE_MS, signal, true);
    while (!signal.aborted && !(await isAvailable()));
    if (signal.aborted) return;
    this.#isLost = false;
    tell("The store answers again");
  }
}

/** Leaves out the entity and the resource of the call that failed first: they are not the cause. */
function withoutContext(message: string): string {
  return message.replace(/ \[[^[\]]*\]$/, "");
}
