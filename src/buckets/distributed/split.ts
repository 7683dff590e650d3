/**
 * Plans the split of shard `i` of `n` into `i` and `i + n` of `2n`.
 *
 * Both get the same epoch, and the new one half the balance, which the old one loses in the same
 * transaction: nothing is minted and nothing is lost. Shares of `2n` add up to those of `n`, in
 * capacity and in rate, so each pair may split at a time of its own.
 */

import { shardRate } from "../../core/shares.ts";
import type { StoredLimit } from "../../records/bucket-item.ts";
import {
  accruedUp,
  balanceOf,
  isEven,
  type LimitImage,
  limitImage,
  looksFull,
  type SeenBucket,
} from "./image.ts";
import { linkTests } from "./link.ts";
import { FULL_PYTHON_METER } from "./new-bucket.ts";
import { moveEpoch } from "./rebase.ts";
import { WritePlan } from "./write-plan.ts";
import { restartMeter } from "./writes-meter.ts";

export interface Split {
  /** The write to the shard that is there. */
  readonly plan: WritePlan;
  /** What it will look like, if nobody else writes meanwhile. */
  readonly kept: SeenBucket;
  readonly created: SeenBucket;
}

/** How to split a shard that others keep writing to; each attempt minds them more. */
export interface SplitManner {
  /** A limit that looks full is full. Where others write all the time, it was a moment ago. */
  readonly trustFull: boolean;
  /** The remainder must be as seen. Without, a part of a milli-token is given up instead. */
  readonly exact: boolean;
  /** Nothing is moved where nothing has to be: half of what was seen may not be there any more. */
  readonly cautious: boolean;
}

/** Where nobody else writes. */
export const UNDISTURBED: SplitManner = { trustFull: true, exact: true, cautious: false };

export function planSplit(bucket: SeenBucket, nowMs: number, manner = UNDISTURBED): Split {
  const { shard, shardCount, refilledAtMs } = bucket;
  const plan = new WritePlan();
  const count = shardCount * 2;
  const epochMs = Math.max(nowMs, refilledAtMs);
  const kept = new Map<string, StoredLimit>();
  const moved = new Map<string, StoredLimit>();
  for (const [name, stored] of bucket.limits) {
    const image = limitImage(bucket, stored, epochMs);
    const { capacityMilli } = shardRate(stored.rate, shard, count);
    const half = planHalf(plan, name, image, capacityMilli, manner);
    kept.set(name, { ...stored, tokensMilli: half.keptMilli, remainder: half.remainder });
    const fresh = { remainder: 0, totalConsumedMilli: 0 };
    moved.set(name, { ...stored, tokensMilli: half.movedMilli, ...fresh });
  }
  const meterMs = restartMeter(plan, bucket, epochMs);
  const writes = bucket.writes && FULL_PYTHON_METER;
  plan.set("shard_count", count);
  // One that went away by itself, in parts, could not be told from one that was never split.
  if (bucket.ttl !== undefined) plan.remove("ttl");
  plan.requireSeen(bucket, nowMs);
  plan.require(...linkTests(bucket));
  const rebases = moveEpoch(plan, bucket, epochMs);
  const both = { ...bucket, shardCount: count, refilledAtMs: epochMs, ttl: undefined };
  const other = { shard: shard + shardCount, rebases: 0, writes: FULL_PYTHON_METER, meterMs };
  return {
    plan,
    kept: { ...both, rebases, limits: kept, writes, meterMs },
    created: { ...both, ...other, limits: moved },
  };
}

/** Halves the balance of one limit; `capacityMilli` is what the shard holds after the split. */
function planHalf(
  plan: WritePlan,
  name: string,
  image: LimitImage,
  capacityMilli: number,
  { trustFull, exact, cautious }: SplitManner,
) {
  const tokens = `b_${name}_tk`;
  const balanceMilli = balanceOf(image);
  const full = looksFull(image) && trustFull;
  const settled = exact || isEven(image);
  const accruedMilli = settled ? image.accruedMilli : image.accruedMin;
  const upMilli = settled ? accruedUp(image) : image.accruedMax;
  const part = full ? 0 : upMilli - accruedMilli;
  const beyond = balanceMilli + part - capacityMilli;
  const movedMilli =
    cautious && beyond <= 0 ? 0 : halfOf(balanceMilli, beyond, image, capacityMilli);
  if (full) {
    plan.set(tokens, balanceMilli - movedMilli);
    plan.requireFull(name, image, balanceMilli);
  } else {
    plan.add(tokens, accruedMilli - movedMilli);
    // Others may take or give back meanwhile, as long as each half holds its part.
    plan.atMost(tokens, capacityMilli + movedMilli - accruedMilli - part);
    if (movedMilli > 0) plan.atLeast(tokens, movedMilli - accruedMilli);
    if (settled) plan.requireRemainder(name, image);
  }
  // The period is twice as long, and so are the parts of a milli-token in it.
  const remainder = full || !settled ? 0 : image.remainder * 2;
  plan.setRemainder(name, image, remainder);
  return { keptMilli: balanceMilli - movedMilli, movedMilli, remainder };
}

/** Half of what is there, or more where the rest would not fit; no more than the new shard holds. */
function halfOf(balanceMilli: number, beyond: number, image: LimitImage, keptMilli: number) {
  const most = image.share.capacityMilli - keptMilli;
  return Math.min(Math.max(0, Math.floor(balanceMilli / 2), beyond), most);
}
