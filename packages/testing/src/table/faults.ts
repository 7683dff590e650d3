/** Faults of the table, as data. Shares are of requests, from 0 to 1. */

/** Absent: never. */
export interface Faults {
  /** The request is executed and its response is lost: the client runs into its timeout. */
  readonly lostResponses?: number;
  /** The request never arrives; to the client this is the same as a lost answer. */
  readonly lostRequests?: number;
  /** The request arrives once its client has stopped waiting for it. */
  readonly lateRequests?: number;
  /** Answered with status 500, half of the time after it was done. */
  readonly serverErrors?: number;
  /** The connection is never made: certainly nothing was written. */
  readonly refusedConnections?: number;
  /** Throttled for the whole table, which no other shard helps against. */
  readonly throttledTable?: number;
  /** How long indexes and eventually consistent reads may lag behind. */
  readonly lagMs?: number;
  /** How long a transaction holds its items; plain writes to them meanwhile are conflicts. */
  readonly transactionMs?: number;
  /** The share of records of the stream that come again. */
  readonly duplicateRecords?: number;
  /** How long an item stays in the table after its time to live is over. */
  readonly expiryLagMs?: number;
}

export const FAULT_NAMES = [
  "lostResponses",
  "lostRequests",
  "lateRequests",
  "serverErrors",
  "refusedConnections",
  "throttledTable",
  "lagMs",
  "transactionMs",
  "duplicateRecords",
  "expiryLagMs",
] as const satisfies readonly (keyof Faults)[];
