/**
 * Plans the split of shard `i` of `n` into `i`, `i + n`, … of `f * n`.
 *
 * All get the same base time, and each new one its part of the balance, which the old one loses in
 * the same transaction: nothing is minted and nothing is lost. Shares of `f * n` add up to those of
 * `n`, in capacity and in rate, so each shard may split at a time of its own.
 *
 * A shard that was announced and not made, as the Python library doubles, gets what belongs to it
 * from a shard that it descends from: it is still there, beyond that one's share.
 */

import { hasSlots } from "../../../core/bucket.ts";
import { invariant } from "../../../domain/check.ts";
import type { StoredLimit } from "../../../records/bucket-item.ts";
import { NO_MARKS } from "../../../records/slot-attributes.ts";
import { linkTests } from "../../leg.ts";
import { FULL_PYTHON_METER } from "../plan/new-bucket.ts";
import { pausedAside } from "../plan/paused-limits.ts";
import { dividePeriod } from "../plan/period-plan.ts";
import {
  accruedUp,
  asSeen,
  type BalanceAt,
  balanceAt,
  balanceOf,
  excessMilli,
  GENERATION,
  isEven,
  looksFull,
  NEED,
  type SeenBucket,
  shareAt,
  UNSHARDED,
} from "../plan/seen-bucket.ts";
import { divideSlots, giveLateShard } from "../plan/slot-plan.ts";
import { moveEpoch, WritePlan } from "../plan/write-plan.ts";
import { restartMeter } from "../plan/writes-meter.ts";
import { needAfterSplit } from "./need.ts";

export interface Split {
  /** The write to the shard that is there. */
  readonly plan: WritePlan;
  /** State of the shard after the split, if no other client writes before it. */
  readonly kept: SeenBucket;
  readonly created: readonly SeenBucket[];
}

/** How to split a shard that other clients keep writing to; each attempt tolerates more writes. */
export interface SplitManner {
  /** Trusts that a limit that seems full is full. With many writers, it was full a moment ago. */
  readonly trustFull: boolean;
  /** The remainder must be as seen. Otherwise a part of a milli-token is given up. */
  readonly exact: boolean;
  /** Moves no more tokens than necessary: those that were seen may have been consumed. */
  readonly cautious: boolean;
}

/** For a shard that no other client writes to. */
export const UNDISTURBED: SplitManner = { trustFull: true, exact: true, cautious: false };

/** Plans a split into `factor` shards, a power of two. */
export function planSplit(
  bucket: SeenBucket,
  nowMs: number,
  manner = UNDISTURBED,
  factor = 2,
): Split {
  const { shard, shardCount, refilledAtMs } = bucket;
  invariant(factor >= 2 && Number.isInteger(Math.log2(factor)), "shards double");
  const plan = new WritePlan();
  const count = shardCount * factor;
  const epochMs = Math.max(nowMs, refilledAtMs);
  invariant(epochMs >= refilledAtMs, "a split does not move the base time back");
  const places = Array.from({ length: factor - 1 }, (_, at) => shard + (at + 1) * shardCount);
  const kept = new Map<string, StoredLimit>();
  const moved = places.map(() => new Map<string, StoredLimit>());
  for (const [name, stored] of bucket.limits) {
    const balance = balanceAt(bucket, stored, epochMs);
    if (stored.rate.refillMilli === 0) {
      const [own, ...others] = hasSlots(stored.rate)
        ? divideSlots(plan, name, stored, factor)
        : dividePeriod(plan, bucket, name, stored, factor, epochMs);
      kept.set(name, own as StoredLimit);
      others.forEach((limit, at) => {
        moved[at]?.set(name, limit);
      });
      continue;
    }
    const rooms = [shard, ...places].map(
      (at) => shareAt({ shard: at, shardCount: count }, stored.rate, epochMs).capacityMilli,
    );
    // The plan goes by the balance at a later boundary, so the stored one must be as seen.
    if (balance.isWalked) plan.requireBalance(name, stored);
    const parts = planParts(plan, name, balance, rooms, manner);
    kept.set(name, { ...stored, tokensMilli: parts.keptMilli, remainder: parts.remainder });
    const fresh = { remainder: 0, totalConsumedMilli: 0 };
    parts.movedMilli.forEach((tokensMilli, at) => {
      moved[at]?.set(name, { ...stored, tokensMilli, ...fresh });
    });
  }
  const meterMs = restartMeter(plan, bucket, epochMs);
  const writes = bucket.writes && FULL_PYTHON_METER;
  plan.set("shard_count", count);
  // If shards expired one by one, the rest would look like a bucket that was never split.
  if (bucket.ttl !== undefined) plan.remove("ttl");
  plan.requireSeen(bucket, nowMs);
  plan.require(asSeen(GENERATION, bucket.generation), ...linkTests(bucket));
  const sharding = planSharding(plan, bucket, count, epochMs);
  const rebases = moveEpoch(plan, bucket, epochMs);
  const sharded = { shardCount: count, isUncounted: undefined, ttl: undefined };
  const all = { ...bucket, ...sharded, refilledAtMs: epochMs };
  const { generation } = sharding;
  // Numbered like the old item, because a merged shard may come back within a millisecond.
  const other = { ...UNSHARDED, generation, rebases, writes: FULL_PYTHON_METER, meterMs };
  return {
    plan,
    kept: { ...all, ...sharding, rebases, limits: kept, writes, meterMs },
    created: places.map((at, index) => {
      const limits = moved[index] as Map<string, StoredLimit>;
      return { ...all, ...other, shard: at, limits, paused: pausedAside(bucket.paused) };
    }),
  };
}

/**
 * Sets the count and the need, which only the first shard has. When it splits while shards
 * are being merged, its generation rises, so that those may split again.
 */
function planSharding(plan: WritePlan, bucket: SeenBucket, count: number, epochMs: number) {
  const { shard, generation, mergingAtMs, writesCounted } = bucket;
  if (shard > 0) return { generation };
  const need = needAfterSplit(bucket, count, epochMs);
  plan.set(NEED, need);
  if (mergingAtMs === undefined) return { generation, need, writesCounted };
  plan.set(GENERATION, generation + 1);
  return { generation: generation + 1, need, writesCounted };
}

/** Divides the balance of one limit; `rooms`: the capacity of each shard, the old one first. */
function planParts(
  plan: WritePlan,
  name: string,
  balance: BalanceAt,
  rooms: readonly number[],
  manner: SplitManner,
) {
  if (balance.isWalked) return planWalkedParts(plan, name, balance, rooms, manner);
  const { trustFull, exact, cautious } = manner;
  const tokens = `b_${name}_tk`;
  const [capacityMilli = 0] = rooms;
  const balanceMilli = balanceOf(balance);
  const full = looksFull(balance) && trustFull;
  const certain = exact || isEven(balance);
  const accruedMilli = certain ? balance.accruedMilli : balance.accruedMin;
  const upMilli = certain ? accruedUp(balance) : balance.accruedMax;
  const part = full ? 0 : upMilli - accruedMilli;
  const movedMilli = partsOf(balanceMilli, part, rooms, cautious);
  const sumMilli = movedMilli.reduce((sum, moved) => sum + moved, 0);
  if (full) {
    plan.set(tokens, balanceMilli - sumMilli);
    plan.requireFull(name, balance, balanceMilli);
  } else {
    plan.add(tokens, accruedMilli - sumMilli);
    // Other clients may consume or refund meanwhile, as long as each shard holds its part.
    plan.atMost(tokens, capacityMilli + sumMilli - accruedMilli - part);
    if (sumMilli > 0) plan.atLeast(tokens, sumMilli - accruedMilli);
    if (certain) plan.requireRemainder(name, balance);
  }
  // The period is longer, and so are the parts of a milli-token in it.
  const remainder = full || !certain ? 0 : balance.remainder * rooms.length;
  plan.setRemainder(name, balance, remainder);
  return { keptMilli: balanceMilli - sumMilli, movedMilli, remainder };
}

/** Divides the balance of a limit with windows as it is at the last boundary. */
function planWalkedParts(
  plan: WritePlan,
  name: string,
  balance: BalanceAt,
  rooms: readonly number[],
  { cautious }: SplitManner,
) {
  const balanceMilli = balanceOf(balance);
  const movedMilli = partsOf(balanceMilli, 0, rooms, cautious);
  const keptMilli = balanceMilli - movedMilli.reduce((sum, moved) => sum + moved, 0);
  plan.set(`b_${name}_tk`, keptMilli);
  // The balance is required as it was seen, so the remainder is known, too.
  const remainder = looksFull(balance) ? 0 : balance.remainder * rooms.length;
  plan.replaceRemainder(name, remainder);
  return { keptMilli, movedMilli, remainder };
}

/**
 * Returns an even part of the balance for each new shard, none in debt, and more where the rest
 * would not fit into the old one; no more than it holds.
 */
function partsOf(
  balanceMilli: number,
  part: number,
  rooms: readonly number[],
  cautious: boolean,
): readonly number[] {
  const [keptMilli = 0, ...others] = rooms;
  const stays = cautious && balanceMilli + part <= keptMilli;
  const even = stays ? 0 : Math.max(0, Math.floor(balanceMilli / rooms.length));
  const parts = others.map((room) => Math.min(even, room));
  let beyond = balanceMilli + part - keptMilli - parts.reduce((sum, moved) => sum + moved, 0);
  for (let at = 0; at < parts.length && beyond > 0; at += 1) {
    const more = Math.min(beyond, (others[at] as number) - (parts[at] as number));
    parts[at] = (parts[at] as number) + more;
    beyond -= more;
  }
  invariant(
    parts.every((moved, at) => moved >= 0 && moved <= (others[at] as number)),
    "a new shard gets at most its share",
  );
  return parts;
}

export interface LateShard {
  /** The write to the shard that gives. */
  readonly plan: WritePlan;
  readonly limits: ReadonlyMap<string, StoredLimit>;
}

/**
 * Returns what a shard can give to one that is created late: what is beyond its share, and half of
 * what it has of a limit with periods.
 */
function movableMilli(donor: SeenBucket, given: StoredLimit): number {
  if (given.period === undefined) return excessMilli(donor, given);
  return Math.max(0, Math.floor(given.tokensMilli / 2));
}

/** Plans a shard that is created late. `first` has the parameters, and the count of shards. */
export function planLateShard(donor: SeenBucket, first: SeenBucket, shard: number): LateShard {
  const { shardCount } = first;
  const plan = new WritePlan();
  const limits = new Map<string, StoredLimit>();
  for (const [name, stored] of first.limits) {
    const given = donor.limits.get(name);
    if (hasSlots(stored.rate)) {
      const none = { ...stored, tokensMilli: 0, marks: NO_MARKS };
      const isGiven = given !== undefined && hasSlots(given.rate);
      limits.set(name, isGiven ? giveLateShard(plan, name, given) : none);
      continue;
    }
    const { capacityMilli } = shareAt({ shard, shardCount }, stored.rate, donor.refilledAtMs);
    const excess = given === undefined ? 0 : movableMilli(donor, given);
    const tokensMilli = Math.min(excess, capacityMilli);
    limits.set(name, { ...stored, tokensMilli, remainder: 0, totalConsumedMilli: 0 });
    if (given === undefined || tokensMilli === 0) continue;
    plan.add(`b_${name}_tk`, -tokensMilli);
    plan.atLeast(`b_${name}_tk`, given.tokensMilli - excess + tokensMilli);
  }
  // A client that may acquire may not check an item without writing it.
  plan.set("shard_count", donor.shardCount);
  plan.require({ is: "=", name: "shard_count", value: donor.shardCount });
  return { plan, limits };
}
