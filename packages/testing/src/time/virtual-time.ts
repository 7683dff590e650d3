/**
 * Time that moves only when a test moves it: a clock, a timer, and planned events.
 *
 * Between two events all promises that can settle do, so that a run depends on the plan alone: the
 * same plan leads to the same run, however fast or busy the machine is.
 */

import type { Clock, Timer } from "@zae-limiter/limiter/base/time.ts";
import { show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { EventQueue } from "./event-queue.ts";

/** 2027-01-15: later than any time that an item could be compared with. */
const START_MS = 1_800_000_000_000;

/**
 * A clock and a timer for tests. Nothing sleeps: `pass` and `until` move from one planned event to
 * the next.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * import { VirtualTime } from 'zae-limiter/testing';
 * const time = new VirtualTime();
 * const limiter = await RateLimiter.open('memory:', { clock: time.clock, timer: time.timer });
 * const request = { entityId: 'key-1', resource: 'api', limits: ['rpm:1'], consume: { rpm: 1 } };
 * await limiter.acquire(request);
 * const before = time.nowMs;
 * await time.until(limiter.acquire({ ...request, maxWaitSeconds: 90 }));
 * console.log(Math.round((time.nowMs - before) / 1000)); // 60
 * await limiter.close();
 * ```
 */
export class VirtualTime {
  readonly #queue = new EventQueue();
  readonly #startMs: number;
  #nowMs: number;
  #events = 0;
  /** Calls to a real server or file, during which no virtual time passes. */
  #underWay = 0;
  readonly #resumes: (() => void)[] = [];

  constructor(startMs: number = START_MS) {
    if (!Number.isSafeInteger(startMs)) {
      const reason = `expected whole epoch milliseconds, got ${show(startMs)}`;
      throw new ValidationError("startMs", startMs, reason);
    }
    this.#startMs = startMs;
    this.#nowMs = startMs;
  }

  /** Epoch milliseconds; may have a fraction. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** How many events there have been. */
  get events(): number {
    return this.#events;
  }

  /** For the option `clock`. */
  readonly clock: Clock = () => Math.floor(this.#nowMs);

  /** For the option `timer`. */
  readonly timer: Timer = {
    nowMs: () => this.#nowMs - this.#startMs,
    sleep: (ms, signal) => this.#sleep(ms, signal),
  };

  /** Plans a call; the result cancels it. */
  after(ms: number, run: () => void): () => void {
    const event = this.#queue.plan(this.#nowMs + Math.max(0, ms), run);
    return () => {
      event.run = undefined;
    };
  }

  /**
   * Moves the clock at once, also backwards, as when the clock of a machine is set. What is due
   * begins; use `pass` to let it end.
   */
  advance(ms: number): void {
    this.#nowMs += ms;
    for (let next = this.#queue.nextMs; next !== undefined && next <= this.#nowMs; ) {
      this.#events += 1;
      this.#queue.take().run?.();
      next = this.#queue.nextMs;
    }
  }

  /** Lets everything happen that needs no time. */
  settle(): Promise<void> {
    return this.pass(0);
  }

  /** Stops time until `work` is done: for calls to a real server or file. */
  async during<T>(work: Promise<T>): Promise<T> {
    this.#underWay += 1;
    try {
      return await work;
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) for (const resume of this.#resumes.splice(0)) resume();
    }
  }

  /** Lets time pass, with everything that happens meanwhile. */
  async pass(ms: number): Promise<void> {
    const endMs = this.#nowMs + Math.max(0, ms);
    await this.#run(() => {
      const next = this.#queue.nextMs;
      return next === undefined || next > endMs;
    });
    this.#nowMs = endMs;
  }

  /** Lets time pass until `work` is done. Throws when nothing is left that could do it. */
  async until<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const settled = () => {
      done = true;
    };
    work.then(settled, settled);
    await this.#run(() => done || this.#queue.nextMs === undefined);
    if (done) return work;
    throw new Error("Nothing is planned any more, and what was waited for is not done");
  }

  /** Runs one event after the other, each with all the promises it leads to. */
  #run(isOver: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const soon = () => setImmediate(step);
      const step = () => {
        try {
          if (this.#underWay > 0) return this.#resumes.push(soon);
          if (isOver()) return resolve();
          const event = this.#queue.take();
          this.#nowMs = Math.max(this.#nowMs, event.atMs);
          this.#events += 1;
          event.run?.();
        } catch (error) {
          return reject(error as Error);
        }
        soon();
      };
      soon();
    });
  }

  #sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        callOff();
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const callOff = this.after(ms, wake);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }
}
