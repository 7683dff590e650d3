/** Bounds the calls whose client has left and whose answers are read on for their usage. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";

/** How reading on has ended, for the metric. */
export type ReadOnOutcome = "complete" | "ended" | "no place";

export interface ReadingOnOptions {
  /** Answers that are read on at a time. */
  readonly max: number;
  readonly timeoutMs: number;
  readonly timer: Timer;
  readonly onOutcome: (outcome: ReadOnOutcome) => void;
}

export class ReadingOn {
  readonly #options: ReadingOnOptions;
  readonly #stopped = new AbortController();
  #count = 0;

  constructor(options: ReadingOnOptions) {
    this.#options = options;
  }

  /**
   * Lets a call be read on, and calls `end` after the time that it may take, or when the gateway
   * stops. The call ends it by the function that is returned; `undefined`: no place is left.
   */
  start(end: () => void): ((isComplete: boolean) => void) | undefined {
    const { max, timeoutMs, timer, onOutcome } = this.#options;
    const { signal: stopped } = this.#stopped;
    if (stopped.aborted || this.#count >= max) {
      onOutcome("no place");
      return undefined;
    }
    this.#count += 1;
    const done = new AbortController();
    const signal = AbortSignal.any([done.signal, stopped]);
    void timer.sleep(timeoutMs, signal, true).then(() => {
      if (!done.signal.aborted) end();
    });
    return (isComplete) => {
      done.abort("done");
      this.#count -= 1;
      onOutcome(isComplete ? "complete" : "ended");
    };
  }

  /** Ends all calls that are read on, and lets none begin. */
  stop(): void {
    this.#stopped.abort("stopped");
  }
}
