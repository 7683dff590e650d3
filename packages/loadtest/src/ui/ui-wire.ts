/** JSON for the page of a load test. */

export interface UiInterval {
  /** Epoch seconds. */
  readonly at: number;
  readonly users: number;
  readonly perSecond: number;
  readonly refusedPerSecond: number;
  readonly errorsPerSecond: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
}

/** A run, or how the last one ended. */
export interface UiState {
  readonly title: string;
  readonly store: string;
  readonly classes: readonly string[];
  readonly workers: number;
  readonly state: "idle" | "running" | "stopping";
  readonly users: number;
  /** `null`: a closed model. */
  readonly rate: number | null;
  readonly elapsedSeconds: number;
  readonly granted: number;
  readonly refused: number;
  readonly degraded: number;
  readonly failed: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly callsPerAcquire: number;
  readonly writeUnitsPerAcquire: number;
  readonly dollarsPerMillion: number;
  readonly errors: readonly { readonly message: string; readonly count: number }[];
  /** The last minutes. */
  readonly intervals: readonly UiInterval[];
  /** Why the last run could not start or go on. */
  readonly problem: string | null;
}
