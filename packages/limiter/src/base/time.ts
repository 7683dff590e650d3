/** Time is an argument: everything that needs it is given a clock, a timer or a deadline. */

/** Epoch milliseconds, whole. */
export type Clock = () => number;

/** The clock of this machine. */
export const systemClock: Clock = () => Date.now();

/** Machines that keep their clock in step differ by less; the server's date has whole seconds. */
const SKEW_MS_MAX = 2000;

/**
 * Returns a clock that follows the server of a store once the two differ by more than rounding
 * explains. Otherwise a process with a fast clock would get refill before all other processes.
 */
export function serverClock(
  local: Clock,
  server: { readonly serverDateSkewMs: number | undefined },
  roundedMs = SKEW_MS_MAX,
): Clock {
  return () => {
    const skew = server.serverDateSkewMs;
    return skew === undefined || Math.abs(skew) <= roundedMs ? local() : local() + Math.round(skew);
  };
}

/**
 * Whether a time lies less than `withinMs` before `nowMs`. One that lies ahead does not: the clock
 * was set back since, and proves nothing.
 */
export function isRecent(atMs: number | undefined, nowMs: number, withinMs: number): boolean {
  return atMs !== undefined && nowMs >= atMs && nowMs - atMs < withinMs;
}

/** Measures durations and waits: in real time, or virtually in simulations. */
export interface Timer {
  /** Milliseconds since some moment, which is not the time of day; never runs backwards. */
  nowMs(): number;
  /**
   * Ends early, without an error, when the signal aborts. A sleep in the background does not keep
   * the process alive.
   */
  sleep(ms: number, signal?: AbortSignal, background?: boolean): Promise<void>;
}

/** The timer of this machine, in real time. */
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

/** The end of a call, by a timer. */
export class Deadline {
  readonly #timer: Timer;
  /** When the call ends, by the timer. */
  readonly atMs: number;
  /** How long the call may take in all, in milliseconds. */
  readonly spanMs: number;

  constructor(timer: Timer, spanMs: number) {
    this.#timer = timer;
    this.atMs = timer.nowMs() + spanMs;
    this.spanMs = spanMs;
  }

  /** Milliseconds left; negative when the time is over. */
  get leftMs(): number {
    return this.atMs - this.#timer.nowMs();
  }

  /** Milliseconds since the call began. */
  get passedMs(): number {
    return this.spanMs - this.leftMs;
  }

  get isOver(): boolean {
    return this.leftMs <= 0;
  }

  /** Milliseconds that one request to a store may take: at least one. */
  get timeoutMs(): number {
    return Math.max(1, this.leftMs);
  }

  /** Returns the later of two deadlines. */
  latest(other: Deadline): Deadline {
    return other.atMs > this.atMs ? other : this;
  }
}
