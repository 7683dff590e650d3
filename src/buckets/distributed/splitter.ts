/**
 * Splits shards: when an item takes more writes than it can, and when somebody picks a shard whose
 * share still lies in the one it descends from.
 *
 * Shard 0 is the truth for the number of shards, so it always splits first. The others follow when
 * they are hot themselves or when their other half is picked.
 */

import { LRUCache } from "lru-cache";
import { randomBytes } from "../../domain/chance.ts";
import { RateLimiterUnavailable } from "../../domain/errors.ts";
import type { Timer } from "../../domain/timer.ts";
import { encodeBucket } from "../../records/bucket-item.ts";
import { bucketKey } from "../../records/keys.ts";
import type { RecordContext } from "../../records/record-context.ts";
import type { Item, Key } from "../../storage/item.ts";
import type { Condition } from "../../storage/item-store.ts";
import type { Leg, ShardsWarning } from "../bucket-store.ts";
import { decoded, isPinned, REBASES, type SeenBucket } from "./image.ts";
import type { LinkChecks } from "./link-checks.ts";
import { FULL_PYTHON_METER } from "./new-bucket.ts";
import { countBefore, originOf, SHARDS_MAX } from "./shard-numbers.ts";
import { planSplit, type SplitManner, UNDISTURBED } from "./split.ts";
import type { Views } from "./views.ts";
import { asSeen, NO_BUCKET } from "./write-plan.ts";

/** Which bucket; all its shards. */
export interface BucketName {
  readonly entityId: string;
  readonly resource: string;
}

/** A bucket has more shards than before. */
export interface SplitNotice extends BucketName {
  readonly shardCount: number;
}

/** What tells that a shard is hot: its own meter, or the store that throttles it. */
export type Sign = "exhausted" | "throttled";

export interface SplitterOptions {
  readonly timer: Timer;
  readonly onSplit?: ((notice: SplitNotice) => void) | undefined;
  readonly onWarning: (warning: ShardsWarning) => void;
}

/** A bucket doubles at most once in this time. */
const PAUSE_MS = 1000;
/** Which part of the calls must meet busy shards, so long after the last split at most. */
const OVERLOADS = [
  { withinMs: 2000, throttledShare: 0.6 },
  { withinMs: 4000, throttledShare: 0.4 },
  { withinMs: Number.POSITIVE_INFINITY, throttledShare: 0.02 },
] as const;
/** In this time, half of what was counted is forgotten. */
const HALF_LIFE_MS = 1000;
/** An epoch that old is older than the last split, on every clock. */
const SETTLED_MS = 10_000;
/** After a split that the store had no room for. */
const RETRY_MS = 100;
/** By so much clocks may differ: each is corrected beyond two seconds. */
const CLOCKS_MS = 4000;
/** One after the other, until a split gets through. */
const MANNERS: readonly SplitManner[] = [
  UNDISTURBED,
  { trustFull: false, exact: true, cautious: false },
  { trustFull: false, exact: false, cautious: false },
  { trustFull: true, exact: true, cautious: true },
  { trustFull: false, exact: false, cautious: true },
];
const ATTEMPTS_MAX = MANNERS.length;
const TOKEN_BYTES = 24;
const TOKEN_MILLI = 1000;
/** By size, because a bound by count takes its room in advance, for every namespace. */
const BOUNDED = { maxSize: 10_000, sizeCalculation: () => 1 };

interface Known {
  readonly count: number;
  readonly sinceMs: number;
  halvedAtMs: number;
  charged: number;
  throttled: number;
}

export class Splitter {
  readonly #context: RecordContext;
  readonly #views: Views;
  readonly #links: LinkChecks;
  readonly #options: SplitterOptions;
  /** The largest amounts that this client was asked for, by bucket and limit. */
  readonly #largestMilli = new LRUCache<string, Map<string, number>>(BOUNDED);
  /** How many shards a bucket has, since when this client knows, and how that has gone. */
  readonly #known = new LRUCache<string, Known>(BOUNDED);
  /** When this client last tried to relieve a shard: while nothing comes of it, that costs a read. */
  readonly #relievedAtMs = new LRUCache<string, number>(BOUNDED);

  constructor(context: RecordContext, views: Views, links: LinkChecks, options: SplitterOptions) {
    this.#context = context;
    this.#views = views;
    this.#links = links;
    this.#options = options;
  }

  /** Remembers how much is asked for at once. */
  note({ entityId, resource, config, amountsMilli }: Leg): void {
    const id = idOf({ entityId, resource });
    const largest = this.#largestMilli.get(id) ?? new Map<string, number>();
    if (largest.size === 0) this.#largestMilli.set(id, largest);
    config.limits.forEach(({ name }, at) => {
      const amount = amountsMilli[at] ?? 0;
      if (amount > (largest.get(name) ?? -1)) largest.set(name, amount);
    });
  }

  /** Remembers since when there are so many shards, and whether one of them was too busy. */
  counted(name: BucketName, count: number, outcome?: "charged" | "throttled"): void {
    const known = this.#knownOf(name, count);
    if (outcome === undefined) return;
    const nowMs = this.#context.clock();
    if (nowMs - known.halvedAtMs >= HALF_LIFE_MS) {
      known.charged /= 2;
      known.throttled /= 2;
      known.halvedAtMs = nowMs;
    }
    known[outcome] += 1;
  }

  /**
   * Gives a hot shard relief: it splits if it is behind shard 0; otherwise the bucket doubles,
   * unless it just did or the shares would be too small. Returns whether anything was split.
   */
  async relieve(hot: SeenBucket, sign: Sign, deadline: number): Promise<boolean> {
    if (hot.shard === 0 && !this.#mayDouble(hot, sign)) return false;
    if (this.#rests(hot)) return false;
    try {
      return await this.#relieve(hot, sign, deadline);
    } catch (error) {
      // It is too busy even for that: others would wait in vain, so it is tried again soon.
      const againMs = this.#context.clock() - PAUSE_MS + RETRY_MS;
      this.#relievedAtMs.set(`${idOf(hot)}#${hot.shard}`, againMs);
      throw error;
    }
  }

  async #relieve(hot: SeenBucket, sign: Sign, deadline: number): Promise<boolean> {
    const first = hot.shard === 0 ? hot : await this.#read(hot, 0, deadline);
    if (first === undefined) return false;
    if (hot.shardCount < first.shardCount) return this.#split(hot, hot.shardCount, deadline);
    if (hot.shardCount > first.shardCount || !this.#mayDouble(first, sign)) return false;
    const { shardCount } = first;
    if (!(await this.#split(first, shardCount, deadline))) return false;
    this.counted(first, shardCount * 2);
    const { entityId, resource } = first;
    const notice = { entityId, resource, shardCount: shardCount * 2 };
    this.#options.onSplit?.(notice);
    if (notice.shardCount === SHARDS_MAX) {
      this.#options.onWarning({ kind: "shards_exhausted", ...notice });
    }
    if (hot.shard !== 0) await this.#split(hot, shardCount, deadline);
    return true;
  }

  /**
   * Brings a shard about that was picked and is not there, with all those it descends from. When
   * the bucket itself is gone, or the shard is there after all, the views say so afterwards.
   */
  async bringAbout(name: BucketName, shard: number, deadline: number): Promise<void> {
    const origin = originOf(shard);
    // Shard 0 is the truth. Others may tell of shards that a bucket had before it was deleted.
    const first = await this.#read(name, 0, deadline);
    if (first === undefined || first.shardCount <= shard) return;
    let from = origin === 0 ? first : await this.#read(name, origin, deadline);
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      if (from !== undefined && from.shardCount > countBefore(shard)) {
        return this.#restoreLost(name, shard, deadline);
      }
      if (from !== undefined) await this.#split(from, from.shardCount, deadline);
      else if (origin === 0) return;
      else await this.bringAbout(name, origin, deadline);
      from = await this.#read(name, origin, deadline);
    }
  }

  #knownOf(name: BucketName, count: number): Known {
    const id = idOf(name);
    let known = this.#known.get(id);
    if (known?.count !== count) {
      const nowMs = this.#context.clock();
      known = { count, sinceMs: nowMs, halvedAtMs: nowMs, charged: 0, throttled: 0 };
      this.#known.set(id, known);
    }
    return known;
  }

  #rests(hot: SeenBucket): boolean {
    const id = `${idOf(hot)}#${hot.shard}`;
    const nowMs = this.#context.clock();
    const agoMs = nowMs - (this.#relievedAtMs.get(id) ?? Number.NEGATIVE_INFINITY);
    if (agoMs >= 0 && agoMs < PAUSE_MS) return true;
    this.#relievedAtMs.set(id, nowMs);
    return false;
  }

  /** Splits one shard while it is one of `count`; whether it was this call that did. */
  async #split(seen: SeenBucket, count: number, deadline: number): Promise<boolean> {
    const { namespaceId, store, clock, random } = this.#context;
    const { entityId, resource, shard } = seen;
    const keys = [shard, shard + count].map((number) =>
      bucketKey(namespaceId, entityId, resource, number),
    ) as [Key, Key];
    let bucket: SeenBucket | undefined = seen;
    let inTheWay: SeenBucket | undefined;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const nowMs = clock();
      if (bucket?.shardCount !== count) return false;
      const { plan, kept, created } = planSplit(bucket, nowMs, MANNERS[attempt]);
      const half = { ...created, rebases: rebasesAfter(inTheWay, created.refilledAtMs) };
      const token = Buffer.from(randomBytes(random, TOKEN_BYTES)).toString("base64url");
      const see = this.#views.watch(keys[0].PK);
      const result = await store.transact(
        [
          { update: keys[0], change: plan.change, condition: plan.condition },
          { put: encoded(namespaceId, half), condition: placeOf(inTheWay) },
        ],
        { token, timeoutMs: this.#left(deadline) },
      );
      if (result.ok) {
        this.#views.assume(keys[0].PK, kept);
        this.#views.assume(keys[1].PK, half);
        this.#links.met(keys[1], half);
        return true;
      }
      const failed = result.failures.get(0);
      if (failed !== undefined) bucket = see(decoded(failed.item), clock()).bucket;
      else inTheWay = decoded(result.failures.get(1)?.item);
    }
    return false;
  }

  async #restoreLost(name: BucketName, shard: number, deadline: number): Promise<void> {
    const found = await this.#read(name, shard, deadline);
    if (found === undefined) await this.#replace(name, shard, deadline);
  }

  /**
   * A shard that must have been there and is not: somebody is deleting the bucket, or another
   * library has announced it without making it. It starts empty, because nobody knows better.
   */
  async #replace(name: BucketName, shard: number, deadline: number): Promise<void> {
    const first = await this.#read(name, 0, deadline);
    if (first === undefined || first.shardCount <= shard) return;
    const { namespaceId, store, clock } = this.#context;
    const limits = new Map(
      [...first.limits].map(([limit, stored]) => [
        limit,
        { ...stored, tokensMilli: 0, remainder: 0, totalConsumedMilli: 0 },
      ]),
    );
    const bucket = {
      ...first,
      shard,
      rebases: 0,
      refilledAtMs: clock(),
      ttl: undefined,
      limits,
      writes: FULL_PYTHON_METER,
      meterMs: undefined,
    };
    const [origin, key] = [0, shard].map((number) =>
      bucketKey(namespaceId, name.entityId, name.resource, number),
    ) as [Key, Key];
    const see = this.#views.watch(key.PK);
    // The bucket may have been deleted since, and made anew with fewer shards. Whoever may acquire
    // may not check an item without writing it, so what it has is written again.
    const { shardCount } = first;
    const result = await store.transact(
      [
        {
          update: origin,
          change: { set: { shard_count: shardCount } },
          condition: [{ is: "=", name: "shard_count", value: shardCount }],
        },
        { put: encodeBucket(namespaceId, bucket), condition: [NO_BUCKET] },
      ],
      { timeoutMs: this.#left(deadline) },
    );
    if (result.ok) see(bucket, clock());
    else if (result.failures.has(1)) see(decoded(result.failures.get(1)?.item), clock());
  }

  /**
   * The first split waits for nothing. Afterwards what was throttled before comes back for a while,
   * and proves little: soon after a split, nearly all calls must meet busy shards, or the meter of
   * this one must be exhausted. Clocks differ, so what counts is since when this client knows of
   * the shards; one that has just come may go by the epoch, when that is old on every clock.
   */
  #isTimeToDouble(first: SeenBucket, sign: Sign): boolean {
    const { shardCount, refilledAtMs } = first;
    if (shardCount === 1) return true;
    const nowMs = this.#context.clock();
    const { sinceMs, charged, throttled } = this.#knownOf(first, shardCount);
    if (nowMs - refilledAtMs >= SETTLED_MS + CLOCKS_MS && charged === 0) return true;
    const knownMs = nowMs - sinceMs;
    // It may have been deleted and made anew since: then it is the epoch that tells.
    if (Math.min(knownMs, nowMs - refilledAtMs) < PAUSE_MS) return false;
    if (sign === "exhausted") return true;
    const overload = OVERLOADS.find(({ withinMs }) => knownMs < withinMs) ?? OVERLOADS[2];
    return throttled >= overload.throttledShare * (charged + throttled);
  }

  /**
   * Not again so soon after a split; and never so far that a shard could not hold one token, or the
   * largest request that was seen.
   */
  #mayDouble(first: SeenBucket, sign: Sign): boolean {
    if (isPinned(first) || !this.#isTimeToDouble(first, sign)) return false;
    const largestMilli = this.#largestMilli.get(idOf(first));
    const count = first.shardCount * 2;
    if (count > SHARDS_MAX) return false;
    for (const [name, { rate }] of first.limits) {
      const needed = Math.max(TOKEN_MILLI, largestMilli?.get(name) ?? 0);
      if (Math.floor(rate.capacityMilli / count) < needed) return false;
    }
    return true;
  }

  async #read(
    { entityId, resource }: BucketName,
    shard: number,
    deadline: number,
  ): Promise<SeenBucket | undefined> {
    const { namespaceId, store } = this.#context;
    const key = bucketKey(namespaceId, entityId, resource, shard);
    const options = { consistent: true, timeoutMs: this.#left(deadline) };
    const see = this.#views.watch(key.PK);
    return see(decoded(await store.get(key, options)), this.#context.clock()).bucket;
  }

  #left(deadline: number): number {
    const leftMs = deadline - this.#options.timer.nowMs();
    if (leftMs > 0) return leftMs;
    throw new RateLimiterUnavailable("There was no time left to split the bucket", {
      reason: "throttled",
      nothingWritten: true,
    });
  }
}

export function idOf({ entityId, resource }: BucketName): string {
  return `${entityId}#${resource}`;
}

/**
 * Where the new half goes. Something may be there although nobody has split the shard: it was left
 * behind when the bucket was deleted, and the new one takes its place.
 */
function placeOf(old: SeenBucket | undefined): Condition {
  if (old === undefined) return [NO_BUCKET];
  return [{ is: "=", name: "rf", value: old.refilledAtMs }, asSeen(REBASES, old.rebases)];
}

/** Views of what was there must not fit what comes. */
function rebasesAfter(old: SeenBucket | undefined, epochMs: number): number {
  return old?.refilledAtMs === epochMs ? old.rebases + 1 : 0;
}

function encoded(namespaceId: string, bucket: SeenBucket): Item {
  const item = encodeBucket(namespaceId, bucket);
  return bucket.rebases === 0 ? item : { ...item, [REBASES]: bucket.rebases };
}
