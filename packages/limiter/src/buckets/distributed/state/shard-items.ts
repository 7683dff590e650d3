/** Reads the items of shards, and records what they show in the cached states. */

import type { Deadline } from "../../../base/time.ts";
import { tooBusy } from "../../../domain/errors/unavailability.ts";
import { type BucketName, bucketKey } from "../../../records/keys.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import type { Key } from "../../../storage/item.ts";
import { decoded, type SeenBucket } from "../plan/seen-bucket.ts";
import type { CachedState, CachedStates } from "./cached-states.ts";

export class ShardItems {
  readonly #context: RecordContext;
  readonly #states: CachedStates;

  constructor(context: RecordContext, states: CachedStates) {
    this.#context = context;
    this.#states = states;
  }

  keyOf({ entityId, resource }: BucketName, shard: number): Key {
    return bucketKey(this.#context.namespaceId, entityId, resource, shard);
  }

  /** Returns the keys of the first `count` shards. */
  keysOf(name: BucketName, count: number): Key[] {
    return Array.from({ length: count }, (_, shard) => this.keyOf(name, shard));
  }

  /** Reads an item. `hotKey`: what the store does when it throttles the item. */
  async read(
    key: Key,
    timeoutMs: number,
    hotKey?: { readonly hotKey: "raise" },
  ): Promise<CachedState> {
    const { store, clock } = this.#context;
    const observe = this.#states.observe(key.PK);
    const bucket = decoded(await store.get(key, { consistent: true, timeoutMs, ...hotKey }));
    return observe(bucket, clock());
  }

  async bucketOf(
    name: BucketName,
    shard: number,
    timeoutMs: number,
  ): Promise<SeenBucket | undefined> {
    return (await this.read(this.keyOf(name, shard), timeoutMs)).bucket;
  }

  /** Reads the first `count` shards of a bucket; those that are there. */
  async readAll(
    name: BucketName,
    count: number,
    timeoutMs: number,
  ): Promise<ReadonlyMap<number, SeenBucket>> {
    const { store, clock } = this.#context;
    const keys = this.keysOf(name, count);
    const observes = keys.map(({ PK }) => this.#states.observe(PK));
    const items = await store.getMany(keys, { consistent: true, timeoutMs });
    const nowMs = clock();
    const buckets = new Map<number, SeenBucket>();
    items.forEach((item, shard) => {
      const { bucket } = observes[shard]?.(decoded(item), nowMs) ?? {};
      if (bucket !== undefined) buckets.set(shard, bucket);
    });
    return buckets;
  }
}

/** Returns the time that is left for work on shards; throws when there is none. */
export function leftFor({ leftMs }: Deadline, work: string): number {
  if (leftMs > 0) return leftMs;
  throw tooBusy(`There was no time left to ${work}`);
}
