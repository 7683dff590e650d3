/** Refuses a call by states that the store has shown a moment ago. Pure. */

import { gatesOf } from "../gating.ts";
import type { Leg } from "../leg.ts";
import type { BucketStates } from "./bucket-states.ts";
import type { CachedState } from "./cached-states.ts";
import { exceeds } from "./limit-plan.ts";

/** Why a call is refused without asking. */
export interface LocalRefusal {
  /** Leg by leg; missing for those that were not shown a moment ago. */
  readonly balancesMilli: readonly (readonly number[] | undefined)[];
  /** The first shard of each leg. */
  readonly firsts: readonly (CachedState | undefined)[];
}

/** `undefined` when the store has to be asked; nearly always the first shards say so. */
export function refusedLocally(
  states: BucketStates,
  legs: readonly Leg[],
  nowMs: number,
): LocalRefusal | undefined {
  for (let at = 0; at < legs.length; at += 1) {
    const leg = legs[at] as Leg;
    const { config, amountsMilli } = leg;
    const first = states.of(leg, 0);
    const shownMilli = first && states.shownBalances(leg, config, nowMs, first);
    if (shownMilli === undefined || !exceeds(gatesOf(config, amountsMilli), shownMilli)) continue;
    return weighed(states, legs, nowMs, { at, first });
  }
  return undefined;
}

/** Looks at all shards: one leg must have too little in each of them, and in all together. */
function weighed(
  states: BucketStates,
  legs: readonly Leg[],
  nowMs: number,
  found: { readonly at: number; readonly first: CachedState | undefined },
): LocalRefusal | undefined {
  const firsts = legs.map((leg, at) => (at === found.at ? found.first : states.of(leg, 0)));
  const known = legs.map((leg, at) => states.known(leg, leg.config, nowMs, firsts[at]));
  const isRefused = legs.some(({ config, amountsMilli }, at) => {
    const balances = known[at];
    const gatesMilli = gatesOf(config, amountsMilli);
    if (balances === undefined || !exceeds(gatesMilli, balances.sumsMilli)) return false;
    return balances.shards.every((has) => exceeds(gatesMilli, has));
  });
  if (!isRefused) return undefined;
  return { balancesMilli: known.map((balances) => balances?.sumsMilli), firsts };
}
