/** A timer that moves when a test moves it, while sockets work in real time. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";

export class ManualTimer implements Timer {
  #nowMs = 0;
  #sleeps: { readonly atMs: number; readonly wake: () => void }[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      this.#sleeps.push({ atMs: this.#nowMs + ms, wake: resolve });
      signal?.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  /** Lets time pass, and wakes what has slept until then. */
  pass(ms: number): void {
    this.#nowMs += ms;
    const due = this.#sleeps.filter(({ atMs }) => atMs <= this.#nowMs);
    this.#sleeps = this.#sleeps.filter(({ atMs }) => atMs > this.#nowMs);
    for (const { wake } of due) wake();
  }
}
