/** Combines the answers of all legs, or their cached states, into the answer of a call. Pure. */

import type { ConsumeResult } from "../../bucket-consumer.ts";
import { exceeds, gatesOf, takenOf } from "../../gating.ts";
import type { Leg, LegOutcome, Link } from "../../leg.ts";
import { effectiveLink, linkIn, sameLink } from "../../link.ts";
import type { BucketStates } from "../state/bucket-states.ts";
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
 * Whether a call is refused for certain, also if legs without balances cannot be read: a leg has
 * too little, and the links that lead to it were shown by now. `isShown`: the store has shown the
 * bucket of a leg, and its link, a moment ago.
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

type Consumed = Extract<ConsumeAnswer, { kind: "consumed" }>;

export function areConsumed(
  answers: readonly (ConsumeAnswer | undefined)[],
): answers is readonly Consumed[] {
  return answers.every((answer) => answer?.kind === "consumed");
}

/** The links that the buckets have shown, when one is not what the legs were made from. */
export function changedLinks(
  legs: readonly Leg[],
  outcomes: readonly Pick<LegOutcome, "link">[],
): readonly Link[] | undefined {
  if (legs.every(({ link }, at) => sameLink(link, (outcomes[at] as { link: Link }).link))) {
    return undefined;
  }
  return outcomes.map(({ link }) => link);
}

/** Grants a call whose legs were all consumed, by the links they were made from. */
export function grantedBy(legs: readonly Leg[], answers: Answers): ConsumeResult | undefined {
  if (!areConsumed(answers) || changedLinks(legs, answers) !== undefined) return undefined;
  return { outcome: "granted", legs: answers };
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

/** A leg that was consumed and refunded shows what it had before. */
export function balancesBefore(
  answer: ConsumeAnswer | undefined,
  leg: Leg,
): readonly number[] | undefined {
  if (answer === undefined || answer.kind === "outdated") return undefined;
  if (answer.kind === "refused") return answer.balancesMilli;
  const takenMilli = takenOf(leg.config, leg.amountsMilli);
  return answer.balancesMilli.map((balance, at) => balance + (takenMilli[at] ?? 0));
}

/** Why a call is refused without asking. */
export interface LocalRefusal {
  /** Leg by leg; missing for those that were not shown a moment ago. */
  readonly balancesMilli: readonly (readonly number[] | undefined)[];
  /** The first shard of each leg. */
  readonly firsts: readonly (CachedState | undefined)[];
}

/** Refuses a call if cached states refuse a leg of it; `undefined`: the store has to be asked. */
export function refusedLocally(
  states: BucketStates,
  legs: readonly Leg[],
  nowMs: number,
): LocalRefusal | undefined {
  for (const leg of legs) {
    const first = states.of(leg, 0);
    const parts = legs.length === 1 ? legs : [leg];
    const found = first && states.refused(leg, leg.config, parts, nowMs, first);
    if (found === undefined) continue;
    const firsts = legs.map((other) => (other === leg ? first : states.of(other, 0)));
    const balancesMilli = legs.map((other, at) =>
      other === leg
        ? found.sumsMilli
        : states.known(other, other.config, nowMs, firsts[at])?.sumsMilli,
    );
    return { balancesMilli, firsts };
  }
  return undefined;
}
