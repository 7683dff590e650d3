/**
 * Plans the merge of shards `i` and `i + n` of `2n` into `i` of `n`: a split in reverse.
 *
 * Both are brought to a new base time; then balances, debts, parts of a milli-token and totals add
 * up in shard `i`, and the other one ceases to be a bucket, in one transaction. Its share is that
 * of both, so it holds exactly what they held. Both must be as they were seen, to the milli-token:
 * the store cannot add one item to another.
 *
 * The shard that goes becomes a stub without base time, which no client takes for a bucket, and
 * expires: a client that may acquire may write the items of buckets, and not delete them.
 */

import { DEBT_MILLI_MAX, hasSlots, type Rate, shardRate } from "../../../core/bucket.ts";
import type { PeriodRule } from "../../../core/period-rule.ts";
import { invariant } from "../../../domain/check.ts";
import { ACQUIRES, type StoredLimit, WRITES_RATE } from "../../../records/bucket-item.ts";
import { freeOf, slotCapacityOf } from "../../../records/slot-attributes.ts";
import { type Item, numberAt } from "../../../storage/item.ts";
import { bucketTtl } from "../../bucket-ttl.ts";
import { sameRate } from "../../config-match.ts";
import type { LimitSource } from "../../leg.ts";
import { hasPeriods } from "../../periods.ts";
import { setPeriod } from "../plan/period-plan.ts";
import {
  asSeen,
  balanceAt,
  balanceOf,
  decoded,
  EPOCH_AHEAD_MS_MAX,
  GENERATION,
  looksFull,
  MERGING,
  NEED,
  type SeenBucket,
  shareAt,
  UNSHARDED,
  WRITES,
} from "../plan/seen-bucket.ts";
import { areHeld, startOfSlots } from "../plan/slot-plan.ts";
import { moveEpoch, WritePlan } from "../plan/write-plan.ts";
import { moveMeter, TRANSACTED_MS } from "../plan/writes-meter.ts";
import { isMergeable, PYTHON_TRACE } from "./merge-policy.ts";

const KEY_ATTRIBUTES: ReadonlySet<string> = new Set(["PK", "SK", "ttl"]);
const STUB_SECONDS = 3600;

export interface Merge {
  /** The write to the shard that stays, and the one that makes the other a stub. */
  readonly kept: WritePlan;
  readonly gone: WritePlan;
  /** State of the shard that stays, after the merge. */
  readonly merged: SeenBucket;
}

export interface MergeOptions {
  readonly nowMs: number;
  /** The generation of the shard that stays. */
  readonly generation: number;
  readonly ttlMultiplier: number;
}

/** Plans a merge; `undefined` when the two cannot be merged as they are. */
export function planMerge(
  keptItem: Item,
  goneItem: Item,
  { nowMs, generation, ttlMultiplier }: MergeOptions,
): Merge | undefined {
  const [kept, gone] = [decoded(keptItem), decoded(goneItem)];
  if (kept === undefined || gone === undefined || !isPair(kept, gone)) return undefined;
  if (!isMergeable(kept) || !isMergeable(gone)) return undefined;
  if (kept.paused !== undefined || gone.paused !== undefined) return undefined;
  const epochMs = Math.max(nowMs, kept.refilledAtMs, gone.refilledAtMs);
  // A base time further ahead than clocks may differ is left to a rebase.
  if (epochMs - nowMs > EPOCH_AHEAD_MS_MAX) return undefined;
  invariant(epochMs >= gone.refilledAtMs, "a merge does not move the base time back");
  const sums = sumsOf(kept, gone, epochMs);
  if (sums === undefined) return undefined;
  const shardCount = kept.shardCount / 2;
  const plan = new WritePlan();
  for (const [name, sum] of sums)
    setLimit(plan, name, sum, kept.limits.get(name), gone, shardCount);
  const limits = new Map([...sums].map(([name, { limit }]) => [name, limit]));
  const last = shardCount === 1;
  const others = last ? { ...UNSHARDED, generation } : { generation };
  const merged = { ...kept, shardCount, limits, refilledAtMs: epochMs, ...others };
  const acquires = numberAt(goneItem, ACQUIRES) ?? 0;
  invariant(Number.isSafeInteger(acquires), "acquires are counted in whole numbers");
  plan.add(ACQUIRES, acquires);
  plan.set("shard_count", shardCount);
  plan.set(GENERATION, generation);
  if (last) plan.remove(NEED, WRITES, MERGING);
  const ttl = last ? ttlOf(merged, ttlMultiplier, nowMs) : undefined;
  if (ttl !== undefined) plan.set("ttl", ttl);
  else if (kept.ttl !== undefined) plan.remove("ttl");
  moveMeter(plan, { ...kept, shardCount }, epochMs, TRANSACTED_MS);
  requireExactly(plan, kept, nowMs);
  const rebases = moveEpoch(plan, { ...kept, ...baseOf(kept, gone, epochMs) }, epochMs);
  return {
    kept: plan,
    gone: stubPlan(goneItem, gone, acquires, nowMs),
    merged: { ...merged, rebases, ttl },
  };
}

/**
 * Returns the base time to count rebases from. No cached state of either may fit what is written
 * now, or what a split may put in the place of the one that goes.
 */
function baseOf(kept: SeenBucket, gone: SeenBucket, epochMs: number) {
  const { refilledAtMs, rebases } = kept;
  if (gone.refilledAtMs !== epochMs) return { refilledAtMs, rebases };
  const before = refilledAtMs === epochMs ? rebases : 0;
  return { refilledAtMs: epochMs, rebases: Math.max(before, gone.rebases) };
}

/** Whether one was split from the other, and neither has changed its number of shards since. */
function isPair(kept: SeenBucket, gone: SeenBucket): boolean {
  const { shard, shardCount } = kept;
  return shardCount > 1 && gone.shardCount === shardCount && gone.shard === shard + shardCount / 2;
}

interface Sum {
  readonly limit: StoredLimit;
  /** Milli-tokens that the shard that goes has consumed in total. */
  readonly consumedMilli: number;
}

/** Returns the sums of both; `undefined` when limits differ or a sum is no safe integer. */
function sumsOf(kept: SeenBucket, gone: SeenBucket, epochMs: number): Map<string, Sum> | undefined {
  const names = new Set([...kept.limits.keys(), ...gone.limits.keys()]);
  // One of them has not taken new limits yet: the next consume plans them.
  const isSame = names.size === kept.limits.size && names.size === gone.limits.size;
  if (!isSame && kept.configVersion !== gone.configVersion) return undefined;
  const sums = new Map<string, Sum>();
  for (const name of names) {
    const sum = sumOf(kept, gone, name, epochMs);
    if (sum === undefined) return undefined;
    sums.set(name, sum);
  }
  return sums;
}

function sumOf(kept: SeenBucket, gone: SeenBucket, name: string, epochMs: number): Sum | undefined {
  const [one, other] = [kept.limits.get(name), gone.limits.get(name)];
  const rate = (one ?? other)?.rate;
  invariant(rate !== undefined, "a limit of a pair is in one of the two");
  if (!areAlike(one, other, rate)) return undefined;
  if (hasSlots(rate)) return sumOfSlots(kept, gone, rate, [one, other]);
  if (hasPeriods(rate)) return sumOfPeriods(one, other, epochMs);
  const mine = heldBy(kept, one ?? absent(kept, rate), epochMs);
  const others = heldBy(gone, other ?? absent(gone, rate), epochMs);
  const { periodMs } = shareAt(kept, rate, epochMs);
  const parts = mine.remainder + others.remainder;
  const whole = parts >= periodMs ? 1 : 0;
  const tokensMilli = mine.balanceMilli + others.balanceMilli + whole;
  // The period is half as long, and so are the parts of a milli-token in it.
  const remainder = Math.floor((parts - whole * periodMs) / 2);
  const consumedMilli = other?.totalConsumedMilli ?? 0;
  if (typeof consumedMilli === "bigint" || tokensMilli < -DEBT_MILLI_MAX) return undefined;
  const share = shareAt({ shard: kept.shard, shardCount: kept.shardCount / 2 }, rate, epochMs);
  invariant(tokensMilli <= share.capacityMilli, "merged shards hold at most their share");
  invariant(remainder < share.periodMs, "a part of a milli-token is less than a whole one");
  const totalConsumedMilli = totalOf(one?.totalConsumedMilli ?? 0, consumedMilli);
  return { limit: { tokensMilli, rate, totalConsumedMilli, remainder }, consumedMilli };
}

/**
 * Returns what both have free. The entries of the shard that stays are left alone; the other one
 * stays too while it has any, because its leases give back to the shard that gave.
 */
function sumOfSlots(
  kept: SeenBucket,
  gone: SeenBucket,
  rate: StoredLimit["rate"],
  [one, other]: readonly (StoredLimit | undefined)[],
): Sum | undefined {
  if (areHeld(other)) return undefined;
  const mine = one?.tokensMilli ?? startOfSlots(kept, rate);
  const tokensMilli = mine + (other?.tokensMilli ?? startOfSlots(gone, rate));
  const limit = { ...(one ?? other), tokensMilli, rate, marks: one?.marks } as StoredLimit;
  return { limit, consumedMilli: 0 };
}

/** Whether two limits can be summed. Windows that only one of them has wait for its next call. */
function areAlike(
  one: StoredLimit | undefined,
  other: StoredLimit | undefined,
  rate: Rate,
): boolean {
  const isPartial = one === undefined || other === undefined;
  if (isPartial && rate.schedule !== undefined) return false;
  return sameRate(one?.rate ?? rate, other?.rate ?? rate);
}

/** Returns the sum of two limits in one period; any other pair waits for its next call. */
function sumOfPeriods(
  one: StoredLimit | undefined,
  other: StoredLimit | undefined,
  epochMs: number,
): Sum | undefined {
  const [mine, others] = [one?.period, other?.period];
  if (one === undefined || other === undefined) return undefined;
  if (mine === undefined || others === undefined || mine.endMs !== others.endMs) return undefined;
  if (epochMs >= mine.endMs && one.rate.rule?.kind === "quota") return undefined;
  const consumedMilli = other.totalConsumedMilli ?? 0;
  const tokensMilli = one.tokensMilli + other.tokensMilli;
  if (typeof consumedMilli === "bigint" || tokensMilli < -DEBT_MILLI_MAX) return undefined;
  const period = {
    endMs: mine.endMs,
    leftMilli: mine.leftMilli + others.leftMilli,
    toppedUpMilli: mine.toppedUpMilli + others.toppedUpMilli,
    isStored: true,
  };
  const totalConsumedMilli = totalOf(one.totalConsumedMilli ?? 0, consumedMilli);
  const limit = { tokensMilli, rate: one.rate, totalConsumedMilli, remainder: 0, period };
  return { limit, consumedMilli };
}

/** Returns a limit that a shard does not have: it would start full in it. */
function absent(bucket: SeenBucket, rate: StoredLimit["rate"]): StoredLimit {
  const { capacityMilli } = shardRate(rate, bucket.shard, bucket.shardCount);
  return { tokensMilli: capacityMilli, rate, totalConsumedMilli: 0, remainder: 0 };
}

function heldBy(bucket: SeenBucket, stored: StoredLimit, epochMs: number) {
  const balance = balanceAt(bucket, stored, epochMs);
  return {
    balanceMilli: balanceOf(balance),
    remainder: looksFull(balance) ? 0 : balance.remainder,
  };
}

function totalOf(one: number | bigint, other: number): number | bigint {
  return typeof one === "bigint" ? one + BigInt(other) : one + other;
}

function setLimit(
  plan: WritePlan,
  name: string,
  { limit, consumedMilli }: Sum,
  before: StoredLimit | undefined,
  gone: SeenBucket,
  count: number,
): void {
  const { tokensMilli, remainder, rate } = limit;
  if (hasSlots(rate)) {
    plan.set(freeOf(name), tokensMilli / 1000);
    if (before === undefined) plan.set(slotCapacityOf(name), rate.capacityMilli / 1000);
    return;
  }
  plan.set(`b_${name}_tk`, tokensMilli);
  plan.replaceRemainder(name, remainder);
  plan.add(`b_${name}_tc`, consumedMilli);
  if (limit.period !== undefined)
    setPeriod(plan, name, rate.rule as PeriodRule, limit.period, count);
  if (before !== undefined) return;
  invariant(gone.limits.has(name), "a limit of a pair is in one of the two");
  plan.set(`b_${name}_cp`, rate.capacityMilli);
  plan.set(`b_${name}_ra`, rate.refillMilli);
  plan.set(`b_${name}_rp`, rate.periodMs);
}

/**
 * Requires that the item is as it was seen, balances included, and no Python client has written to
 * it.
 */
function requireExactly(plan: WritePlan, bucket: SeenBucket, nowMs: number): void {
  plan.requireSeen(bucket, nowMs);
  plan.require(asSeen(GENERATION, bucket.generation));
  plan.atLeast(PYTHON_TRACE, WRITES_RATE.capacityMilli);
  for (const [name, stored] of bucket.limits) {
    if (!hasSlots(stored.rate)) {
      plan.requireBalance(name, stored);
      continue;
    }
    // No slot is taken or given back meanwhile: what is free and what is held add up.
    plan.require({ is: "=", name: freeOf(name), value: stored.tokensMilli / 1000 });
  }
}

/** Returns the write that leaves nothing of a shard but its key. */
function stubPlan(item: Item, gone: SeenBucket, acquires: number, nowMs: number): WritePlan {
  const plan = new WritePlan();
  plan.remove(...Object.keys(item).filter((name) => !KEY_ATTRIBUTES.has(name)));
  plan.set("ttl", Math.ceil(nowMs / 1000) + STUB_SECONDS);
  requireExactly(plan, gone, nowMs);
  plan.requireNumber(ACQUIRES, acquires);
  for (const [name, { totalConsumedMilli: total, rate }] of gone.limits) {
    if (hasSlots(rate)) continue;
    const value = total ?? 0;
    plan.require({ is: "=", name: `b_${name}_tc`, value, orAbsent: total === undefined });
  }
  return plan;
}

/** Returns the time to live of a bucket of one shard, by the config that it was built from. */
function ttlOf(bucket: SeenBucket, multiplier: number, nowMs: number): number | undefined {
  const source = (bucket.configSource ?? "override") as LimitSource;
  const left = [...bucket.limits.values()].map(({ rate, tokensMilli: balanceMilli, period }) => {
    return { rate, balanceMilli, endMs: period?.endMs ?? 0 };
  });
  return bucketTtl(undefined, { multiplier, source, isNew: false }, left, nowMs);
}
