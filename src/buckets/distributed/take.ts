/**
 * Plans the write of a take, or finds that it does not fit.
 *
 * Each limit that is asked for is *low* or *full*. A low one loses the amount, relative to the
 * epoch. A full one is set to what is left, relative to the epoch, so that the time beyond full is
 * forgotten, with the remainder that makes it exact. Their conditions are ranges of the stored
 * balance, so concurrent takes commute; they hold for every remainder that others may have set
 * meanwhile, and only a take that comes within two milli-tokens of a bound insists on the one it
 * has seen.
 * A plain "take if the balance suffices" would admit twice the capacity after idling.
 */

import type { Leg } from "../bucket-store.ts";
import type { LeftOver } from "../bucket-ttl.ts";
import { matchConfig } from "../config-match.ts";
import {
  balanceOf,
  boundedChange,
  builtFrom,
  type LimitImage,
  limitImages,
  looksFull,
  type SeenBucket,
} from "./image.ts";
import { mustRebase, planRebase } from "./rebase.ts";
import {
  amountsOf,
  countAcquire,
  exceeds,
  type Guess,
  isStampedDisabled,
  planTtl,
  requireCovered,
  requireEnabled,
  type TakeContext,
  type TakePlan,
} from "./take-plan.ts";
import { WritePlan } from "./write-plan.ts";
import { meterWrite } from "./writes-meter.ts";

export function planTake(bucket: SeenBucket, leg: Leg, context: TakeContext): TakePlan {
  // Config decides whether a resource is switched off: a stamp asks for it to be read again.
  if (isStampedDisabled(bucket) && leg.config.forced !== true) return { kind: "outdated" };
  const match = matchConfig(builtFrom(bucket), leg.config);
  if (match === "outdated") return { kind: "outdated" };
  const { nowMs } = context;
  const applies = match === "apply";
  if (applies || mustRebase(bucket, nowMs)) return planRebase(bucket, leg, context, applies);
  const images = limitImages(bucket, nowMs);
  const balancesMilli = leg.config.limits.map(({ name }) =>
    balanceOf(images.get(name) as LimitImage),
  );
  if (exceeds(leg.amountsMilli, balancesMilli)) return { kind: "refused", balancesMilli };
  const amounts = amountsOf(leg);
  const plan = new WritePlan();
  const guesses: Guess[] = [];
  for (const [name, amount] of amounts) {
    if (amount <= 0) continue;
    guesses.push(planLimit(plan, name, images.get(name) as LimitImage, amount, context));
  }
  const expired = bucket.ttl !== undefined && bucket.ttl * 1000 <= nowMs;
  if (plan.isEmpty && !expired) return { kind: "nothing", balancesMilli };
  countAcquire(plan, leg, context);
  const ttl = planTtl(plan, bucket, leg.config, leftOf(images, amounts), context);
  requireCovered(plan, bucket, images, amounts, ttl, context);
  plan.requireSeen(bucket, nowMs);
  requireEnabled(plan, bucket);
  meterWrite(plan, bucket, nowMs, context.costMs);
  return { kind: "write", plan, guesses };
}

/**
 * Plans a change after the fact, of the limits the item still has. Giving back needs to know
 * nothing of the item; consuming more is a take without the lower bound.
 */
export function planAdjust(bucket: SeenBucket, leg: Leg, context: TakeContext): TakePlan {
  const { nowMs } = context;
  const forced = { ...context, force: true };
  const takes = leg.amountsMilli.some((amount) => amount > 0);
  if (takes && mustRebase(bucket, nowMs)) return planRebase(bucket, leg, forced, false);
  const images = limitImages(bucket, nowMs);
  const amounts = amountsOf(leg);
  const plan = new WritePlan();
  const guesses: Guess[] = [];
  for (const [name, amount] of amounts) {
    const image = images.get(name);
    if (image === undefined || amount === 0) continue;
    guesses.push(planLimit(plan, name, image, amount, forced));
  }
  if (plan.isEmpty) return { kind: "nothing", balancesMilli: [] };
  countAcquire(plan, leg, forced);
  if (takes) {
    const ttl = planTtl(plan, bucket, leg.config, leftOf(images, amounts), context);
    requireCovered(plan, bucket, images, amounts, ttl, forced);
    plan.requireSeen(bucket, nowMs);
    meterWrite(plan, bucket, nowMs, context.costMs);
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
  const { stored, share } = image;
  const { capacityMilli } = share;
  const tokens = `b_${name}_tk`;
  plan.add(`b_${name}_tc`, amount);
  if (amount < 0) {
    plan.add(tokens, -amount);
    plan.require({ is: "exists", name: tokens });
    const tokensMilli = stored.tokensMilli - amount;
    const { remainder } = stored;
    return { limitName: name, full: false, lookedFull: false, tokensMilli, remainder };
  }
  const lookedFull = looksFull(image);
  const full = lookedFull && context.trustFull(name);
  if (full) {
    const { wholeRemainder: remainder } = image;
    const accruedMilli = image.accruedMin + (remainder > 0 ? 1 : 0);
    const tokensMilli = capacityMilli - accruedMilli - amount;
    plan.set(tokens, tokensMilli);
    plan.setRemainder(name, image, remainder);
    plan.requireFull(name, image, capacityMilli);
    // That there is none is only believed when it was seen: nobody would remove it otherwise.
    const expected = remainder === 0 ? stored.remainder : remainder;
    return { limitName: name, full, lookedFull, tokensMilli, remainder: expected };
  }
  plan.add(tokens, boundedChange(stored.tokensMilli, -amount));
  if (context.force !== true) plan.requireEnough(name, image, amount);
  plan.requireLow(name, image, capacityMilli);
  const { remainder } = stored;
  return { limitName: name, full, lookedFull, tokensMilli: stored.tokensMilli - amount, remainder };
}

/** What is left of every limit of the bucket, also of those that the call does not name. */
function* leftOf(
  images: ReadonlyMap<string, LimitImage>,
  amounts: ReadonlyMap<string, number>,
): Generator<LeftOver> {
  for (const [name, image] of images) {
    const balanceMilli = balanceOf(image) - (amounts.get(name) ?? 0);
    yield { rate: image.share, balanceMilli };
  }
}
