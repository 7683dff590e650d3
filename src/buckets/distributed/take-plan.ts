/** What comes of planning a take, and what all takes share. */

import { ACQUIRES } from "../../records/bucket-item.ts";
import type { BucketConfig, Leg } from "../bucket-store.ts";
import { bucketTtl, coveredMilli, type LeftOver } from "../bucket-ttl.ts";
import { isPinned, type LimitImage, type SeenBucket } from "./image.ts";
import type { WritePlan } from "./write-plan.ts";

export type TakePlan =
  | { readonly kind: "outdated" }
  | {
      readonly kind: "refused";
      readonly balancesMilli: readonly number[];
      /** The bucket takes the limits of the leg all the same. */
      readonly limitsOnly?: WritePlan | undefined;
    }
  /** Nothing is asked for, so nothing is written. */
  | { readonly kind: "nothing"; readonly balancesMilli: readonly number[] }
  | {
      readonly kind: "write";
      readonly plan: WritePlan;
      readonly guesses: readonly Guess[];
    };

/** How a limit that is asked for was judged. */
export interface Guess {
  readonly limitName: string;
  readonly full: boolean;
  /** It looked full, so that somebody else's take would have made a difference. */
  readonly lookedFull: boolean;
  /** The stored balance after the write, if the guess is right and nobody else writes. */
  readonly tokensMilli: number;
  readonly remainder: number;
}

export interface TakeContext {
  readonly nowMs: number;
  readonly ttlMultiplier: number;
  /** Whether a limit that looks full is to be taken for full: others may have taken since. */
  readonly trustFull: (limitName: string) => boolean;
  /** An adjustment: never refused, may go into debt, and an amount below zero gives back. */
  readonly force?: boolean;
  /** How many acquires it counts as; when absent, one if it takes anything, unless forced. */
  readonly acquires?: number;
  /** What the write adds to the meter; that of a plain one when absent. */
  readonly costMs?: number;
}

/** The amounts of a leg by the names of its limits. */
export function amountsOf(leg: Leg): ReadonlyMap<string, number> {
  const amounts = new Map<string, number>();
  leg.config.limits.forEach(({ name }, at) => {
    amounts.set(name, leg.amountsMilli[at] ?? 0);
  });
  return amounts;
}

/** Counts the acquire, for those who count usage. */
export function countAcquire(plan: WritePlan, leg: Leg, context: TakeContext): void {
  const takes = context.force !== true && leg.amountsMilli.some((amount) => amount > 0);
  plan.add(ACQUIRES, context.acquires ?? (takes ? 1 : 0));
}

/** Renews the time to live where that is due. `left`: what the write leaves, of every limit. */
export function planTtl(
  plan: WritePlan,
  bucket: SeenBucket,
  config: BucketConfig,
  left: Iterable<LeftOver>,
  context: Pick<TakeContext, "nowMs" | "ttlMultiplier">,
): number | undefined {
  // Only the Python library knows how long a quota or a schedule needs the bucket.
  if (isPinned(bucket)) return planPinnedTtl(plan, bucket, context.nowMs);
  // One that went away by itself, in parts, could not be told from one that was never split.
  if (bucket.shardCount > 1) {
    if (bucket.ttl !== undefined) plan.remove("ttl");
    return undefined;
  }
  const rule = { multiplier: context.ttlMultiplier, source: config.source, isNew: false };
  const ttl = bucketTtl(bucket.ttl, rule, left, context.nowMs);
  if (ttl === undefined && bucket.ttl !== undefined) plan.remove("ttl");
  else if (ttl !== undefined && ttl !== bucket.ttl) plan.set("ttl", ttl);
  return ttl;
}

/** It is left as it is; one that is over is removed, because the bucket is in use. */
function planPinnedTtl(plan: WritePlan, { ttl }: SeenBucket, nowMs: number): undefined {
  if (ttl !== undefined && ttl * 1000 <= nowMs) plan.remove("ttl");
  return undefined;
}

/**
 * A time to live was worked out from the balances of a view, and others may have gone into debt
 * since: the write needs balances that the time covers, of the limits it takes from without a
 * check, and of all limits when it sets a time where there was none.
 */
export function requireCovered(
  plan: WritePlan,
  bucket: SeenBucket,
  images: ReadonlyMap<string, LimitImage>,
  amounts: ReadonlyMap<string, number>,
  ttl: number | undefined,
  context: Pick<TakeContext, "nowMs" | "force">,
): void {
  if (ttl === undefined) return;
  const begins = bucket.ttl === undefined;
  if (!begins && context.force !== true) return;
  for (const [name, image] of images) {
    const amount = amounts.get(name) ?? 0;
    if (!begins && amount <= 0) continue;
    const lowest = coveredMilli(ttl, image.share, context.nowMs) + Math.max(0, amount);
    plan.requireEnough(name, image, lowest);
  }
}

/** Whether the Python library has stamped the bucket as switched off. */
export function isStampedDisabled(bucket: SeenBucket): boolean {
  return bucket.python?.stamps.disabled === true;
}

/** A bucket that is stamped as switched off meanwhile is not consumed from. */
export function requireEnabled(plan: WritePlan, bucket: SeenBucket): void {
  if (!isStampedDisabled(bucket)) plan.require({ is: "absent", name: "disabled" });
}

/** Whether an amount above zero is more than there is. */
export function exceeds(
  amountsMilli: readonly number[],
  balancesMilli: readonly number[],
): boolean {
  return amountsMilli.some((amount, at) => amount > 0 && amount > (balancesMilli[at] as number));
}
