/** The results of a run in numbers, for all forms of output. */

import {
  type CostFigures,
  costOf,
  type Figures,
  figuresOf,
} from "@zae-limiter/loadtest/figures.ts";
import type { Plan } from "@zae-limiter/loadtest/plan.ts";
import type { LostWorker, Results } from "@zae-limiter/loadtest/results.ts";
import type { Threshold } from "@zae-limiter/loadtest/threshold.ts";

interface IntervalFigures extends Figures {
  /** Since the beginning of the run, in seconds. */
  readonly atSeconds: number;
  readonly users: number;
}

export interface LoadReport {
  readonly title: string;
  readonly storeName: string;
  readonly plan: Plan;
  readonly workers: number;
  readonly elapsedMs: number;
  readonly classes: readonly { readonly name: string; readonly figures: Figures }[];
  readonly total: Figures;
  readonly cost: CostFigures;
  /** Whether the store reports what requests cost. */
  readonly hasCost: boolean;
  readonly consumed: Readonly<Record<string, number>>;
  readonly errors: readonly { readonly message: string; readonly count: number }[];
  readonly lost: readonly LostWorker[];
  readonly lateMsMax: number;
  /** The busiest worker's share of a processor, from 0 to 1. */
  readonly cpuShare: number;
  readonly intervals: readonly IntervalFigures[];
  /** Latency by share of acquires, for the curve: `[percent, milliseconds]`. */
  readonly percentiles: readonly (readonly [number, number])[];
  readonly broken: readonly { readonly condition: string; readonly actual: string }[];
}

interface ReportInput
  extends Pick<LoadReport, "title" | "storeName" | "plan" | "workers" | "elapsedMs"> {
  readonly results: Results;
  readonly thresholds: readonly Threshold[];
}

const CURVE = [0, 10, 25, 50, 75, 90, 95, 97.5, 99, 99.5, 99.9, 99.95, 99.99, 100];

/** Computes everything that is shown of a run. */
export function reportOf(input: ReportInput): LoadReport {
  const { title, storeName, plan, workers, results, thresholds } = input;
  const elapsedMs = Math.max(1, Math.min(input.elapsedMs, plan.durationMs));
  const all = results.total.total();
  const total = figuresOf(all, elapsedMs);
  const { intervalMs } = plan;
  return {
    title,
    storeName,
    plan,
    workers,
    elapsedMs,
    classes: plan.classes.map((name) => ({
      name,
      figures: figuresOf(results.total.tally(name), elapsedMs),
    })),
    total,
    cost: costOf(results.total.store, total.acquires),
    hasCost: results.total.store.writeUnits + results.total.store.readUnits > 0,
    consumed: Object.fromEntries(all.consumed),
    errors: [...all.errors].map(([message, count]) => ({ message, count })),
    lost: results.lost,
    lateMsMax: results.total.lateMsMax,
    cpuShare: results.cpuMsMax / elapsedMs,
    intervals: results.intervals.map((slice) => ({
      // The last one may be shorter.
      ...figuresOf(slice.total(), Math.min(intervalMs, elapsedMs - slice.interval * intervalMs)),
      atSeconds: (slice.interval * intervalMs) / 1000,
      users: slice.users,
    })),
    percentiles: CURVE.map((percent) => [percent, all.latencies.percentileMs(percent)] as const),
    broken: thresholds
      .filter((threshold) => threshold.isBroken(total))
      .map(({ text, actual }) => ({ condition: text, actual: actual(total) })),
  };
}
