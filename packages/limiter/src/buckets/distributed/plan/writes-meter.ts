/**
 * `wm`, the meter of writes to one item, carried along in writes that happen anyway.
 *
 * It is the time at which an item that takes 1000 writes a second, which is what a DynamoDB
 * partition takes, is done with the writes that were counted: every write adds a millisecond. An
 * item is saturated when that time is a second ahead. The meter is a heuristic: nothing is refused
 * for it, and most writes count without a condition. A meter that is three seconds behind or more
 * is brought to two seconds behind, on condition that it is that far behind. The two seconds are
 * for clocks that differ: to a slower clock, an idle meter must not seem saturated.
 *
 * The Python library keeps a meter of its own in `b_wcu_*`. Its clients compare the stored number
 * without computing the refill, so it has to read as healthy at all times: this library consumes
 * nothing from it, and fills it up where it is full by Python's own rule.
 *
 * `BucketLoads` keeps the recent traffic of buckets in this process, for the split policy: two
 * sightings of a meter show how often all clients write to a shard.
 */

import { boundedMap } from "../../../base/bounded-map.ts";
import type { Clock } from "../../../base/time.ts";
import { invariant } from "../../../domain/check.ts";
import { RESERVED_LIMIT } from "../../../domain/names.ts";
import { METER, WRITES_RATE } from "../../../records/bucket-item.ts";
import { type BucketName, bucketId } from "../../../records/keys.ts";
import type { BucketConfig } from "../../leg.ts";
import { countNeed } from "../shards/need.ts";
import type { Load } from "../shards/split-policy.ts";
import type { SeenBucket } from "./seen-bucket.ts";
import type { PlanContext, WritePlan } from "./write-plan.ts";

/** Milliseconds that one write, and one write of a transaction, counts. */
export const WRITE_MS = 1;
export const TRANSACTED_MS = 2;

/** So far ahead of the clock the item is saturated. */
const SATURATED_MS = 1000;
/** Beyond this it says nothing that it has not said already, and would take long to recover. */
const AHEAD_MS_MAX = 2000;
/** Further ahead than writes can bring it: a client whose clock is wrong has written it. */
const VOID_MS = 5000;
const BEHIND_MS_MAX = 3000;
const HEADROOM_MS = 2000;

const PYTHON_METER = `b_${RESERVED_LIMIT}_tk`;
/** Every write that finds less than this part of Python's meter fills it. */
const PYTHON_LOW_PART = 0.5;

/** Returns whether writes are counted: only where a partition takes a bounded number. */
export function isMetered({ rules }: Pick<PlanContext, "rules">): boolean {
  return rules.writesPerPartition !== undefined;
}

/** Counts the write that is planned. */
export function meterWrite(
  plan: WritePlan,
  bucket: SeenBucket,
  nowMs: number,
  costMs = WRITE_MS,
): void {
  invariant(costMs > 0, "every write moves the meter");
  fillPythonMeter(plan, bucket, nowMs);
  if (bucket.shardCount > 1) countNeed(plan, bucket, nowMs);
  const aheadMs = aheadOf(bucket, nowMs);
  if (aheadMs !== undefined && !mayBeBroughtForward(aheadMs, 0)) {
    // Beyond the most it moves all the same, so that every write shows as one of this library.
    plan.add(METER, aheadMs >= AHEAD_MS_MAX ? -costMs : costMs);
    return;
  }
  const behindMs = nowMs - HEADROOM_MS;
  plan.set(METER, behindMs + costMs);
  const { meterMs } = bucket;
  if (meterMs === undefined || meterMs <= behindMs) {
    plan.require({ is: "<=", name: METER, value: behindMs, orAbsent: true });
  } else {
    plan.require({ is: "=", name: METER, value: meterMs });
  }
}

/** Counts a write that moves the base time, which Python's meter refers to. */
export function moveMeter(
  plan: WritePlan,
  bucket: SeenBucket,
  epochMs: number,
  costMs = WRITE_MS,
): void {
  // A base time that is pulled back had counted writes by a clock that is ahead.
  if (epochMs < bucket.refilledAtMs) plan.set(METER, epochMs - HEADROOM_MS + costMs);
  else meterWrite(plan, bucket, epochMs, costMs);
  if (bucket.writes !== undefined && bucket.writes.tokensMilli < WRITES_RATE.capacityMilli) {
    plan.set(PYTHON_METER, WRITES_RATE.capacityMilli);
  }
}

/** Starts the meter of an item that has just been split: half of its writes will go elsewhere. */
export function restartMeter(plan: WritePlan, bucket: SeenBucket, nowMs: number): number {
  const meterMs = nowMs - HEADROOM_MS + TRANSACTED_MS;
  plan.set(METER, meterMs);
  if (bucket.writes !== undefined) plan.set(PYTHON_METER, WRITES_RATE.capacityMilli);
  return meterMs;
}

/** Whether a meter is so far behind that a write since may have brought it forward. */
export function mayBeBroughtForward(meterMs: number, nowMs: number): boolean {
  return meterMs - nowMs <= -BEHIND_MS_MAX;
}

/** Returns whether the item has taken more writes than it can; never by a clock that is behind. */
export function isSaturated(bucket: SeenBucket, nowMs: number): boolean {
  if (nowMs < bucket.refilledAtMs) return false;
  return (aheadOf(bucket, nowMs) ?? 0) > SATURATED_MS - WRITE_MS;
}

/** Returns how far the meter is ahead of the clock; `undefined` without a plausible one. */
function aheadOf(bucket: SeenBucket, nowMs: number): number | undefined {
  if (bucket.meterMs === undefined) return undefined;
  // A base time that lies ahead says something about clocks, and nothing about writes.
  const aheadMs = bucket.meterMs - Math.max(nowMs, bucket.refilledAtMs);
  return aheadMs > VOID_MS ? undefined : aheadMs;
}

/** Fills Python's meter, which by its rule is full a second after the base time. */
function fillPythonMeter(plan: WritePlan, bucket: SeenBucket, nowMs: number): void {
  const { capacityMilli, periodMs } = WRITES_RATE;
  const stored = bucket.writes?.tokensMilli ?? capacityMilli;
  if (stored >= capacityMilli * PYTHON_LOW_PART) return;
  const missingMs = ((capacityMilli - Math.max(0, stored)) * periodMs) / WRITES_RATE.refillMilli;
  if (nowMs - bucket.refilledAtMs >= missingMs) plan.set(PYTHON_METER, capacityMilli);
}

/** In this time, half of what was counted is forgotten. */
const HALF_LIFE_MS = 1000;
/** A rate is measured over at least this time, */
const SIGHTING_MS = 100;
/** and over no more than this: a meter that was not seen for long proves nothing. */
const STALE_MS = 3000;
const REMEMBERED_MAX = 10_000;

/** The meter of a shard, as it was seen. */
interface Sighting {
  /** A split starts the meter again. */
  readonly shardCount: number;
  /** Every write adds a millisecond. */
  readonly meterMs: number;
  readonly seenAtMs: number;
  readonly writesPerSecond: number | undefined;
}

const NO_RATE = { writesPerSecond: undefined };

interface Counted extends Omit<Load, "writesPerSecond"> {
  halvedAtMs: number;
  consumed: number;
  throttled: number;
}

/** Keeps the recent traffic of buckets in this process, for the split policy. */
export class BucketLoads {
  readonly #clock: Clock;
  /** The largest amounts that this process was asked for, by bucket and limit. */
  readonly #largestMilli = boundedMap<Map<string, number>>(REMEMBERED_MAX);
  /** Meters by bucket, then by shard. */
  readonly #meters = boundedMap<(Sighting | undefined)[]>(REMEMBERED_MAX);
  readonly #counted = boundedMap<Counted>(REMEMBERED_MAX);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Remembers how much is consumed at once. */
  note(
    name: BucketName,
    { limits }: Pick<BucketConfig, "limits">,
    amountsMilli: readonly number[],
  ): void {
    const largest = this.#largestOf(name);
    for (let at = 0; at < limits.length; at += 1) {
      const limit = (limits[at] as (typeof limits)[number]).name;
      const amount = amountsMilli[at] ?? 0;
      if (amount > (largest.get(limit) ?? -1)) largest.set(limit, amount);
    }
  }

  /** Remembers the largest amounts that another observer has seen. */
  noteLargest(name: BucketName, amountsMilli: ReadonlyMap<string, number>): void {
    const largest = this.#largestOf(name);
    for (const [limit, amount] of amountsMilli) {
      if (amount > (largest.get(limit) ?? -1)) largest.set(limit, amount);
    }
  }

  largestOf(name: BucketName): ReadonlyMap<string, number> | undefined {
    return this.#largestMilli.get(bucketId(name));
  }

  /** Remembers since when there are `count` shards, and whether one of them was throttled. */
  count(name: BucketName, count: number, outcome?: "consumed" | "throttled"): void {
    const known = this.#of(name, count);
    if (outcome === undefined) return;
    const nowMs = this.#clock();
    if (nowMs - known.halvedAtMs >= HALF_LIFE_MS) {
      known.consumed /= 2;
      known.throttled /= 2;
      known.halvedAtMs = nowMs;
    }
    known[outcome] += 1;
  }

  /** Returns the load of a bucket, with the writes per second that the meter of the shard shows. */
  of(bucket: SeenBucket): Load {
    const { writesPerSecond } = this.#meters.get(bucketId(bucket))?.[bucket.shard] ?? NO_RATE;
    return { ...this.#of(bucket, bucket.shardCount), writesPerSecond };
  }

  /** Remembers the meter of a shard: two sightings show how often all clients write to it. */
  recordMeter(bucket: SeenBucket): void {
    const { meterMs, shard, shardCount } = bucket;
    if (meterMs === undefined) return;
    const meters = this.#metersOf(bucket);
    const nowMs = this.#clock();
    const known = meters[shard];
    const before = known?.shardCount === shardCount ? known : undefined;
    const elapsedMs = nowMs - (before?.seenAtMs ?? nowMs);
    if (before !== undefined && elapsedMs >= 0 && elapsedMs < SIGHTING_MS) return;
    const isUsable =
      before !== undefined && elapsedMs < STALE_MS && meterMs >= before.meterMs && elapsedMs > 0;
    const rate = isUsable ? ((meterMs - before.meterMs) * 1000) / elapsedMs : undefined;
    // A meter that was brought forward meanwhile moved by more than the writes it counts.
    const isMoved = isUsable && mayBeBroughtForward(before.meterMs, nowMs);
    const writesPerSecond = isMoved ? before.writesPerSecond : rate;
    invariant((writesPerSecond ?? 0) >= 0, "a shard is written to, and not unwritten");
    meters[shard] = { shardCount, meterMs, seenAtMs: nowMs, writesPerSecond };
  }

  #metersOf(name: BucketName): (Sighting | undefined)[] {
    const id = bucketId(name);
    const known = this.#meters.get(id);
    if (known !== undefined) return known;
    const meters: (Sighting | undefined)[] = [];
    this.#meters.set(id, meters);
    return meters;
  }

  #largestOf(name: BucketName): Map<string, number> {
    const id = bucketId(name);
    const known = this.#largestMilli.get(id);
    if (known !== undefined) return known;
    const largest = new Map<string, number>();
    this.#largestMilli.set(id, largest);
    return largest;
  }

  #of(name: BucketName, count: number): Counted {
    const id = bucketId(name);
    let known = this.#counted.get(id);
    if (known?.count !== count) {
      const nowMs = this.#clock();
      known = { count, sinceMs: nowMs, halvedAtMs: nowMs, consumed: 0, throttled: 0 };
      this.#counted.set(id, known);
    }
    return known;
  }
}
