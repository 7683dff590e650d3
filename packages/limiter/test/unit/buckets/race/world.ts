/** Everything a race shares: the time, the scheduler that picks the next actor, and the faults. */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Scheduler } from "fast-check";

/**
 * The fault of a call. `throttled`, `conflict`: refused, nothing was done. `lost`: it was done, and
 * its response is lost.
 */
export type Fault = "throttled" | "conflict" | "lost";

/** Deadlines only come when nothing else can happen any more; shorter waits race with the rest. */
const SHORT_MS = 400;

interface Sleeper {
  readonly dueMs: number;
  readonly wake: () => void;
}

/** Milli-tokens by limit that each actor consumes by a write that several of them share. */
export type Shares = ReadonlyMap<number, ReadonlyMap<string, number>>;

/**
 * The actor that makes a call, or the actors that share it: all that an actor sets off counts for
 * it, in the background too. One for all races, because Node 20 asks every storage that ever was at
 * every promise.
 */
export const ACTOR = new AsyncLocalStorage<number | Shares>();

export class World {
  /** The time on every clock. */
  nowMs = 1_800_000_000_000;
  /** Calls before that are not part of the race. */
  racing = false;
  readonly scheduler: Scheduler;
  readonly actor = ACTOR;
  readonly #faults: ReadonlyMap<number, Fault>;
  readonly #sleepers = new Set<Sleeper>();
  #timerMs = 0;
  #calls = 0;

  constructor(scheduler: Scheduler, faults: ReadonlyMap<number, Fault>) {
    this.scheduler = scheduler;
    this.#faults = faults;
  }

  readonly clock = (): number => this.nowMs;

  readonly timer: Timer = {
    nowMs: () => this.#timerMs,
    sleep: (ms, signal) => {
      if (signal?.aborted === true) return Promise.resolve();
      if (ms < SHORT_MS) return this.turn("sleeps");
      return new Promise((resolve) => {
        const sleeper = { dueMs: this.#timerMs + ms, wake: resolve };
        this.#sleepers.add(sleeper);
        signal?.addEventListener("abort", () => {
          this.#sleepers.delete(sleeper);
          resolve();
        });
      });
    },
  };

  /** Waits until the scheduler picks this one. */
  async turn(label: string): Promise<void> {
    await this.scheduler.schedule(Promise.resolve(), `${this.actor.getStore() ?? "-"} ${label}`);
  }

  /** The fault of the next call, if it has one. */
  nextFault(): Fault | undefined {
    this.#calls += 1;
    return this.#faults.get(this.#calls);
  }

  /** Lets everything happen that can. */
  async untilIdle(): Promise<void> {
    do await this.scheduler.waitIdle();
    while (this.#wakeNext());
  }

  #wakeNext(): boolean {
    const next = [...this.#sleepers].sort((left, right) => left.dueMs - right.dueMs)[0];
    if (next === undefined) return false;
    this.#sleepers.delete(next);
    this.#timerMs = next.dueMs;
    next.wake();
    return true;
  }
}

export function unavailable(fault: Fault, nothingWritten: boolean): RateLimiterUnavailable {
  return new RateLimiterUnavailable(`the call was ${fault}`, {
    reason: fault === "lost" ? "timeout" : "throttled",
    nothingWritten,
  });
}
