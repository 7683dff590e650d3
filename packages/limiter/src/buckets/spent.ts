/**
 * Quotas and sessions that are spent. Before the period ends, only a refund, an operator or changed
 * limits can help, so a process that has seen one goes by that for longer than by any other
 * balance: a tenant that has used up its month costs no writes, and two reads a minute.
 */

import type { Limit } from "../domain/limit.ts";
import { hasPeriods } from "./periods.ts";

/** Milliseconds for which a process may refuse calls by a balance that the store has shown. */
export const KNOWN_MS = 1000;
/** Milliseconds for which it may do so by a quota or a session without a whole token. */
export const SPENT_MS = 30_000;

const TOKEN_MILLI = 1000;

/** Returns the balances of limits that are spent; those of all others refuse nothing. */
export function spentOf(
  { limits }: { readonly limits: readonly Limit[] },
  balancesMilli: readonly number[],
): readonly number[] {
  return balancesMilli.map((milli, at) => {
    const isSpent = milli < TOKEN_MILLI && hasPeriods((limits[at] as Limit).rate);
    return isSpent ? milli : Number.POSITIVE_INFINITY;
  });
}
