/** Watches the store: notifies the operator when it is lost and back, and answers `/healthz`. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";

/** How long to wait between two questions to a store that is away, in milliseconds. */
const PROBE_MS = 2000;
/** How long an answer of the store serves all questions about its health, in milliseconds. */
const HEALTH_MS = 1000;

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
  #health: Promise<boolean> | undefined;
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(options: StoreWatchOptions) {
    this.#options = options;
  }

  /** Reports that a call could not be decided, or passed uncounted; `error` says why if known. */
  lost(error?: Error): void {
    if (this.#isLost || this.#stopped.signal.aborted) return;
    this.#isLost = true;
    const reason = error === undefined ? "" : `: ${withoutContext(error.message)}`;
    this.#options.tell(`The store cannot be reached${reason}`);
    void this.#untilBack();
  }

  /** Returns whether the store answers; asks it at most once a second. */
  health(): Promise<boolean> {
    const nowMs = this.#options.timer.nowMs();
    if (this.#health === undefined || nowMs - this.#askedMs >= HEALTH_MS) {
      this.#askedMs = nowMs;
      this.#health = this.#ask();
    }
    return this.#health;
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #ask(): Promise<boolean> {
    const isAvailable = await this.#options.isAvailable().catch(() => false);
    if (!isAvailable) this.lost();
    return isAvailable;
  }

  /** Asks the store until it answers: calls may be decided without it, and prove nothing. */
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
