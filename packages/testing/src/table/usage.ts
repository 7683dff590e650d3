/** Requests to a table, and the capacity that they consumed. */

/** Counters; units of table and indexes together. */
export interface Usage {
  /** Requests. */
  readonly calls: number;
  /** Requests that write. */
  readonly writes: number;
  /** Requests that read. */
  readonly reads: number;
  /** Requests that were throttled. */
  readonly throttled: number;
  /** How many of `throttled` were throttled because of a hot key. */
  readonly throttledKeys: number;
  /** Transactions that met another one. */
  readonly conflicts: number;
  /** Writes whose condition did not hold. */
  readonly refusedConditions: number;
  /** Transactions. */
  readonly transactions: number;
  /** Read units. */
  readonly readUnits: number;
  /** Write units. */
  readonly writeUnits: number;
  /** The part of `writeUnits` that went to indexes. */
  readonly indexUnits: number;
}

export type MutableUsage = { -readonly [name in keyof Usage]: Usage[name] };

export function noUsage(): MutableUsage {
  return {
    calls: 0,
    writes: 0,
    reads: 0,
    throttled: 0,
    throttledKeys: 0,
    conflicts: 0,
    refusedConditions: 0,
    transactions: 0,
    readUnits: 0,
    writeUnits: 0,
    indexUnits: 0,
  };
}
