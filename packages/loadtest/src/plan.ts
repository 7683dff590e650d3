/** The plan of a run, and the part of one worker in it. */

import { weightOf } from "./define-load.ts";
import type { Load } from "./load.ts";

/** The plan of all workers together. */
export interface Plan {
  readonly classes: readonly string[];
  /** Concurrent users; in an open model, the identities that arrivals use in turn. */
  readonly users: number;
  readonly spawnRate: number;
  /** Arrivals per second. `undefined`: a closed model. */
  readonly rate: number | undefined;
  readonly durationMs: number;
  /** How long the intervals are that workers report. */
  readonly intervalMs: number;
}

/** One of several workers. */
export interface WorkerPlace {
  /** From 0. */
  readonly worker: number;
  readonly workers: number;
  /** Milliseconds of the run before this worker began, which replaces another worker. */
  readonly doneMs: number;
}

/** The most intervals that the charts of a run have. */
const INTERVALS_MAX = 600;

/** Returns the length of an interval: a second, or more in a long run. */
export function intervalMsOf(durationMs: number): number {
  return 1000 * Math.max(1, Math.ceil(durationMs / 1000 / INTERVALS_MAX));
}

/** Returns the class of a user by its number. The first n users keep the weights, for any n. */
export function classPicker(load: Load, classes: readonly string[]): (user: number) => string {
  const weights = classes.map((name) => Math.max(weightOf(load, name), Number.EPSILON));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const counts = classes.map(() => 0);
  const picked: string[] = [];
  return (user) => {
    while (picked.length <= user) {
      // The class that is furthest behind its share.
      const gaps = weights.map(
        (weight, at) => ((picked.length + 1) * weight) / total - (counts[at] ?? 0),
      );
      const next = gaps.indexOf(Math.max(...gaps));
      counts[next] = (counts[next] ?? 0) + 1;
      picked.push(classes[next] as string);
    }
    return picked[user] as string;
  };
}
