/**
 * A bucket item as this library reads it, and its balances at a time: the stored state, with what
 * has accrued since its base time.
 *
 * `rf` is a base time that rarely moves, and `tk` the balance at it. Each reader computes what has
 * accrued since, and no write is made just to refill. Parameters are stored undivided; a shard has
 * its share of them.
 */

import {
  accrued,
  accruedMilli,
  DEBT_MILLI_MAX,
  hasSlots,
  type Level,
  type Rate,
  shardRate,
} from "../../../core/bucket.ts";
import { walkBack } from "../../../core/rate-schedule.ts";
import { SCHEDULES } from "../../../domain/schedules.ts";
import {
  boundedAt,
  decodeBucket,
  encodeBucket,
  type StoredBucket,
  type StoredLimit,
} from "../../../records/bucket-item.ts";
import { type Item, textAt } from "../../../storage/item.ts";
import type { Test } from "../../../storage/item-store.ts";
import type { BuiltFrom } from "../../config-match.ts";
import { inForce } from "../../rates-in-time.ts";
import { type PausedLimits, pausedAttributes, pausedIn } from "./paused-limits.ts";
import { type Place, storedAt } from "./period-plan.ts";

const EPOCH_AGE_MS_MAX = 86_400_000;
/** Clocks differ a little; a base time further ahead than this is pulled back. */
export const EPOCH_AHEAD_MS_MAX = 2000;
const PRODUCT_MAX = Number.MAX_SAFE_INTEGER / 4;

/** A bucket, and what only clients of this library keep in it. */
export interface SeenBucket extends StoredBucket {
  /** Which of the rebases to its base time it has been through; nearly always 0, the first. */
  readonly rebases: number;
  /** Rises with every merge; only clients that know it split the shard (ADR 030). */
  readonly generation: number;
  /** When a client last began to merge shards; on the first shard. */
  readonly mergingAtMs: number | undefined;
  /** How many writes the first of several shards has counted. */
  readonly writesCounted: number;
  /** Record of what the bucket has needed, see `need.ts`; on the first shard. */
  readonly need: string | undefined;
  /** Limits that wait for the end of their period; nearly always none. */
  readonly paused: PausedLimits;
}

/** Absent, unless a bucket was rebased more than once within a millisecond. */
export const REBASES = "rn";
/** Absent, unless shards of the bucket were merged. */
export const GENERATION = "mg";
export const MERGING = "ma";
/** The record of what the bucket has needed, and the count of writes that it is measured by. */
export const NEED = "nd";
export const WRITES = "wn";

/** Attributes of our own that a bucket of one shard has. */
export const UNSHARDED = {
  generation: 0,
  mergingAtMs: undefined,
  writesCounted: 0,
  need: undefined,
  paused: undefined,
} as const;

/** Returns the bucket in an item, if there is one. */
export function decoded(item: Item | undefined): SeenBucket | undefined {
  const bucket = item === undefined ? undefined : decodeBucket(item);
  if (item === undefined || bucket === undefined) return undefined;
  const { shard, shardCount } = bucket;
  const isFirst = shard === 0 && shardCount > 1;
  // The object is not shared yet: a copy would only cost time.
  const seen = bucket as { -readonly [Name in keyof SeenBucket]: SeenBucket[Name] };
  seen.rebases = boundedAt(item, REBASES, 1, Number.MAX_SAFE_INTEGER) ?? 0;
  seen.generation = boundedAt(item, GENERATION, 1, Number.MAX_SAFE_INTEGER) ?? 0;
  seen.mergingAtMs = isFirst ? boundedAt(item, MERGING, 0, Number.MAX_SAFE_INTEGER) : undefined;
  seen.writesCounted = isFirst ? (boundedAt(item, WRITES, 0, Number.MAX_SAFE_INTEGER) ?? 0) : 0;
  seen.need = isFirst ? textAt(item, NEED) : undefined;
  seen.paused = bucket.hasPaused ? pausedIn(item) : undefined;
  return seen;
}

/** Returns the item of a shard other than the first. */
export function encodeShard(namespaceId: string, bucket: SeenBucket): Item {
  const { rebases, generation, paused } = bucket;
  return {
    ...encodeBucket(namespaceId, bucket),
    ...pausedAttributes(paused),
    ...(rebases === 0 ? {} : { [REBASES]: rebases }),
    ...(generation === 0 ? {} : { [GENERATION]: generation }),
  };
}

/**
 * Whether the base time of the bucket must not be moved by this library: balances that only the
 * Python library can bring to another time refer to it.
 */
export function isPinned({ python }: StoredBucket): boolean {
  return python !== undefined && python.unsupported.size > 0;
}

/**
 * Returns whether the shards of a bucket are announced and not created, as the Python library does
 * it: more than there can be, or with the tokens of several shards still in this one.
 */
export function isAnnounced(bucket: SeenBucket): boolean {
  if (bucket.announced !== undefined) return true;
  if (bucket.shardCount === 1) return false;
  for (const stored of bucket.limits.values()) if (excessMilli(bucket, stored) > 0) return true;
  return false;
}

/** Returns the milli-tokens of a shard beyond its share, although nothing has accrued since. */
export function excessMilli(bucket: SeenBucket, stored: StoredLimit): number {
  // Top-ups and what is carried may be beyond an allowance, and slots go back to where they were.
  if (stored.rate.refillMilli === 0) return 0;
  const { capacityMilli } = shareAt(bucket, stored.rate, bucket.refilledAtMs);
  return Math.max(0, stored.tokensMilli - capacityMilli);
}

/** Returns an item in the form that `matchConfig` takes. */
export function builtFrom(bucket: StoredBucket): BuiltFrom {
  return {
    version: bucket.configVersion,
    source: bucket.configSource,
    rateOf: (name) => bucket.limits.get(name)?.rate,
    limitNames: () => bucket.limits.keys(),
    unsupported: (name) => bucket.python?.unsupported.get(name),
  };
}

/** The place of a shard, and the time that its balances refer to. */
type ShardAtBase = Place & Pick<StoredBucket, "refilledAtMs">;

/** One limit of an item, at a time. */
export interface BalanceAt {
  readonly stored: StoredLimit;
  /** The shard's share of the limit. */
  readonly share: Rate;
  /** Milli-tokens accrued since the base time, rounded down; negative when that lies ahead. */
  readonly accruedMilli: number;
  /** Remainder of the rounding, below the share's period. */
  readonly remainder: number;
  /** Least and most that has accrued, with any remainder the item may have by now. */
  readonly accruedMin: number;
  readonly accruedMax: number;
  /** The remainder with which what has accrued is a whole number. */
  readonly wholeRemainder: number;
  /** Whether `stored` is the limit of the item as of its last boundary, and not as it is stored. */
  readonly isWalked: boolean;
}

export function balanceAt(bucket: ShardAtBase, limit: StoredLimit, nowMs: number): BalanceAt {
  const walked = hasPassed(bucket, limit, nowMs) ? levelAt(bucket, limit, nowMs) : undefined;
  const stored = walked === undefined ? storedIn(bucket, limit, nowMs) : { ...limit, ...walked };
  const sinceMs = walked?.refilledAtMs ?? bucket.refilledAtMs;
  const share = shareAt(bucket, stored.rate, walked === undefined ? sinceMs : nowMs);
  const carried = carriedOf(stored.remainder, share);
  const { periodMs } = share;
  const bare = accrued(share, nowMs - sinceMs, 0);
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
    isWalked: walked !== undefined,
  };
}

function storedIn(bucket: ShardAtBase, limit: StoredLimit, nowMs: number): StoredLimit {
  return limit.period === undefined ? limit : storedAt(bucket, limit, nowMs);
}

/** Returns the part of a shard in a limit, with the numbers that are in force at a time. */
export function shareAt({ shard, shardCount }: Place, rate: Rate, ms: number): Rate {
  return shardRate(SCHEDULES.rateAt(rate, ms), shard, shardCount);
}

/**
 * Whether other numbers are in force than at the base time: a write then moves the base time. One
 * that lies ahead a little is taken as it is; one that is pulled back goes through boundaries, too.
 */
export function hasPassed(
  { refilledAtMs }: Pick<StoredBucket, "refilledAtMs">,
  { rate }: Pick<StoredLimit, "rate">,
  nowMs: number,
): boolean {
  if (rate.schedule === undefined) return false;
  if (nowMs >= SCHEDULES.endAt(rate, refilledAtMs)) return true;
  const isPulledBack = refilledAtMs - nowMs > EPOCH_AHEAD_MS_MAX;
  return isPulledBack && SCHEDULES.endAt(rate, nowMs) <= refilledAtMs;
}

/** Returns the level of a limit with windows at its last boundary, or as of now if it is ahead. */
export function levelAt(
  { shard, shardCount, refilledAtMs }: ShardAtBase,
  { tokensMilli, remainder, rate }: StoredLimit,
  nowMs: number,
): Level {
  const level = { tokensMilli, refilledAtMs, remainder };
  if (refilledAtMs <= nowMs) return inForce(level, rate, nowMs, shard, shardCount).level;
  return walkBack(level, SCHEDULES.inTime(rate, shard, shardCount), nowMs);
}

/** Returns the numbers by which a bucket is kept: of a limit with windows, all of them. */
export function keptBy({ stored, share }: BalanceAt): Rate {
  return stored.rate.schedule === undefined ? share : stored.rate;
}

/** Whether a limit of a bucket has passed a boundary. */
export function mustWalk(bucket: StoredBucket, nowMs: number): boolean {
  for (const stored of bucket.limits.values()) if (hasPassed(bucket, stored, nowMs)) return true;
  return false;
}

/** Returns `balanceOf(balanceAt(…))` without making the object: most calls need nothing else. */
export function balanceMilliAt(bucket: ShardAtBase, stored: StoredLimit, nowMs: number): number {
  if (stored.period !== undefined) return storedAt(bucket, stored, nowMs).tokensMilli;
  const { rate, tokensMilli, remainder } = stored;
  if (hasSlots(rate)) return tokensMilli;
  if (hasPassed(bucket, stored, nowMs)) return balanceOf(balanceAt(bucket, stored, nowMs));
  const share = shareAt(bucket, rate, bucket.refilledAtMs);
  const carried = carriedOf(remainder, share);
  const gainedMilli = accruedMilli(share, nowMs - bucket.refilledAtMs, carried);
  const { capacityMilli } = share;
  return isFull(tokensMilli, capacityMilli, gainedMilli)
    ? capacityMilli
    : tokensMilli + gainedMilli;
}

/** Returns a plausible remainder: another writer may have moved the base time without it. */
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

/**
 * Returns what has accrued, rounded up: with that much less than its capacity a bucket is not full.
 */
export function accruedUp({ accruedMilli, remainder }: BalanceAt): number {
  return remainder > 0 ? accruedMilli + 1 : accruedMilli;
}

/** Returns the balance of the shard. Compared by subtraction, because accrued may be saturated. */
export function balanceOf(balance: BalanceAt): number {
  const { stored, share, accruedMilli } = balance;
  return looksFull(balance) ? share.capacityMilli : stored.tokensMilli + accruedMilli;
}

/** Whether a limit is full. One with periods or slots never is: nothing is capped. */
export function looksFull({ stored, share, accruedMilli }: BalanceAt): boolean {
  if (stored.rate.refillMilli === 0) return false;
  return isFull(stored.tokensMilli, share.capacityMilli, accruedMilli);
}

function isFull(tokensMilli: number, capacityMilli: number, accruedMilli: number): boolean {
  return accruedMilli >= capacityMilli - tokensMilli;
}

/**
 * Returns the change of a stored balance, cut where the debt would be deeper than numbers can hold.
 */
export function boundedChange(tokensMilli: number, change: number): number {
  return Math.max(change, Math.min(0, -DEBT_MILLI_MAX - tokensMilli));
}

/** Whether the base time must move before the bucket can be written: it is old, or lies ahead. */
export function mustRebase(bucket: StoredBucket, nowMs: number): boolean {
  if (isPinned(bucket)) return false;
  if (mustWalk(bucket, nowMs)) return true;
  const ageMs = nowMs - bucket.refilledAtMs;
  if (ageMs > EPOCH_AGE_MS_MAX || ageMs < -EPOCH_AHEAD_MS_MAX) return true;
  for (const { rate } of bucket.limits.values()) {
    if (ageMs * rate.refillMilli > PRODUCT_MAX) return true;
  }
  return false;
}

/** Requires a number as it was seen; 0 is not stored. */
export function asSeen(name: string, value: number): Test {
  return value === 0 ? { is: "absent", name } : { is: "=", name, value };
}

/** Requires the count of shards, which buckets of the oldest Python libraries do not have. */
export function sameCount({ announced, shardCount, isUncounted }: SeenBucket): Test {
  const name = "shard_count";
  return isUncounted === true
    ? { is: "absent", name }
    : { is: "=", name, value: announced ?? shardCount };
}

/**
 * Requires that the bucket has not expired, unless it was seen so. Whether it has a time to live is
 * left open: clients with other settings may renew, set or remove it with each of their writes.
 */
export function notExpired(ttl: number | undefined, nowSeconds: number): Test {
  return ttl !== undefined && ttl <= nowSeconds
    ? { is: "=", name: "ttl", value: ttl }
    : { is: ">", name: "ttl", value: nowSeconds, orAbsent: true };
}
