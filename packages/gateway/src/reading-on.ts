/** Bounds the calls whose client has left and whose answers are read on for their usage. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";

/** How reading on has ended, for the metric. */
export type ReadOnOutcome = "complete" | "ended" | "no place";

/** The part of all places that the calls of one entity may have. */
const ENTITY_SHARE = 0.25;

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
  /** Calls that are read on, by entity. */
  readonly #counts = new Map<string, number>();
  #count = 0;

  constructor(options: ReadingOnOptions) {
    this.#options = options;
  }

  /**
   * Lets a call be read on, and calls `end` after the time that it may take, or when the gateway
   * stops. The call ends it by the function that is returned; `undefined`: no place is left.
   */
  start(entityId: string, end: () => void): ((isComplete: boolean) => void) | undefined {
    const { max, timeoutMs, timer, onOutcome } = this.#options;
    const { signal: stopped } = this.#stopped;
    const own = this.#counts.get(entityId) ?? 0;
    if (stopped.aborted || this.#count >= max || own >= Math.ceil(max * ENTITY_SHARE)) {
      onOutcome("no place");
      return undefined;
    }
    this.#count += 1;
    this.#counts.set(entityId, own + 1);
    const done = new AbortController();
    const signal = AbortSignal.any([done.signal, stopped]);
    void timer.sleep(timeoutMs, signal, true).then(() => {
      if (!done.signal.aborted) end();
    });
    return (isComplete) => {
      done.abort("done");
      this.#count -= 1;
      const left = (this.#counts.get(entityId) ?? 1) - 1;
      if (left === 0) this.#counts.delete(entityId);
      else this.#counts.set(entityId, left);
      onOutcome(isComplete ? "complete" : "ended");
    };
  }

  /** Ends all calls that are read on, and lets none begin. */
  stop(): void {
    this.#stopped.abort("stopped");
  }
}
