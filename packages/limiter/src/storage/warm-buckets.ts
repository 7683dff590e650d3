/**
 * The port to a server that decides a warm call by itself, under a lock on its rows. A table has it
 * as its property `WARM_BUCKETS`, or has none, and then every call is a step.
 *
 * The bucket store of such a table calls it in this order:
 *
 * 1. `consume` first, with every leg of the call. The server locks the rows in the order of their
 *    keys and compares `build`, parent and `until` of each. When all fit, it refills,
 *    checks and writes all rows or none, and answers with every balance.
 * 2. When the answer is `undefined`, a row was not warm and nothing was written: the call runs as a
 *    step, which leaves rows that are warm for the next call.
 * 3. `adjust` when a lease ends with other amounts or gives back slots, with a token, so that an
 *    answer that was lost may be asked for again: the server checks the token before it checks
 *    whether the row is warm. False: not warm and nothing written; a step adjusts, with the same
 *    token.
 *
 * A call that takes slots has a token, too: where its answer is lost, a step spends the token, and
 * from then on the call has been granted or never will be.
 *
 * Each write gives its row a new revision, so that a step that has read it runs again.
 *
 * A row is warm until `until`: edges of periods, changes of limits and of parents are decided by
 * steps only.
 */

import type { Item, Key } from "./item.ts";
import type { TableCallOptions } from "./item-table.ts";

/** Marks the warm calls of a table, which are a property of it. */
export const WARM_BUCKETS: unique symbol = Symbol.for("zae-limiter.warm-buckets");

/** The attribute of the system config that warm calls answer with. */
export const VERSION = "config_version";

/** The attribute of a bucket's item that is a `WarmRow`. */
export const WARM_ROW = "warm";

/**
 * The part of a bucket that the server decides warm calls by. The store keeps it apart from the
 * item, so that it can change the numbers, and returns it with the item. Arrays are in the order of
 * the names of the limits.
 */
export interface WarmRow {
  /** Stamp of names and rates. */
  readonly build: string;
  readonly parent: string | null;
  /** Whether the entity cascades by its own record. */
  readonly cascades: boolean;
  /** Epoch milliseconds from which on the row is not warm. */
  readonly until: number;
  /** Milli-tokens; of a limit with periods: what the period in force has granted. */
  readonly cap: readonly number[];
  /** Milli-tokens; 0: the limit has periods, nothing accrues in it and nothing is capped. */
  readonly refill: readonly number[];
  /** Milliseconds. */
  readonly period: readonly number[];
  /**
   * Base times, balances and remainders of `core/bucket.ts`. A limit with periods has the end of
   * its period in the place of the remainder: from then on a call that names it is not warm.
   */
  readonly at: readonly number[];
  readonly tok: readonly number[];
  readonly rem: readonly number[];
  /**
   * Milli-tokens, and acquires, that the server has counted since the item was written; of slots
   * the most that were held at once.
   */
  readonly used: readonly (number | bigint)[];
  readonly events: number;
  /**
   * The slots that are held, `;p7x2k9.4 1 2000;`: of each entry its name, the place of the limit
   * from 1, and milli-slots. Empty where none are.
   */
  readonly held: string;
}

/** Returns the text of an entry that the row must not have yet. */
export function newEntryText(entry: string): string {
  return `+${entry}`;
}

/** One bucket of a warm call. Amounts are aligned with the limits of the row, by their names. */
export interface WarmLeg {
  readonly key: Key;
  /** Stamp of the names and rates that the caller expects in the row. */
  readonly build: string;
  /** The parent that the row must have. */
  readonly parentId: string | undefined;
  /** Whether the row must cascade; `undefined`: a stored level decides that. */
  readonly cascades: boolean | undefined;
  /** Milli-tokens that each limit must have. */
  readonly gatesMilli: readonly number[];
  /** Milli-tokens to subtract from each balance. */
  readonly consumedMilli: readonly number[];
  /** Milli-tokens to add to the usage of each limit. */
  readonly countedMilli: readonly number[];
  /** Acquires to add to the usage; several that share a request are one call. */
  readonly acquires: number;
  /**
   * The entry that slots are taken under, or given back from, for each limit of slots; absent where
   * no slots are moved. With `newEntryText` the row gets the entry; a row without any other is not
   * warm. What is given back to an entry that is gone is not.
   */
  readonly entries?: readonly (string | undefined)[] | undefined;
}

/** A call that may be decided by the server. */
export interface WarmConsume {
  /** The legs, no key twice. */
  readonly legs: readonly WarmLeg[];
  /** The item whose `config_version` counts the changes of limits in the namespace. */
  readonly configKey: Key;
  /** With a higher version nothing is written: the caller's limits may be outdated. */
  readonly knownVersion: number | undefined;
  /** Epoch milliseconds; `undefined`: the server's own clock. */
  readonly nowMs: number | undefined;
  /** Present where slots are taken: once it is spent, nothing is. */
  readonly token?: string | undefined;
}

export interface WarmAnswer {
  readonly outcome: "granted" | "refused" | "outdated";
  /** Balances, leg by leg: those after a grant, or those that refuse; none when outdated. */
  readonly balancesMilli: readonly (readonly number[])[];
  /** Leg by leg: `rem` and `cap` of the row; absent where no row has limits with periods. */
  readonly endsMs?: readonly (readonly number[])[] | undefined;
  readonly grantedMilli?: readonly (readonly number[])[] | undefined;
  /** The config version of the namespace, by which a change of limits is noticed. */
  readonly configVersion: number;
}

/** An adjustment of one bucket, applied once per token. */
export interface WarmAdjust {
  readonly leg: Omit<WarmLeg, "gatesMilli" | "parentId" | "cascades"> & {
    /**
     * Epoch milliseconds: the ends of the periods that were consumed in, as the row must have them,
     * and 0 for limits without; absent where no limit has periods.
     */
    readonly endsMs?: readonly number[] | undefined;
  };
  readonly token: string;
  readonly nowMs: number | undefined;
}

/** A row that one step holds. Its `until` is the end of that, below zero. */
export interface WarmHold {
  readonly key: Key;
  /** Epoch milliseconds. */
  readonly nowMs: number;
  /** Epoch milliseconds at which others no longer leave it alone. */
  readonly endMs: number;
}

export interface WarmBuckets {
  /** Milliseconds that the server's clock is ahead of this machine's, once it is known. */
  readonly serverDateSkewMs: number | undefined;
  /** Decides a call for all of its legs; `undefined`, with nothing written: run it as a step. */
  consume(consume: WarmConsume, options: TableCallOptions): Promise<WarmAnswer | undefined>;
  /** Adjusts a bucket and never refuses; false, with nothing written: run it as a step. */
  adjust(adjust: WarmAdjust, options: TableCallOptions): Promise<boolean>;
  /**
   * Makes a row not warm, and makes other steps leave it alone until a time, by which it is
   * written: a step that warm calls undo again and again comes to its end then. False: another
   * step holds it, or it is not there.
   */
  hold(hold: WarmHold, options: TableCallOptions): Promise<boolean>;
}

/** Returns the warm calls of a table; `undefined` where every call is a step. */
export function warmBucketsOf(table: object): WarmBuckets | undefined {
  return (table as { readonly [WARM_BUCKETS]?: WarmBuckets })[WARM_BUCKETS];
}

/** Returns the part of an item that the server decides warm calls by. */
export function warmRowIn(item: Item | undefined): WarmRow | undefined {
  return item?.[WARM_ROW] as unknown as WarmRow | undefined;
}
