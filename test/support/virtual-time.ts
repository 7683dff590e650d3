/** A clock and a timer that move together, and only when a test says so. */

import { setTimeout as pause, setImmediate as tick } from "node:timers/promises";
import type { Clock } from "../../src/domain/clock.ts";
import type { Timer } from "../../src/domain/timer.ts";

interface Sleeper {
  readonly dueMs: number;
  readonly wake: () => void;
}

export class VirtualTime {
  #nowMs: number;
  readonly #sleepers = new Set<Sleeper>();
  #underWay = 0;

  /** Starts at the real time: an engine may delete items whose time to live is in the past. */
  constructor(startMs: number = Date.now()) {
    this.#nowMs = startMs;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  readonly clock: Clock = () => this.#nowMs;

  readonly timer: Timer = {
    nowMs: () => this.#nowMs,
    sleep: (ms, signal) => this.#sleep(ms, signal),
  };

  /** Time stands still while this is under way: a call to a real engine takes none. */
  async during<T>(work: Promise<T>): Promise<T> {
    this.#underWay += 1;
    try {
      return await work;
    } finally {
      this.#underWay -= 1;
    }
  }

  /** Moves on, and wakes those whose time has come. */
  advance(ms: number): void {
    this.#nowMs += ms;
    for (const sleeper of this.#inOrder()) if (sleeper.dueMs <= this.#nowMs) sleeper.wake();
  }

  /** Lets everything run that can run without time passing. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet += 1) {
      await tick();
      while (this.#underWay > 0) {
        await pause(1);
        quiet = 0;
      }
    }
  }

  /** Lets time pass, waking each sleeper at its moment. */
  async pass(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    for (;;) {
      await this.settle();
      const next = this.#inOrder()[0];
      if (next === undefined || next.dueMs > endMs) break;
      this.advance(Math.max(0, next.dueMs - this.#nowMs));
    }
    this.advance(endMs - this.#nowMs);
    await this.settle();
  }

  /** Lets pending work run, then moves to the next sleeper, and so on until `work` is done. */
  async until<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const settled = () => {
      done = true;
    };
    work.then(settled, settled);
    await this.settle();
    while (!done) {
      const next = this.#inOrder()[0];
      if (next === undefined) await pause(1);
      else this.advance(Math.max(0, next.dueMs - this.#nowMs));
      await this.settle();
    }
    return work;
  }

  #inOrder(): Sleeper[] {
    return [...this.#sleepers].sort((left, right) => left.dueMs - right.dueMs);
  }

  #sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const sleeper = { dueMs: this.#nowMs + ms, wake };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }
}
