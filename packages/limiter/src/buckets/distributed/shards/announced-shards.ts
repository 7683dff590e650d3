/**
 * Shards that the Python library has announced and not created. It doubles by raising
 * `shard_count`, and leaves it to the first client or aggregator to create the new shards; up to
 * 0.12 it doubles without bound.
 */

import { boundedMap } from "../../../base/bounded-map.ts";
import type { Deadline } from "../../../base/time.ts";
import { type BucketName, bucketId } from "../../../records/keys.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import { ITEM_EXISTS } from "../../../storage/item-store.ts";
import { FULL_PYTHON_METER } from "../plan/new-bucket.ts";
import {
  decoded,
  encodeShard,
  isAnnounced,
  type SeenBucket,
  UNSHARDED,
} from "../plan/seen-bucket.ts";
import { NO_BUCKET } from "../plan/write-plan.ts";
import type { CachedStates } from "../state/cached-states.ts";
import { leftFor, ShardItems } from "../state/shard-items.ts";
import { countBefore, originOf } from "./shards.ts";
import { planLateShard } from "./split.ts";

const REPAIRED_MAX = 10_000;
const WORK = "make announced shards";

/** The number of shards for which the announced ones of an item were last created. */
export class RepairedCounts {
  readonly #counts = boundedMap<number>(REPAIRED_MAX);

  /** Returns true once per number of shards: later surpluses are not missing from any shard. */
  isDue(name: BucketName, bucket: SeenBucket): boolean {
    if (!isAnnounced(bucket)) return false;
    return this.#counts.get(idOf(name, bucket.shard)) !== countOf(bucket);
  }

  repaired(name: BucketName, bucket: SeenBucket): void {
    this.#counts.set(idOf(name, bucket.shard), countOf(bucket));
  }
}

function idOf(name: BucketName, shard: number): string {
  return `${bucketId(name)}#${shard}`;
}

function countOf({ announced, shardCount }: SeenBucket): number {
  return announced ?? shardCount;
}

export class AnnouncedShards {
  readonly #context: RecordContext;
  readonly #states: CachedStates;
  readonly #items: ShardItems;

  constructor(context: RecordContext, states: CachedStates) {
    this.#context = context;
    this.#states = states;
    this.#items = new ShardItems(context, states);
  }

  /**
   * Makes the shards that were announced and not made, each with its part of what is still in the
   * shard it descends from. Where more were announced than there can be, the bucket gets as many as
   * exist.
   */
  async repair({ entityId, resource }: BucketName, deadline: Deadline): Promise<void> {
    const name = { entityId, resource };
    const first = await this.#read(name, 0, deadline);
    if (first === undefined) return;
    const shards = await this.#items.readAll(first, first.shardCount, leftFor(deadline, WORK));
    if (first.announced !== undefined) return this.#reduce(shards, deadline);
    for (let shard = 1; shard < first.shardCount; shard += 1) {
      if (!shards.has(shard) && !isSplitLater(shard, shards)) {
        await this.make(name, shard, deadline);
      }
    }
  }

  /** Reduces the count of all shards that exist to the smallest that has room for them. */
  async #reduce(shards: ReadonlyMap<number, SeenBucket>, deadline: Deadline): Promise<void> {
    const last = Math.max(...shards.keys());
    const count = last === 0 ? 1 : countBefore(last) * 2;
    const writes = [...shards.values()]
      .filter(({ shardCount, announced }) => announced !== undefined || shardCount > count)
      .map((bucket) => ({
        update: this.#items.keyOf(bucket, bucket.shard),
        ...counted(bucket, count),
      }));
    await this.#context.store.transact(writes, { timeoutMs: leftFor(deadline, WORK) });
    for (const { update } of writes) this.#states.forget(update.PK);
  }

  /** Raises the count of a bucket whose base time must stay: it is not split. */
  async raise(bucket: SeenBucket, count: number, deadline: Deadline): Promise<void> {
    const key = this.#items.keyOf(bucket, bucket.shard);
    const { shardCount } = bucket;
    const seen = { is: "=", name: "shard_count", value: shardCount, orAbsent: true } as const;
    const options = { timeoutMs: leftFor(deadline, WORK) };
    await this.#context.store.update(
      key,
      { set: { shard_count: count } },
      [ITEM_EXISTS, seen],
      options,
    );
    this.#states.forget(key.PK);
  }

  /**
   * Creates a missing shard: the bucket is being deleted, or the Python library has announced the
   * shard without creating it. It starts with what the shard it descends from holds beyond its own
   * share, which is nothing where a shard was lost.
   */
  async make(name: BucketName, shard: number, deadline: Deadline): Promise<void> {
    const first = await this.#read(name, 0, deadline);
    if (first === undefined || first.shardCount <= shard) return;
    const { namespaceId, store, clock } = this.#context;
    const origin = await this.#read(name, originOf(shard), deadline);
    if (origin === undefined || origin.shardCount <= countBefore(shard)) return;
    const donor = (await this.#donor(name, shard, deadline)) ?? origin;
    const { plan, limits } = planLateShard(donor, first, shard);
    const bucket = {
      ...first,
      ...UNSHARDED,
      generation: origin.generation,
      shard,
      rebases: 0,
      refilledAtMs: clock(),
      ttl: undefined,
      limits,
      writes: FULL_PYTHON_METER,
      meterMs: undefined,
    };
    const keyOf = (number: number) => this.#items.keyOf(name, number);
    const [donorKey, key] = [keyOf(donor.shard), keyOf(shard)];
    const observe = this.#states.observe(key.PK);
    // The bucket may have been deleted since and created with fewer shards, or the shard may have
    // been merged into its origin: then it must not come back. A client that may acquire may not
    // check an item without writing it, so what the item has is written again.
    const result = await store.transact(
      [
        { put: encodeShard(namespaceId, bucket), condition: [NO_BUCKET] },
        { update: donorKey, change: plan.change, condition: plan.condition },
        ...(donor.shard === origin.shard
          ? []
          : [
              {
                update: keyOf(origin.shard),
                ...counted(origin, origin.announced ?? origin.shardCount),
              },
            ]),
      ],
      { timeoutMs: leftFor(deadline, WORK) },
    );
    this.#states.forget(donorKey.PK);
    if (result.ok) observe(bucket, clock());
    else if (result.failures.has(0)) observe(decoded(result.failures.get(0)?.item), clock());
  }

  /** Returns the nearest shard that this one descends from and that holds more than its share. */
  async #donor(
    name: BucketName,
    shard: number,
    deadline: Deadline,
  ): Promise<SeenBucket | undefined> {
    for (let at = shard; at > 0; ) {
      at = originOf(at);
      const bucket = await this.#read(name, at, deadline);
      if (bucket !== undefined && isAnnounced(bucket)) return bucket;
    }
    return undefined;
  }

  #read(name: BucketName, shard: number, deadline: Deadline): Promise<SeenBucket | undefined> {
    return this.#items.bucketOf(name, shard, leftFor(deadline, WORK));
  }
}

/** Sets the number of shards of one that still has the number it was seen with. */
function counted({ shardCount, announced }: SeenBucket, count: number) {
  const name = "shard_count";
  const condition = [{ is: "=", name, value: announced ?? shardCount }] as const;
  return { change: { set: { [name]: count } }, condition };
}

/**
 * Whether the share of a missing shard still belongs to a shard that it descends from: pairs split
 * at times of their own, so a shard and the ones it descends from may all be missing until then.
 */
function isSplitLater(shard: number, shards: ReadonlyMap<number, SeenBucket>): boolean {
  let missing = shard;
  while (missing > 0) {
    const origin = shards.get(originOf(missing));
    if (origin !== undefined) return origin.shardCount <= countBefore(missing);
    missing = originOf(missing);
  }
  return false;
}
