/** Keeps a value that is read again in the background, never by the call that needs it. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";

export interface RefreshedOptions<T> {
  /** Reads the value; it keeps to the signal, which aborts when time is up. */
  readonly read: (signal: AbortSignal) => Promise<T>;
  readonly timer: Timer;
  /** How long one reading may take, in milliseconds. */
  readonly timeoutMs: number;
  /** Called when a reading fails; the value stays. */
  readonly onFailure?: ((error: Error) => void) | undefined;
}

export class Refreshed<T> {
  readonly #options: RefreshedOptions<T>;
  readonly #stopped = new AbortController();
  #value: T | undefined;
  #attemptedMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  /** `value`: one from earlier, until a newer one is read. */
  constructor(options: RefreshedOptions<T>, value?: T) {
    this.#options = options;
    this.#value = value;
  }

  get value(): T | undefined {
    return this.#value;
  }

  /** Reads the value unless it was tried within this time, in milliseconds; never rejects. */
  refresh(minAgeMs: number): Promise<void> {
    if (this.#reading !== undefined) return this.#reading;
    const nowMs = this.#options.timer.nowMs();
    if (this.#stopped.signal.aborted || nowMs - this.#attemptedMs < minAgeMs) {
      return Promise.resolve();
    }
    this.#attemptedMs = nowMs;
    this.#reading = this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #read(): Promise<void> {
    const { read, timer, timeoutMs, onFailure } = this.#options;
    const done = new AbortController();
    const over = new AbortController();
    const stop = () => over.abort(new Error("the gateway stops"));
    this.#stopped.signal.addEventListener("abort", stop, { once: true });
    void timer.sleep(timeoutMs, done.signal, true).then(() => {
      over.abort(new Error(`no answer within ${timeoutMs} ms`));
    });
    try {
      this.#value = await read(over.signal);
    } catch (error) {
      if (!this.#stopped.signal.aborted) onFailure?.(reasonOf(error, over.signal));
    } finally {
      this.#stopped.signal.removeEventListener("abort", stop);
      done.abort();
    }
  }
}

/** Returns why a reading failed; an abort has its reason in the signal. */
function reasonOf(error: unknown, { aborted, reason }: AbortSignal): Error {
  return (aborted ? reason : error) as Error;
}
