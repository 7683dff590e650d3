/**
 * Keeps active buckets in shape: fresh balances for readers that do not compute the refill, and
 * shards before one item takes more writes than DynamoDB lets it.
 */

import type { Clock } from "@zae-limiter/limiter/base/time.ts";
import { planRebase } from "@zae-limiter/limiter/buckets/distributed/plan/rebase.ts";
import {
  balanceAt,
  decoded,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import {
  type TableTraits,
  WRITES_PER_PARTITION,
} from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { type BucketPlace, bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { LRUCache } from "lru-cache";
import type { BucketActivity } from "./bucket-activity.ts";

/** Splits a bucket. Concurrent splits neither create nor lose tokens. */
export interface ShardSplitter {
  /**
   * Splits this shard, where that is allowed; says how many shards came of it. `largestMilli`: what
   * was taken at once, which a shard must still be able to hold.
   */
  split(
    name: BucketPlace,
    bucket: SeenBucket,
    largestMilli: ReadonlyMap<string, number>,
  ): Promise<number>;
  /** Brings all shards to the number that this one has; says how many were made. */
  complete(name: BucketPlace, bucket: SeenBucket): Promise<number>;
}

interface BucketUpkeepOptions {
  readonly store: ItemStore;
  readonly clock: Clock;
  readonly splitter: ShardSplitter | undefined;
  readonly traits: TableTraits;
}

/** Every rebase makes the cached states of clients outdated, so it is not done all the time. */
const EPOCH_AGE_MS_MIN = 5000;
/** Renews a time to live only where it would end too early. */
const TTL_MULTIPLIER = 1;
/** The share of an item's write capacity at which it is split, so that the split ends in time. */
const SPLIT_AT = 0.8;

export class BucketUpkeep {
  readonly #options: BucketUpkeepOptions;
  readonly #rates = new WriteRates();

  constructor(options: BucketUpkeepOptions) {
    this.#options = options;
  }

  /** Rebases the bucket where that helps; returns false when it did not, or was overtaken. */
  async refill({ name, item, consumedMilli }: BucketActivity): Promise<boolean> {
    const nowMs = this.#options.clock();
    const bucket = decoded(item);
    if (bucket === undefined || !isStale(bucket, consumedMilli, nowMs)) return false;
    // Not the limits of a call: the bucket keeps its own, and nothing is consumed.
    const config = { limits: [], source: "override", version: bucket.configVersion } as const;
    const rules = { ...this.#options.traits, ttlMultiplier: TTL_MULTIPLIER };
    const context = { nowMs, rules, trustFull: () => true };
    const rebase = planRebase(bucket, config, [], context, false);
    if (rebase.kind !== "write") return false;
    const { namespaceId, entityId, resource, shard } = name;
    const key = bucketKey(namespaceId, entityId, resource, shard);
    const { change, condition } = rebase.plan;
    return (await this.#options.store.update(key, change, condition)).ok;
  }

  /** Splits a bucket that is written too often, and completes splits that other processes began. */
  async split(activity: BucketActivity): Promise<number> {
    const { name, item, largestMilli, writesAtMs, grew } = activity;
    const { splitter, clock } = this.#options;
    const bucket = decoded(item);
    let perSecond = 0;
    for (const [atMs, writes] of writesAtMs) {
      perSecond = Math.max(perSecond, this.#rates.count(item.PK, atMs, writes, clock()));
    }
    if (splitter === undefined || bucket === undefined) return 0;
    let made = 0;
    if (grew) made += await splitter.complete(name, bucket);
    if (perSecond >= SPLIT_AT * WRITES_PER_PARTITION) {
      made += await splitter.split(name, bucket, largestMilli);
    }
    return made;
  }
}

/**
 * Whether a reader of the stored balance would soon find too little, though time has brought more:
 * less is stored than was just consumed.
 */
function isStale(
  bucket: SeenBucket,
  consumedMilli: BucketActivity["consumedMilli"],
  nowMs: number,
): boolean {
  if (nowMs - bucket.refilledAtMs < EPOCH_AGE_MS_MIN) return false;
  for (const [name, stored] of bucket.limits) {
    const consumed = consumedMilli.get(name) ?? 0;
    if (consumed <= 0 || stored.tokensMilli >= consumed) continue;
    if (balanceAt(bucket, stored, nowMs).accruedMilli > 0) return true;
  }
  return false;
}

const ITEMS_MAX = 10_000;
const MEASURED_MS = 5000;

interface Meter {
  second: number;
  inSecond: number;
  sinceMs: number;
  sinceThen: number;
}

/**
 * Measures on the stream how often items are written.
 *
 * The stream has the time of a change to the second on AWS, to the minute on DynamoDB Local; a
 * reader that catches up sees old changes all at once. Each would take a quiet bucket for a busy
 * one, so the lower of both rates counts: by the times of the changes, and by their arrival.
 */
export class WriteRates {
  readonly #meters = new LRUCache<string, Meter>({ max: ITEMS_MAX });

  /** Counts writes that happened in one second; returns the writes per second. */
  count(item: string, atMs: number, writes: number, nowMs: number): number {
    const second = Math.floor(atMs / 1000);
    let meter = this.#meters.get(item);
    if (meter === undefined || nowMs - meter.sinceMs > MEASURED_MS) {
      meter = { second, inSecond: 0, sinceMs: nowMs, sinceThen: 0 };
      this.#meters.set(item, meter);
    }
    if (meter.second !== second) {
      meter.second = second;
      meter.inSecond = 0;
    }
    meter.inSecond += writes;
    meter.sinceThen += writes;
    const seconds = Math.max(1, (nowMs - meter.sinceMs) / 1000);
    return Math.min(meter.inSecond, meter.sinceThen / seconds);
  }
}
