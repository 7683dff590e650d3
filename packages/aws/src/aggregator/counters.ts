/** Counters of the work of an aggregator. */

/**
 * Counters of a batch, or of a whole run.
 *
 * @example
 * ```ts
 * import type { AggregatorCounters } from 'zae-limiter/aggregator';
 * const isHealthy = ({ failures, lagMs }: AggregatorCounters) => failures === 0 && lagMs < 60_000;
 * ```
 */
export interface AggregatorCounters {
  /** Change records that came in, whatever they were about. */
  readonly records: number;
  /** Snapshots that were written. */
  readonly snapshots: number;
  /** Buckets whose stored balance was brought up to date. */
  readonly refills: number;
  /** Pairs of shards that were made. */
  readonly splits: number;
  /** Audit events that were archived. */
  readonly archived: number;
  /** From the newest change to now, in milliseconds. */
  readonly lagMs: number;
  /** Change records that failed and are delivered again. */
  readonly failures: number;
  /** Change records that were skipped because they can never be processed. */
  readonly skipped: number;
}

export const NOTHING_DONE: AggregatorCounters = Object.freeze({
  records: 0,
  snapshots: 0,
  refills: 0,
  splits: 0,
  archived: 0,
  lagMs: 0,
  failures: 0,
  skipped: 0,
});

/** Adds two sets of counters; the lag is that of the later one. */
export function added(earlier: AggregatorCounters, later: AggregatorCounters): AggregatorCounters {
  const names = Object.keys(NOTHING_DONE) as (keyof AggregatorCounters)[];
  const sums = names.map((name) => [name, earlier[name] + later[name]]);
  return { ...(Object.fromEntries(sums) as AggregatorCounters), lagMs: later.lagMs };
}

/** Returns the counters as fields of a log line. */
export function counterFields(counters: AggregatorCounters): Record<string, number> {
  const { lagMs, ...rest } = counters;
  return { ...rest, lag_ms: lagMs };
}
