/**
 * Plans the write of a take, or finds that it does not fit.
 *
 * Each limit that is asked for is *low* or *full*. A low one loses the amount, relative to the
 * epoch. A full one is set to what is left, relative to the epoch, so that the time beyond full is
 * forgotten. Their conditions are ranges of the stored balance, so concurrent takes commute.
 * A plain "take if the balance suffices" would admit twice the capacity after idling.
 */

import type { StoredBucket } from "../../records/bucket-item.ts";
import type { Leg } from "../bucket-store.ts";
import { matchConfig } from "../config-match.ts";
import { accruedUp, balanceOf, builtFrom, isFull, type LimitImage, limitImage } from "./image.ts";
import { mustRebase, planRebase } from "./rebase.ts";
import { exceeds, type Guess, planTtl, type TakeContext, type TakePlan } from "./take-plan.ts";
import { WritePlan } from "./write-plan.ts";

export function planTake(bucket: StoredBucket, leg: Leg, context: TakeContext): TakePlan {
  const match = matchConfig(builtFrom(bucket), leg.config);
  if (match === "outdated") return { kind: "outdated" };
  const { nowMs } = context;
  const applies = match === "apply";
  if (applies || mustRebase(bucket, nowMs)) return planRebase(bucket, leg, context, applies);
  const images = leg.config.limits.map(({ name }) => {
    const stored = bucket.limits.get(name);
    return stored === undefined ? undefined : limitImage(bucket, stored, nowMs);
  }) as LimitImage[];
  const balancesMilli = images.map(balanceOf);
  const { amountsMilli } = leg;
  if (exceeds(amountsMilli, balancesMilli)) return { kind: "refused", balancesMilli };
  const plan = new WritePlan();
  const guesses: Guess[] = [];
  images.forEach((image, at) => {
    const name = leg.config.limits[at]?.name as string;
    const amount = amountsMilli[at] ?? 0;
    if (amount > 0) guesses.push(planLimit(plan, name, image, amount, context));
  });
  const expired = bucket.ttl !== undefined && bucket.ttl * 1000 <= nowMs;
  if (plan.isEmpty && !expired) return { kind: "nothing", balancesMilli };
  const left = balancesMilli.map((balance, at) => balance - (amountsMilli[at] ?? 0));
  planTtl(plan, bucket, leg, left, context);
  plan.requireSeen(bucket, nowMs);
  return { kind: "write", plan, guesses };
}

/**
 * Plans a change after the fact, of the limits the item still has. Giving back needs to know
 * nothing of the item; consuming more is a take without the lower bound.
 */
export function planAdjust(bucket: StoredBucket, leg: Leg, context: TakeContext): TakePlan {
  const { nowMs } = context;
  const forced = { ...context, force: true };
  const takes = leg.amountsMilli.some((amount) => amount > 0);
  if (takes && mustRebase(bucket, nowMs)) return planRebase(bucket, leg, forced, false);
  const plan = new WritePlan();
  const guesses: Guess[] = [];
  const left: number[] = [];
  leg.config.limits.forEach(({ name, rate }, at) => {
    const stored = bucket.limits.get(name);
    const amount = leg.amountsMilli[at] ?? 0;
    if (stored === undefined) {
      left.push(rate.capacityMilli);
      return;
    }
    const image = limitImage(bucket, stored, nowMs);
    left.push(balanceOf(image) - amount);
    if (amount !== 0) guesses.push(planLimit(plan, name, image, amount, forced));
  });
  if (plan.isEmpty) return { kind: "nothing", balancesMilli: left };
  if (takes) {
    planTtl(plan, bucket, leg, left, context);
    plan.requireSeen(bucket, nowMs);
  }
  return { kind: "write", plan, guesses };
}

function planLimit(
  plan: WritePlan,
  name: string,
  image: LimitImage,
  amount: number,
  context: TakeContext,
): Guess {
  const { stored, share, accruedMilli } = image;
  const { capacityMilli } = share;
  const tokens = `b_${name}_tk`;
  plan.add(`b_${name}_tc`, amount);
  if (amount < 0) {
    plan.add(tokens, -amount);
    plan.require({ is: "exists", name: tokens });
    return { limitName: name, full: false, tokensMilli: stored.tokensMilli - amount };
  }
  const full = isFull(stored.tokensMilli, capacityMilli, accruedMilli) && context.trustFull(name);
  const tokensMilli = (full ? capacityMilli - accruedUp(image) : stored.tokensMilli) - amount;
  if (full) {
    plan.set(tokens, tokensMilli);
    plan.atLeast(tokens, capacityMilli - accruedMilli);
  } else {
    plan.add(tokens, -amount);
    if (context.force !== true) plan.atLeast(tokens, amount - accruedMilli);
    plan.atMost(tokens, capacityMilli - accruedMilli);
  }
  return { limitName: name, full, tokensMilli };
}
