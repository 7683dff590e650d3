/**
 * Workers that are invoked, and return. A round is short enough for the time limit of a Lambda
 * function. One that fails or does not come back is counted as a lost worker, and the next round
 * takes its place.
 */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { InfrastructureError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Fleet } from "./fleet.ts";
import type { RoundAnswer, RoundOrder } from "./lambda-worker.ts";
import type { LoadChange } from "./model.ts";
import type { Plan } from "./plan.ts";
import type { LostWorker } from "./results.ts";
import { Slice } from "./slice.ts";

interface RoundFleetOptions {
  readonly scenario: string;
  readonly store: RoundOrder["store"];
  readonly plan: Plan;
  readonly workers: number;
  readonly roundMs: number;
  /** Invokes the function once. Throws when it fails; never invokes it a second time. */
  readonly invoke: (order: RoundOrder) => Promise<RoundAnswer>;
  readonly onSlice: (worker: number, slice: Slice) => void;
  readonly onLost: (lost: LostWorker) => void;
  readonly timer: Timer;
}

/** The pause of a worker after a round was lost. */
const PAUSE_MS = 500;
/** The most lost rounds of one worker in a row. */
const LOST_MAX = 5;

export class RoundFleet implements Fleet {
  readonly #options: RoundFleetOptions;
  readonly #stopped = new AbortController();
  #plan: Plan;
  #startedMs = 0;

  constructor(options: RoundFleetOptions) {
    this.#options = options;
    this.#plan = options.plan;
  }

  async run(): Promise<void> {
    const { workers, timer } = this.#options;
    const all = Array.from({ length: workers }, (_, worker) => worker);
    // Cold starts and a missing scenario or store must show before the time counts.
    await Promise.all(all.map(() => this.#ready()));
    this.#startedMs = timer.nowMs();
    await Promise.all(all.map((worker) => this.#work(worker)));
  }

  /** Applies from the next round of each worker on. */
  change(change: LoadChange): void {
    this.#plan = { ...this.#plan, ...change };
  }

  /** Rounds that are under way end by themselves. */
  stop(): void {
    this.#stopped.abort();
  }

  async #ready(): Promise<void> {
    const { scenario, store, invoke } = this.#options;
    const failure = (message: string, cause?: unknown) =>
      new InfrastructureError(`The workers could not start: ${message}`, { cause });
    const answer = await invoke({ scenario, store, plan: this.#plan }).catch((error: Error) => {
      throw failure(error.message, error);
    });
    if (answer.type === "failed") throw failure(answer.message);
  }

  async #work(worker: number): Promise<void> {
    const { timer, onLost, workers } = this.#options;
    const { signal } = this.#stopped;
    for (let lost = 0; !signal.aborted; ) {
      const doneMs = timer.nowMs() - this.#startedMs;
      if (doneMs >= this.#plan.durationMs) return;
      try {
        await this.#round({ worker, workers, doneMs });
        lost = 0;
      } catch (error) {
        lost += 1;
        const atMs = timer.nowMs() - this.#startedMs;
        onLost({ worker, atMs, reason: (error as Error).message });
        if (lost >= LOST_MAX) return;
        await timer.sleep(PAUSE_MS, signal);
      }
    }
  }

  async #round(place: NonNullable<RoundOrder["place"]>): Promise<void> {
    const { scenario, store, roundMs, invoke, onSlice } = this.#options;
    const answer = await invoke({ scenario, store, plan: this.#plan, place, roundMs });
    if (answer.type === "failed") throw new Error(answer.message);
    if (answer.type !== "done") throw new Error("the worker did nothing");
    for (const slice of answer.slices) onSlice(place.worker, Slice.fromWire(slice));
  }
}
