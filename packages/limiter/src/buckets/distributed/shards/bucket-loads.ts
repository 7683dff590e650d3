/** The recent traffic of buckets in this process, for the split policy. */

import { boundedMap } from "../../../base/bounded-map.ts";
import type { Clock } from "../../../base/time.ts";
import { invariant } from "../../../domain/check.ts";
import { type BucketName, bucketId } from "../../../records/keys.ts";
import type { BucketConfig } from "../../leg.ts";
import type { SeenBucket } from "../plan/seen-bucket.ts";
import { mayBeBroughtForward } from "../plan/writes-meter.ts";
import type { Load } from "./split-policy.ts";

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
