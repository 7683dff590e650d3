/** Legs of a call that were charged on the way. */

import type { ConsumeResult, Leg, LegOutcome } from "../buckets/bucket-store.ts";
import type { Seen } from "./decision.ts";

/** A leg that was charged, and how. */
export interface Charged {
  leg: Leg;
  readonly outcome: LegOutcome;
}

/** What all legs have: those just refused, and those that were charged before and given back. */
export function seenBy(
  legs: readonly Leg[],
  due: readonly Leg[],
  charged: ReadonlyMap<string, Charged>,
  refused: Extract<ConsumeResult, { outcome: "refused" }>,
): Seen {
  const seen = legs.map((leg) => {
    const before = charged.get(leg.entityId);
    if (before === undefined) {
      return { leg, balances: refused.balancesMilli[due.indexOf(leg)] as readonly number[] };
    }
    const { amountsMilli } = before.leg;
    return {
      leg: before.leg,
      balances: before.outcome.balancesMilli.map((left, at) => left + (amountsMilli[at] ?? 0)),
    };
  });
  return { legs: seen.map(({ leg }) => leg), balancesMilli: seen.map(({ balances }) => balances) };
}
