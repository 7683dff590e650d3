/**
 * Balances at a time: the stored state, with what has accrued since its base time.
 *
 * `rf` is a base time that rarely moves, and `tk` the balance at it. Each reader computes what has
 * accrued since, and no write is made just to refill. Parameters are stored undivided; a shard has
 * its share of them.
 */

import {
  accrued,
  accruedMilli,
  DEBT_MILLI_MAX,
  type Rate,
  shardRate,
} from "../../../core/bucket.ts";
import type { StoredBucket, StoredLimit } from "../../../records/bucket-item.ts";
import { isPinned } from "./seen-bucket.ts";

const EPOCH_AGE_MS_MAX = 86_400_000;
/** Clocks differ a little; a base time further ahead than this is pulled back. */
export const EPOCH_AHEAD_MS_MAX = 2000;
const PRODUCT_MAX = Number.MAX_SAFE_INTEGER / 4;

/** One limit of an item, at a time. */
export interface BalanceAt {
  readonly stored: StoredLimit;
  /** The shard's share of the limit. */
  readonly share: Rate;
  /** What has accrued since the base time, rounded down; negative when that lies ahead. */
  readonly accruedMilli: number;
  /** What the rounding left over, below the share's period. */
  readonly remainder: number;
  /** What has accrued at least, and at most, with any remainder the item may have by now. */
  readonly accruedMin: number;
  readonly accruedMax: number;
  /** The remainder with which what has accrued is a whole number. */
  readonly wholeRemainder: number;
}

export function balanceAt(
  bucket: Pick<StoredBucket, "shard" | "shardCount" | "refilledAtMs">,
  stored: StoredLimit,
  nowMs: number,
): BalanceAt {
  const share = shardRate(stored.rate, bucket.shard, bucket.shardCount);
  const carried = carriedOf(stored.remainder, share);
  const { periodMs } = share;
  const bare = accrued(share, nowMs - bucket.refilledAtMs, 0);
  const parts = bare.remainder + carried;
  const whole = parts >= periodMs ? 1 : 0;
  return {
    stored,
    share,
    accruedMilli: bare.quotient + whole,
    remainder: parts - whole * periodMs,
    accruedMin: bare.quotient,
    accruedMax: bare.quotient + Math.ceil((bare.remainder + periodMs - 1) / periodMs),
    wholeRemainder: bare.remainder === 0 ? 0 : periodMs - bare.remainder,
  };
}

/** Returns `balanceOf(balanceAt(…))` without making the object: most calls need nothing else. */
export function balanceMilliAt(
  bucket: Pick<StoredBucket, "shard" | "shardCount" | "refilledAtMs">,
  { rate, tokensMilli, remainder }: StoredLimit,
  nowMs: number,
): number {
  const share = shardRate(rate, bucket.shard, bucket.shardCount);
  const carried = carriedOf(remainder, share);
  const gainedMilli = accruedMilli(share, nowMs - bucket.refilledAtMs, carried);
  const { capacityMilli } = share;
  return isFull(tokensMilli, capacityMilli, gainedMilli)
    ? capacityMilli
    : tokensMilli + gainedMilli;
}

/** Another writer may have moved the base time without the remainder: it must be plausible. */
function carriedOf(remainder: number, { periodMs }: Rate): number {
  return remainder >= 0 && remainder < periodMs ? remainder : 0;
}

/** Returns whether every millisecond accrues whole milli-tokens, so that there is no remainder. */
export function isEven({ share, stored }: BalanceAt): boolean {
  return stored.remainder === 0 && share.refillMilli % share.periodMs === 0;
}

/** Returns all limits of an item, at a time. */
export function balancesAt(bucket: StoredBucket, nowMs: number): Map<string, BalanceAt> {
  const balances = new Map<string, BalanceAt>();
  for (const [name, stored] of bucket.limits) balances.set(name, balanceAt(bucket, stored, nowMs));
  return balances;
}

/** Accrued, rounded up: with so much less than its capacity a bucket is not beyond full. */
export function accruedUp({ accruedMilli, remainder }: BalanceAt): number {
  return remainder > 0 ? accruedMilli + 1 : accruedMilli;
}

/** The balance of the shard. Compared by subtraction, because accrued may be saturated. */
export function balanceOf(balance: BalanceAt): number {
  const { stored, share, accruedMilli } = balance;
  return looksFull(balance) ? share.capacityMilli : stored.tokensMilli + accruedMilli;
}

export function looksFull({ stored, share, accruedMilli }: BalanceAt): boolean {
  return isFull(stored.tokensMilli, share.capacityMilli, accruedMilli);
}

function isFull(tokensMilli: number, capacityMilli: number, accruedMilli: number): boolean {
  return accruedMilli >= capacityMilli - tokensMilli;
}

/** The change of a stored balance, cut where the debt would be deeper than numbers can tell. */
export function boundedChange(tokensMilli: number, change: number): number {
  return Math.max(change, Math.min(0, -DEBT_MILLI_MAX - tokensMilli));
}

/** Whether the base time must move before the bucket can be written: it is old, or lies ahead. */
export function mustRebase(bucket: StoredBucket, nowMs: number): boolean {
  if (isPinned(bucket)) return false;
  const ageMs = nowMs - bucket.refilledAtMs;
  if (ageMs > EPOCH_AGE_MS_MAX || ageMs < -EPOCH_AHEAD_MS_MAX) return true;
  for (const { rate } of bucket.limits.values()) {
    if (ageMs * rate.refillMilli > PRODUCT_MAX) return true;
  }
  return false;
}
