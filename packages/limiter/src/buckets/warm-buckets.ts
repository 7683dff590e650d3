/**
 * The port to a server that decides a warm call by itself, under a lock on its rows: a store has it
 * besides its `ItemTable`, or has none, and then every call is a step.
 *
 * The bucket store of such a table calls it in this order:
 *
 * 1. `consume` first, with every leg of the call. The server locks the rows in the order of their
 *    keys and compares `build`, the hour and `valid_until` of each. When all fit, it refills,
 *    checks and writes all rows or none, and answers with every balance.
 * 2. When the answer is `undefined`, a row was not warm and nothing was written: the call runs as a
 *    step, which leaves rows that are warm for the next call.
 * 3. `adjust` when a lease ends with other amounts, with a token, so that an answer that was lost
 *    may be asked for again: the server checks the token before it checks whether the row is warm.
 *    False: not warm and nothing written; a step adjusts, with the same token.
 *
 * Each write gives its row a new revision, so that a step that has read it runs again.
 *
 * A row is warm until `valid_until`: edges of periods, changes of limits and of parents are decided
 * by steps only. Rows get `build` and `valid_until` with the first store that implements this.
 */

import type { TableCallOptions } from "../storage/item-table.ts";

/** One bucket of a warm call. Amounts are aligned with the limits of the row, by their names. */
export interface WarmLeg {
  readonly entityId: string;
  readonly resource: string;
  /** Stamp of the names, rates and link that the caller expects in the row. */
  readonly build: string;
  /** Milli-tokens that each limit must have. */
  readonly gatesMilli: readonly number[];
  /** Milli-tokens to subtract from each balance. */
  readonly consumedMilli: readonly number[];
  /** Milli-tokens to add to the usage of each limit. */
  readonly countedMilli: readonly number[];
}

/** A call that may be decided by the server. */
export interface WarmConsume {
  readonly namespaceId: string;
  readonly legs: readonly WarmLeg[];
  /** Number of acquires in the call: several that share a request are one call. */
  readonly acquires: number;
  /** Epoch milliseconds; `undefined`: the server's own clock. */
  readonly nowMs: number | undefined;
}

export interface WarmAnswer {
  readonly granted: boolean;
  /** Leg by leg: after a grant, what is left; else what there is. */
  readonly balancesMilli: readonly (readonly number[])[];
  /** The config version of the namespace, by which a change of limits is noticed. */
  readonly configVersion: number;
}

/** An adjustment of one bucket, applied once per token. */
export interface WarmAdjust {
  readonly namespaceId: string;
  readonly leg: Omit<WarmLeg, "gatesMilli">;
  /** Acquires to add to the usage; negative when they are refunded. */
  readonly acquires: number;
  readonly token: string;
  readonly nowMs: number | undefined;
}

export interface WarmBuckets {
  /** Decides a call for all of its legs; `undefined`, with nothing written: run it as a step. */
  consume(consume: WarmConsume, options: TableCallOptions): Promise<WarmAnswer | undefined>;
  /** Adjusts a bucket and never refuses; false, with nothing written: run it as a step. */
  adjust(adjust: WarmAdjust, options: TableCallOptions): Promise<boolean>;
}
