/** One worker, in this process. */

import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { type Random, systemRandom } from "@zae-limiter/limiter/base/random.ts";
import { systemTimer, type Timer } from "@zae-limiter/limiter/base/time.ts";
import type { Fleet } from "./fleet.ts";
import type { Load } from "./load.ts";
import type { LoadChange, Turn } from "./model.ts";
import type { Plan } from "./plan.ts";
import type { Slice } from "./slice.ts";
import { Worker } from "./worker.ts";

interface LocalFleetOptions {
  readonly load: Load;
  readonly limiter: RateLimiter;
  readonly plan: Plan;
  readonly onSlice: (worker: number, slice: Slice) => void;
  readonly timer?: Timer;
  readonly turn?: Turn;
  readonly random?: Random;
}

export class LocalFleet implements Fleet {
  readonly #worker: Worker;
  readonly #stopped = new AbortController();

  constructor({ onSlice, ...options }: LocalFleetOptions) {
    this.#worker = new Worker({
      ...THIS_PROCESS,
      ...options,
      place: { worker: 0, workers: 1, doneMs: 0 },
      signal: this.#stopped.signal,
      onSlice: (slice) => onSlice(0, slice),
    });
  }

  run(): Promise<void> {
    return this.#worker.run();
  }

  change(change: LoadChange): void {
    this.#worker.change(change);
  }

  stop(): void {
    this.#stopped.abort();
  }
}

/** The time, the randomness and the processor of this process, for a worker in it. */
export const THIS_PROCESS = {
  timer: systemTimer,
  turn: () => new Promise<void>((resolve) => void setImmediate(resolve)),
  random: systemRandom,
  cpuMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
} as const;
