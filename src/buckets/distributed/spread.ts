/**
 * Plans a consume across shards: when no single one has enough, but all together do. Each gives a
 * part, and all parts are one transaction.
 */

import { invariant } from "../../domain/check.ts";
import type { ShardPart } from "../leg.ts";

/** What a shard would give. */
export interface Offer {
  readonly shard: number;
  /** Aligned with the limits of the call; below zero in debt. */
  readonly balancesMilli: readonly number[];
}

/** The sums over all shards, those in debt included. */
export function offered(offers: readonly Offer[], limits: number): readonly number[] {
  return Array.from({ length: limits }, (_, at) =>
    offers.reduce((sum, { balancesMilli }) => sum + (balancesMilli[at] as number), 0),
  );
}

/**
 * The parts, from as few shards as possible; there must be enough in all of them together of what
 * can be refused (`gatesMilli`). The rest, which may go into debt, comes from the first shard.
 */
export function spreadOver(
  amountsMilli: readonly number[],
  offers: readonly Offer[],
  gatesMilli: readonly number[] = amountsMilli,
): readonly ShardPart[] {
  const order = [...offers].sort(
    (left, right) => worth(right, gatesMilli) - worth(left, gatesMilli),
  );
  const missing = gatesMilli.map((amount) => Math.max(0, amount));
  const parts: ShardPart[] = [];
  for (const { shard, balancesMilli } of order) {
    const part = missing.map((amount, at) =>
      Math.min(amount, Math.max(0, balancesMilli[at] as number)),
    );
    if (part.every((amount) => amount === 0)) continue;
    part.forEach((amount, at) => {
      missing[at] = (missing[at] as number) - amount;
      invariant((missing[at] as number) >= 0, "no part is more than what is missing");
    });
    parts.push({ shard, amountsMilli: part });
  }
  const [first, ...others] = parts;
  if (first === undefined || gatesMilli === amountsMilli) return parts;
  const rest = first.amountsMilli.map(
    (amount, at) => amount + (amountsMilli[at] as number) - (gatesMilli[at] as number),
  );
  return [{ shard: first.shard, amountsMilli: rest }, ...others];
}

/** The part of the scarcest amount that a shard could give. */
function worth({ balancesMilli }: Offer, amountsMilli: readonly number[]): number {
  let least = Number.POSITIVE_INFINITY;
  amountsMilli.forEach((amount, at) => {
    if (amount > 0) least = Math.min(least, (balancesMilli[at] as number) / amount);
  });
  return least;
}
