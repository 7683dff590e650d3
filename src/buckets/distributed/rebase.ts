/**
 * A write that moves the epoch to now: when the limits change, when the epoch is old or lies in
 * the future, or when the arithmetic would leave the safe integers. Every limit is settled with
 * it, and the take that made it necessary goes along in the same write.
 */

import type { Rate } from "../../core/bucket.ts";
import { shardRate } from "../../core/shares.ts";
import { RESERVED_LIMIT } from "../../domain/names.ts";
import type { StoredBucket, StoredLimit } from "../../records/bucket-item.ts";
import type { BucketConfig, Leg } from "../bucket-store.ts";
import { sameRate, staleNames } from "../config-match.ts";
import { balanceOf, builtFrom, isFull, type LimitImage, limitImage } from "./image.ts";
import { exceeds, planTtl, type TakeContext, type TakePlan } from "./take-plan.ts";
import { WritePlan } from "./write-plan.ts";

const EPOCH_AGE_MS_MAX = 86_400_000;
/** Clocks differ a little; an epoch further ahead than this is pulled back. */
const EPOCH_AHEAD_MS_MAX = 2000;
const PRODUCT_MAX = Number.MAX_SAFE_INTEGER / 4;
const SUFFIXES = ["tk", "cp", "ra", "rp", "tc", "rr"] as const;

export function mustRebase(bucket: StoredBucket, nowMs: number): boolean {
  const ageMs = nowMs - bucket.refilledAtMs;
  if (ageMs > EPOCH_AGE_MS_MAX || ageMs < -EPOCH_AHEAD_MS_MAX) return true;
  for (const { rate } of bucket.limits.values()) {
    if (ageMs * rate.refillMilli > PRODUCT_MAX) return true;
  }
  return false;
}

/** `applies`: the bucket takes the limits of the leg; otherwise it keeps its own. */
export function planRebase(
  bucket: StoredBucket,
  leg: Leg,
  context: TakeContext,
  applies: boolean,
): TakePlan {
  const plan = new WritePlan();
  const balances = new Map<string, number>();
  const amounts = new Map(
    leg.config.limits.map(({ name }, at) => [name, leg.amountsMilli[at] ?? 0]),
  );
  const wanted = new Map(applies ? leg.config.limits.map(({ name, rate }) => [name, rate]) : []);
  const stale = new Set(applies ? staleNames(builtFrom(bucket), leg.config) : []);
  const settle = (name: string, stored: StoredLimit) => {
    const image = limitImage(bucket, stored, context.nowMs);
    const rate = wanted.get(name) ?? stored.rate;
    const amount = amounts.get(name) ?? 0;
    const newShare = shardRate(rate, bucket.shard, bucket.shardCount);
    const lowest = context.force === true ? undefined : amount - image.accruedMilli;
    settleLimit(plan, name, image, rate, newShare.capacityMilli, amount, lowest);
    balances.set(name, Math.min(balanceOf(image), newShare.capacityMilli));
  };
  for (const [name, stored] of bucket.limits) {
    if (stale.has(name)) plan.remove(...SUFFIXES.map((suffix) => `b_${name}_${suffix}`));
    else settle(name, stored);
  }
  if (bucket.writes !== undefined) settle(RESERVED_LIMIT, bucket.writes);
  for (const [name, rate] of wanted) {
    if (bucket.limits.has(name)) continue;
    const capacity = shardRate(rate, bucket.shard, bucket.shardCount).capacityMilli;
    startLimit(plan, name, rate, capacity, amounts.get(name) ?? 0);
    balances.set(name, capacity);
  }
  const before = leg.config.limits.map(
    ({ name, rate }) => balances.get(name) ?? rate.capacityMilli,
  );
  if (context.force !== true && exceeds(leg.amountsMilli, before)) {
    return { kind: "refused", balancesMilli: before };
  }
  plan.set("rf", context.nowMs);
  if (applies) setOrigin(plan, leg.config);
  const left = before.map((balance, at) => balance - (leg.amountsMilli[at] ?? 0));
  planTtl(plan, bucket, leg, left, context);
  plan.requireSeen(bucket, context.nowMs);
  return { kind: "write", plan, guesses: [] };
}

/**
 * Brings one limit to the new epoch, capped by the old and the new capacity, less the amount.
 * `lowest` is the least stored balance that allows the amount.
 */
function settleLimit(
  plan: WritePlan,
  name: string,
  image: LimitImage,
  rate: Rate,
  newCapacityMilli: number,
  amount: number,
  lowest: number | undefined,
): void {
  const { stored, share, accruedMilli, remainder } = image;
  const tokens = `b_${name}_tk`;
  const capacity = Math.min(share.capacityMilli, newCapacityMilli);
  const full = isFull(stored.tokensMilli, capacity, accruedMilli);
  if (full) {
    plan.set(tokens, capacity - amount);
    plan.atLeast(tokens, capacity - accruedMilli);
  } else {
    plan.add(tokens, accruedMilli - amount);
    plan.atMost(tokens, capacity - accruedMilli);
    if (amount > 0 && lowest !== undefined) plan.atLeast(tokens, lowest);
  }
  plan.add(`b_${name}_tc`, amount);
  const changed = !sameRate(rate, stored.rate);
  if (changed) setParameters(plan, name, rate);
  if (!full && !changed && remainder > 0) plan.set(`b_${name}_rr`, remainder);
  else if (stored.remainder !== 0) plan.remove(`b_${name}_rr`);
}

function startLimit(
  plan: WritePlan,
  name: string,
  rate: Rate,
  capacityMilli: number,
  amount: number,
): void {
  plan.set(`b_${name}_tk`, capacityMilli - amount);
  plan.set(`b_${name}_tc`, amount);
  setParameters(plan, name, rate);
}

/** Limits that came with a call leave the version alone: the stored config still counts from there. */
function setOrigin(plan: WritePlan, { source, version }: BucketConfig): void {
  if (source !== "override" && version > 0) plan.set("cv", version);
  plan.set("cs", source);
}

function setParameters(plan: WritePlan, name: string, rate: Rate): void {
  plan.set(`b_${name}_cp`, rate.capacityMilli);
  plan.set(`b_${name}_ra`, rate.refillMilli);
  plan.set(`b_${name}_rp`, rate.periodMs);
}
