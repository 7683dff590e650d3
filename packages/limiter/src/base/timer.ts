/** Waiting and deadlines: real by default, virtual in simulations. */

/** Measures durations and waits. Its time is not the time of day. */
export interface Timer {
  /** Milliseconds since some moment; never runs backwards. */
  nowMs(): number;
  /**
   * Ends early, without an error, when the signal aborts. A sleep in the background does not keep
   * the process alive.
   */
  sleep(ms: number, signal?: AbortSignal, background?: boolean): Promise<void>;
}

export const systemTimer: Timer = {
  nowMs: () => performance.now(),
  sleep: (ms, signal, background) =>
    new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const done = () => {
        clearTimeout(timeout);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timeout = setTimeout(done, ms);
      if (background === true) timeout.unref();
      signal?.addEventListener("abort", done, { once: true });
    }),
};
