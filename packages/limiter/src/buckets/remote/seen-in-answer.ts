/** The balances and periods in an answer of the server, in the order of the limits of each leg. */

import type { WarmAnswer } from "../../storage/warm-buckets.ts";
import type { SeenBalances } from "../bucket-consumer.ts";
import { warmTerms } from "../embedded/warm-row.ts";
import type { Leg } from "../leg.ts";
import { hasPeriods } from "../periods.ts";
import { seenWindow } from "../rates-in-time.ts";

/** Returns what an answer shows of the buckets of a call. */
export function seenIn(legs: readonly Leg[], answer: WarmAnswer, atMs: number): SeenBalances {
  return {
    balancesMilli: inOrder(legs, answer.balancesMilli),
    periods: periodsIn(legs, answer, atMs),
  };
}

/** Returns numbers of the rows in the order of the limits of each leg. */
function inOrder(
  legs: readonly Leg[],
  numbers: readonly (readonly number[])[],
): readonly (readonly number[])[] {
  return legs.map(({ config }, at) => {
    const { order, isSorted } = warmTerms(config.limits);
    const own = numbers[at] as readonly number[];
    if (isSorted) return own;
    const ordered = new Array<number>(order.length);
    order.forEach((place, index) => {
      ordered[place] = own[index] as number;
    });
    return ordered;
  });
}

/** Returns the periods in the order of the limits of each leg; `undefined` where none has any. */
function periodsIn(
  legs: readonly Leg[],
  { endsMs, grantedMilli }: WarmAnswer,
  atMs: number,
): SeenBalances["periods"] {
  const isOfPeriods = endsMs !== undefined && grantedMilli !== undefined;
  if (!isOfPeriods && !legs.some(hasWindows)) return undefined;
  const ends = isOfPeriods ? inOrder(legs, endsMs) : [];
  const granted = isOfPeriods ? inOrder(legs, grantedMilli) : [];
  return legs.map(({ config }, leg) =>
    config.limits.map(({ rate }, at) => {
      if (rate.schedule !== undefined) return seenWindow(rate, atMs);
      const endMs = ends[leg]?.[at] ?? 0;
      if (!hasPeriods(rate) || endMs === 0) return undefined;
      return { endMs, grantedMilli: granted[leg]?.[at] ?? 0, atMs };
    }),
  );
}

function hasWindows({ config: { limits } }: Leg): boolean {
  for (const { rate } of limits) if (rate.schedule !== undefined) return true;
  return false;
}
