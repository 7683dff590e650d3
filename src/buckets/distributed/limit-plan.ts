/**
 * What all plans for a bucket share: the change of one limit, the count of acquires, the time to
 * live.
 *
 * Each limit is *low* or *full*. A low one loses the amount, relative to the base time. A full one
 * is set to what is left, relative to the base time, so that the time beyond full is dropped, with
 * the remainder that makes it exact. The conditions are ranges of the stored balance, so concurrent
 * consumes commute; they hold for every remainder that another client may have set meanwhile, and
 * only a consume that comes within two milli-tokens of a bound insists on the one it has seen.
 * A plain "consume if the balance suffices" would grant twice the capacity after idling.
 */

import { invariant } from "../../domain/check.ts";
import { ACQUIRES } from "../../records/bucket-item.ts";
import { bucketTtl, coveredMilli, type LeftOver } from "../bucket-ttl.ts";
import type { BucketConfig } from "../leg.ts";
import { type BalanceAt, balanceOf, boundedChange, looksFull } from "./balance-at.ts";
import { isPinned, type SeenBucket } from "./seen-bucket.ts";
import type { WritePlan } from "./write-plan.ts";

/** Milli-tokens by the name of the limit. */
export type AmountsByName = ReadonlyMap<string, number>;

/** How a limit that is consumed was judged. */
export interface Guess {
  readonly limitName: string;
  readonly full: boolean;
  /** The limit looked full, so a consume of another client would have made a difference. */
  readonly lookedFull: boolean;
  /** The stored balance after the write, if the guess is right and no other client writes. */
  readonly tokensMilli: number;
  readonly remainder: number;
}

export interface PlanContext {
  readonly nowMs: number;
  readonly ttlMultiplier: number;
  /** Whether a limit that looks full counts as full: other clients may have consumed since. */
  readonly trustFull: (limitName: string) => boolean;
  /** An adjustment: never refused, may go into debt, and an amount below zero is a refund. */
  readonly force?: boolean;
  /** What is consumed is only counted: balances stay as they are. */
  readonly bypass?: boolean;
  /** The limits that may go into debt. */
  readonly soft?: ReadonlySet<string> | undefined;
  /** How many acquires the write counts as; when absent, one if it consumes, none if forced. */
  readonly acquires?: number;
  /** What the write adds to the meter; that of a plain write when absent. */
  readonly costMs?: number;
}

/** The amounts by the names of their limits. */
export function amountsByName(
  { limits }: Pick<BucketConfig, "limits">,
  amountsMilli: readonly number[],
): AmountsByName {
  const amounts = new Map<string, number>();
  for (let at = 0; at < limits.length; at += 1) {
    amounts.set((limits[at] as (typeof limits)[number]).name, amountsMilli[at] ?? 0);
  }
  return amounts;
}

/** Whether an amount above zero is more than there is. */
export function exceeds(
  amountsMilli: readonly number[],
  balancesMilli: readonly number[],
): boolean {
  return amountsMilli.some((amount, at) => amount > 0 && amount > (balancesMilli[at] as number));
}

/** Whether anything is consumed. */
export function consumes(amountsMilli: readonly number[]): boolean {
  return amountsMilli.some((amount) => amount > 0);
}

/** Counts the acquires, for the aggregator of usage. */
export function countAcquires(
  plan: WritePlan,
  amountsMilli: readonly number[],
  { acquires, force }: PlanContext,
): void {
  plan.add(ACQUIRES, acquires ?? (force !== true && consumes(amountsMilli) ? 1 : 0));
}

/** Plans the change of one limit by an amount; below zero it is a refund. */
export function planLimit(
  plan: WritePlan,
  name: string,
  balance: BalanceAt,
  amount: number,
  context: PlanContext,
): Guess {
  invariant(Number.isSafeInteger(amount), "an amount is a safe integer of milli-tokens");
  plan.add(`b_${name}_tc`, amount);
  if (context.bypass === true) return planCount(plan, name, balance);
  if (amount < 0) return planRefund(plan, name, balance, -amount);
  const { stored, share } = balance;
  const { capacityMilli } = share;
  const tokens = `b_${name}_tk`;
  const lookedFull = looksFull(balance);
  const full = lookedFull && context.trustFull(name);
  if (full) {
    const { wholeRemainder: remainder } = balance;
    const accruedMilli = balance.accruedMin + (remainder > 0 ? 1 : 0);
    const tokensMilli = capacityMilli - accruedMilli - amount;
    plan.set(tokens, tokensMilli);
    plan.setRemainder(name, balance, remainder);
    plan.requireFull(name, balance, capacityMilli);
    // Without a remainder the prediction keeps the one that was seen: the write may not remove it.
    const expected = remainder === 0 ? stored.remainder : remainder;
    return { limitName: name, full, lookedFull, tokensMilli, remainder: expected };
  }
  plan.add(tokens, boundedChange(stored.tokensMilli, -amount));
  if (context.force !== true && context.soft?.has(name) !== true) {
    plan.requireEnough(name, balance, amount);
  }
  plan.requireLow(name, balance, capacityMilli);
  const { remainder } = stored;
  return { limitName: name, full, lookedFull, tokensMilli: stored.tokensMilli - amount, remainder };
}

/** The balance stays as it is: only what was consumed in total changes. */
function planCount(plan: WritePlan, name: string, { stored }: BalanceAt): Guess {
  plan.require({ is: "exists", name: `b_${name}_tk` });
  const { tokensMilli, remainder } = stored;
  return { limitName: name, full: false, lookedFull: false, tokensMilli, remainder };
}

/** Needs to know nothing of the item but that it has the limit. */
function planRefund(plan: WritePlan, name: string, { stored }: BalanceAt, amount: number): Guess {
  const tokens = `b_${name}_tk`;
  plan.add(tokens, amount);
  plan.require({ is: "exists", name: tokens });
  const { remainder } = stored;
  const tokensMilli = stored.tokensMilli + amount;
  return { limitName: name, full: false, lookedFull: false, tokensMilli, remainder };
}

/** What is left of every limit of the bucket, also of those that the call does not name. */
export function* leftOf(
  balances: ReadonlyMap<string, BalanceAt>,
  amounts: AmountsByName,
): Generator<LeftOver> {
  for (const [name, balance] of balances) {
    const balanceMilli = balanceOf(balance) - (amounts.get(name) ?? 0);
    yield { rate: balance.share, balanceMilli };
  }
}

/** Renews the time to live where that is due. `left`: what the write leaves, of every limit. */
export function planTtl(
  plan: WritePlan,
  bucket: SeenBucket,
  config: Pick<BucketConfig, "source">,
  left: Iterable<LeftOver>,
  context: Pick<PlanContext, "nowMs" | "ttlMultiplier">,
): number | undefined {
  // Only the Python library knows how long a quota or a schedule needs the bucket.
  if (isPinned(bucket)) return planPinnedTtl(plan, bucket, context.nowMs);
  // A bucket that expired shard by shard could not be told from one that was never split.
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

/** Leaves it as it is; one that is over is removed, because the bucket is in use. */
function planPinnedTtl(plan: WritePlan, { ttl }: SeenBucket, nowMs: number): undefined {
  if (ttl !== undefined && ttl * 1000 <= nowMs) plan.remove("ttl");
  return undefined;
}

/**
 * A time to live was computed from the balances of a cached state, and other clients may have gone
 * into debt since: the write needs balances that the time covers, of the limits it consumes without
 * a check, and of all limits when it sets a time where there was none.
 */
export function requireCovered(
  plan: WritePlan,
  bucket: SeenBucket,
  balances: ReadonlyMap<string, BalanceAt>,
  amounts: AmountsByName,
  ttl: number | undefined,
  context: Pick<PlanContext, "nowMs" | "force">,
): void {
  if (ttl === undefined) return;
  const begins = bucket.ttl === undefined;
  if (!begins && context.force !== true) return;
  for (const [name, balance] of balances) {
    const amount = amounts.get(name) ?? 0;
    if (!begins && amount <= 0) continue;
    const lowest = coveredMilli(ttl, balance.share, context.nowMs) + Math.max(0, amount);
    plan.requireEnough(name, balance, lowest);
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
