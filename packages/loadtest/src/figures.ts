/** The numbers of a run that people read and thresholds check. */

import { dollarsOf, ON_DEMAND_PRICES } from "@zae-limiter/limiter/storage/dynamodb/prices.ts";
import type { StoreWork } from "./slice.ts";
import type { Outcome, Tally } from "./tally.ts";

/** Numbers of a run, of one class of users, or of one interval. */
export interface Figures {
  readonly acquires: number;
  readonly perSecond: number;
  readonly counts: Readonly<Record<Outcome, number>>;
  /** Failed acquires and tasks that threw. */
  readonly errors: number;
  readonly tasks: number;
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** The average cost of an acquire. */
export interface CostFigures {
  readonly callsPerAcquire: number;
  readonly writeUnitsPerAcquire: number;
  readonly readUnitsPerAcquire: number;
  readonly dollarsPerMillion: number;
}

/** Computes the numbers of a tally that took so long. */
export function figuresOf(tally: Tally, elapsedMs: number): Figures {
  const { acquires, counts, latencies, brokenTasks, tasks } = tally;
  return {
    acquires,
    perSecond: elapsedMs <= 0 ? 0 : (acquires * 1000) / elapsedMs,
    counts: { ...counts },
    errors: counts.failed + brokenTasks,
    tasks,
    meanMs: latencies.meanMs,
    p50Ms: latencies.percentileMs(50),
    p95Ms: latencies.percentileMs(95),
    p99Ms: latencies.percentileMs(99),
    maxMs: latencies.maxMs,
  };
}

/** Computes what the store was asked for, per acquire, at on-demand prices. */
export function costOf(store: StoreWork, acquires: number): CostFigures {
  const per = (amount: number) => (acquires === 0 ? 0 : amount / acquires);
  return {
    callsPerAcquire: per(store.calls),
    writeUnitsPerAcquire: per(store.writeUnits),
    readUnitsPerAcquire: per(store.readUnits),
    dollarsPerMillion: 1_000_000 * per(dollarsOf(store, ON_DEMAND_PRICES)),
  };
}
