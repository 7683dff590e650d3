/** Collects the reports of all workers of a run. */

import { Slice } from "./slice.ts";

/** A worker that ended before its time. What it did since its last report is not in the results. */
export interface LostWorker {
  readonly worker: number;
  /** Since the beginning of the run. */
  readonly atMs: number;
  readonly reason: string;
}

export class Results {
  readonly total = new Slice(0);
  readonly lost: LostWorker[] = [];
  readonly #intervals = new Map<number, Slice>();
  readonly #users = new Map<number, Map<number, number>>();
  /** Processor time by worker and interval, to find the busiest one. */
  readonly #cpuMs = new Map<number, number>();

  /** The oldest intervals go when there are more; the total keeps them. */
  constructor(readonly intervalsMax = Number.POSITIVE_INFINITY) {}

  /** Adds a slice of the worker with this number. A slice is added once. */
  add(worker: number, slice: Slice): void {
    this.total.add(slice);
    let merged = this.#intervals.get(slice.interval);
    if (merged === undefined) {
      merged = new Slice(slice.interval);
      this.#intervals.set(slice.interval, merged);
      this.#users.set(slice.interval, new Map());
      this.#forget();
    }
    merged.add(slice);
    // A slice that comes after its interval was forgotten is in the total alone.
    const users = this.#users.get(slice.interval) ?? new Map<number, number>();
    // A worker that ends reports a last time, when its users have left.
    users.set(worker, Math.max(users.get(worker) ?? 0, slice.users));
    merged.users = [...users.values()].reduce((sum, each) => sum + each, 0);
    this.#cpuMs.set(worker, (this.#cpuMs.get(worker) ?? 0) + slice.cpuMs);
  }

  #forget(): void {
    if (this.#intervals.size <= this.intervalsMax) return;
    const oldest = Math.min(...this.#intervals.keys());
    this.#intervals.delete(oldest);
    this.#users.delete(oldest);
  }

  /** In the order of time. */
  get intervals(): readonly Slice[] {
    return [...this.#intervals.values()].sort((a, b) => a.interval - b.interval);
  }

  /** The processor time of the busiest worker. */
  get cpuMsMax(): number {
    return Math.max(0, ...this.#cpuMs.values());
  }
}
