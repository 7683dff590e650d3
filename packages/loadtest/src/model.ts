/** The interface between a model of load and its worker. */

import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { Random } from "@zae-limiter/limiter/base/random.ts";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import type { Load } from "./load.ts";
import type { Plan, WorkerPlace } from "./plan.ts";
import type { Slice } from "./slice.ts";

/** How long tasks may go on after the end of the run. */
export const GRACE_MS = 10_000;
/**
 * Lets the process run everything else that is due: users that never wait for I/O would keep timers
 * and sockets waiting.
 */
export type Turn = () => Promise<void>;

export interface WorkerJob {
  readonly load: Load;
  readonly limiter: RateLimiter;
  readonly plan: Plan;
  readonly place: WorkerPlace;
  readonly timer: Timer;
  readonly turn: Turn;
  readonly random: Random;
  readonly signal: AbortSignal;
  /** Called with each interval, in order. */
  readonly onSlice: (slice: Slice) => void;
  /** Processor time of this process so far, in milliseconds. */
  readonly cpuMs?: () => number;
}

/** The settings that may change while a run is under way, for all workers together. */
export interface LoadChange {
  readonly users?: number;
  readonly rate?: number;
}

/** The parts of the worker that both models need. */
export interface Workplace {
  readonly job: WorkerJob;
  /** When the run began for all workers, on this worker's timer. */
  readonly startedMs: number;
  /** Aborts when the time is over, or the run is ended early. */
  readonly ended: AbortSignal;
  /** Runs the task of a user by its number. Never throws. `intendedMs`: on the worker's timer. */
  perform(user: number, intendedMs?: number): Promise<void>;
  /** Yields to timers and sockets, when it is time. */
  breathe(): Promise<void> | undefined;
  late(ms: number): void;
  unstarted(user: number): void;
}

/** Users or arrivals. */
export interface Model {
  /** Runs until nothing more is started. */
  run(): Promise<void>;
  change(change: LoadChange): void;
  /** Users or tasks at work. */
  readonly busy: number;
  /** Tasks that have not ended. */
  readonly pending: readonly Promise<unknown>[];
}
