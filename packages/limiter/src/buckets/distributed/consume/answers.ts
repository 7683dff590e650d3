/** Answers a call that is not granted, from the answers of its legs. Pure. */

import type { ConsumeResult } from "../../bucket-consumer.ts";
import { exceeds, gatesOf, takenOf } from "../../gating.ts";
import type { Leg } from "../../leg.ts";
import { changedLinks, effectiveLink, linkIn } from "../../link.ts";
import type { CachedState } from "../state/cached-states.ts";
import type { ConsumeAnswer } from "./step.ts";

/** Leg by leg; missing for those that were not reached or failed. */
export type Answers = readonly (ConsumeAnswer | undefined)[];

/** Returns whether one of several resources refuses the call, whatever the others answer. */
export function isRefusedAnyway(legs: readonly Leg[], answers: Answers): boolean {
  const [first] = legs;
  const isSeveral = legs.some(({ resource }) => resource !== first?.resource);
  return isSeveral && answers.some((answer) => answer?.kind === "refused");
}

/**
 * Returns whether a call is refused for certain, also if legs without balances cannot be read: a
 * leg has too little, and the links that lead to it were shown by now. `isShown`: the store has
 * shown the bucket of a leg, and its link, within the last second.
 */
export function isCertain(
  legs: readonly Leg[],
  balancesMilli: readonly (readonly number[] | undefined)[],
  isShown: (leg: Leg) => boolean,
): boolean {
  return legs.some(({ config, amountsMilli, resource }, at) => {
    const balances = balancesMilli[at];
    if (balances === undefined || !exceeds(gatesOf(config, amountsMilli), balances)) return false;
    return legs.slice(0, at).every((below, position) => {
      const isKnown = balancesMilli[position] !== undefined || below.linkIsFresh;
      return below.resource !== resource || isKnown || isShown(below);
    });
  });
}

/**
 * Refuses a call, unless the buckets have another parent than the legs were made from: an ancestor
 * refuses only those that cascade to it. `firsts`: the first shard of each leg. `shownAtMs`: when
 * the store showed the oldest shard.
 */
export function refusedBy(
  legs: readonly Leg[],
  balancesMilli: readonly (readonly number[])[],
  local: boolean,
  firsts: readonly (CachedState | undefined)[],
  shownAtMs: number,
): ConsumeResult {
  if (legs.length === 1) return { outcome: "refused", balancesMilli, local, shownAtMs };
  const shown = legs.map((leg, at) => {
    const bucket = firsts[at]?.bucket;
    return { link: bucket ? effectiveLink(linkIn(bucket), leg.config.cascade) : leg.link };
  });
  const links = changedLinks(legs, shown);
  if (links !== undefined) return { outcome: "relinked", links };
  const withoutBucket = legs.filter((_, at) => firsts[at]?.bucket === undefined);
  return { outcome: "refused", balancesMilli, local, withoutBucket, shownAtMs };
}

/** Returns the balances of a leg before the call: one that was consumed is refunded. */
export function balancesBefore(
  answer: ConsumeAnswer | undefined,
  leg: Leg,
): readonly number[] | undefined {
  if (answer === undefined || answer.kind === "outdated") return undefined;
  if (answer.kind === "refused") return answer.balancesMilli;
  const takenMilli = takenOf(leg.config, leg.amountsMilli);
  return answer.balancesMilli.map((balance, at) => balance + (takenMilli[at] ?? 0));
}
