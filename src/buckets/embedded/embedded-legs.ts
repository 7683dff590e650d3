/** What the buckets of a call have, leg by leg. */

import { gatesOf } from "../gating.ts";
import type { Leg, Link } from "../leg.ts";
import { effectiveLink, sameLink } from "../link.ts";
import { balanceMilli, type EmbeddedBucket, limitNamed } from "./embedded-bucket.ts";

/** The links of the buckets, when one is not what the legs were made from. */
export function changedLinks(
  legs: readonly Leg[],
  buckets: readonly EmbeddedBucket[],
): readonly Link[] | undefined {
  const linkAt = (at: number) =>
    effectiveLink((buckets[at] as EmbeddedBucket).link, legs[at]?.config.cascade);
  if (legs.every(({ link }, at) => sameLink(link, linkAt(at)))) return undefined;
  return legs.map((_, at) => linkAt(at));
}

export function balances(bucket: EmbeddedBucket, leg: Leg, now: number): readonly number[] {
  return leg.config.limits.map(({ name, rate }) => {
    const limit = limitNamed(bucket, name);
    return limit === undefined ? rate.capacityMilli : balanceMilli(limit, now);
  });
}

export function fits(leg: Leg, balancesMilli: readonly number[]): boolean {
  return gatesOf(leg.config, leg.amountsMilli).every(
    (amount, at) => amount <= 0 || amount <= (balancesMilli[at] as number),
  );
}
