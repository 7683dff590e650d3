/** Finds bucket items: of an entity, of a resource, all shards of one bucket. */

import { defined } from "../../../base/defined.ts";
import type { Deadline } from "../../../base/time.ts";
import { SCHEDULES } from "../../../domain/schedules.ts";
import { listedBucket, type StoredBucket, type StoredLimit } from "../../../records/bucket-item.ts";
import {
  BUCKET_PREFIX,
  bucketKey,
  entityPartition,
  resourcePartition,
} from "../../../records/keys.ts";
import { queryRecords } from "../../../records/query-records.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import { type Item, type Key, valueAt } from "../../../storage/item.ts";
import type { Query } from "../../../storage/item-store.ts";
import type { DeletedBuckets, StoredState } from "../../bucket-admin.ts";
import { holdersOf } from "../../slots/slot-entries.ts";
import { periodOfShard } from "../plan/period-plan.ts";
import { balanceAt, balanceOf, decoded, type SeenBucket } from "../plan/seen-bucket.ts";
import { bornShards, missingShard, SHARDS_MAX } from "../shards/shards.ts";

const PAGE = 100;
const DELETES_AT_ONCE = 16;
/** Live limiters create buckets again and again; the deletion does not wait for them to stop. */
const DELETE_ROUNDS_MAX = 3;

export class BucketItems {
  readonly #context: RecordContext;

  constructor(context: RecordContext) {
    this.#context = context;
  }

  /** Returns the keys of an entity's buckets, of all its resources or of one. */
  async *keysOf(entityId: string, resource?: string): AsyncGenerator<Key> {
    const { namespaceId } = this.#context;
    const prefix = resource === undefined ? BUCKET_PREFIX : `${BUCKET_PREFIX}${resource}#`;
    const query: Query = {
      index: "GSI3",
      partition: entityPartition(namespaceId, entityId),
      sort: { beginsWith: prefix },
    };
    for await (const { PK, SK } of queryRecords(this.#context, query)) yield { PK, SK };
  }

  /** Returns the states of an entity's buckets. */
  ofEntity(entityId: string, resource?: string): AsyncGenerator<StoredState> {
    return this.#states(this.keysOf(entityId, resource));
  }

  /** Yields the states of a resource. Its index has only keys, which keeps consumes cheap. */
  ofResource(resource: string): AsyncGenerator<StoredState> {
    return this.#states(queryRecords(this.#context, this.#resourceQuery(resource)));
  }

  /** Returns the items of the buckets of an entity, of a resource, of both, or of the namespace. */
  async *itemsOf(entityId: string | undefined, resource: string | undefined) {
    yield* this.#fetch(this.#keys(entityId, resource));
  }

  async *#keys(entityId: string | undefined, resource: string | undefined): AsyncGenerator<Key> {
    if (entityId === undefined) {
      const query = resource === undefined ? this.allOf() : this.#resourceQuery(resource);
      yield* queryRecords(this.#context, query);
      return;
    }
    const { namespaceId } = this.#context;
    const prefix = `${bucketKey(namespaceId, entityId, resource ?? "", 0).PK.slice(0, -2)}#`;
    for (const key of await this.allKeysOf(entityId)) {
      if (resource === undefined || key.PK.startsWith(prefix)) yield key;
    }
  }

  #resourceQuery(resource: string): Query {
    return {
      index: "GSI2",
      partition: resourcePartition(this.#context.namespaceId, resource),
      sort: { beginsWith: BUCKET_PREFIX },
    };
  }

  ofNamespace(): AsyncGenerator<StoredState> {
    return this.#states(queryRecords(this.#context, this.allOf()));
  }

  /** Returns the query for the keys of all buckets of the namespace. */
  allOf(): Query {
    const { namespaceId } = this.#context;
    return { index: "GSI4", partition: namespaceId, sort: { beginsWith: BUCKET_PREFIX } };
  }

  /**
   * Reads all shards of a bucket, given the first, by their keys: indexes lag. A split that comes
   * in between is read once more.
   */
  async shardsOf(first: SeenBucket, deadline: Deadline): Promise<readonly SeenBucket[]> {
    if (first.shardCount <= 1) return [first];
    const read = await this.#shards(first, 1, deadline);
    const shards = new Map([[0, first], ...read]);
    if (missingShard(shards) === undefined) return [...bornShards(shards).values()];
    return [...bornShards(await this.#shards(first, 0, deadline)).values()];
  }

  /** Returns the numbers of the shards that are there. */
  async shardNumbers(entityId: string, resource: string): Promise<number[]> {
    const { store, namespaceId } = this.#context;
    const key = bucketKey(namespaceId, entityId, resource, 0);
    const item = await store.get(key, { consistent: true });
    if (item === undefined) return [];
    // A damaged item does not say how many there are: assume the maximum.
    const count = listedBucket(item)?.shardCount ?? SHARDS_MAX;
    if (count === 1) return [0];
    const keys = Array.from({ length: count }, (_, shard) =>
      bucketKey(namespaceId, entityId, resource, shard),
    );
    const items = await store.getMany(keys, { consistent: true });
    return items.flatMap((found, shard) => (isBucket(found) ? [shard] : []));
  }

  /** Returns the keys of an entity's buckets, with the shards that the index does not know yet. */
  async allKeysOf(entityId: string): Promise<Key[]> {
    const { namespaceId } = this.#context;
    const keys = new Map<string, Key>();
    const resources = new Set<string>();
    for await (const key of this.keysOf(entityId)) {
      keys.set(key.PK, key);
      resources.add(resourceIn(key, bucketKey(namespaceId, entityId, "", 0)));
    }
    for (const resource of resources) {
      for (const shard of await this.shardNumbers(entityId, resource)) {
        const key = bucketKey(namespaceId, entityId, resource, shard);
        keys.set(key.PK, key);
      }
    }
    return [...keys.values()];
  }

  /**
   * Deletes an entity's buckets one by one, since only a single delete returns what it removed.
   * The index lags, so it is asked again until it leads to nothing that exists.
   */
  async deleteAllOf(entityId: string, deleting: (key: Key) => void): Promise<DeletedBuckets> {
    let count = 0;
    let lastBaseMs = 0;
    for (let round = 1; round <= DELETE_ROUNDS_MAX; round += 1) {
      const before = count;
      const keys = await this.allKeysOf(entityId);
      for (let start = 0; start < keys.length; start += DELETES_AT_ONCE) {
        const some = keys.slice(start, start + DELETES_AT_ONCE);
        const results = await Promise.all(some.map((key) => this.#context.store.delete(key)));
        some.forEach(deleting);
        for (const { item } of results) {
          if (item === undefined || !isBucket(item)) continue;
          count += 1;
          lastBaseMs = Math.max(lastBaseMs, listedBucket(item)?.refilledAtMs ?? 0);
        }
      }
      if (count === before) break;
    }
    return { count, lastBaseMs };
  }

  async #shards(
    first: SeenBucket,
    from: number,
    deadline?: Deadline,
  ): Promise<Map<number, SeenBucket>> {
    const { store, namespaceId } = this.#context;
    const { entityId, resource, shardCount } = first;
    const keys = Array.from({ length: shardCount - from }, (_, at) =>
      bucketKey(namespaceId, entityId, resource, at + from),
    );
    const timeout = deadline === undefined ? {} : { timeoutMs: deadline.timeoutMs };
    const items = await store.getMany(keys, { consistent: true, ...timeout });
    const shards = items.flatMap((item) => decoded(item) ?? []);
    return new Map(shards.map((bucket) => [bucket.shard, bucket]));
  }

  async *#states(keys: AsyncIterable<Key>): AsyncGenerator<StoredState> {
    const { clock, onWarning } = this.#context;
    for await (const item of this.#fetch(keys)) {
      const bucket = listedBucket(item, onWarning);
      if (bucket !== undefined) yield* statesOf(bucket, clock());
    }
  }

  /** Returns the items of keys, read page by page. */
  async *#fetch(keys: AsyncIterable<Key>): AsyncGenerator<Item | undefined> {
    const { store } = this.#context;
    let page: Key[] = [];
    for await (const { PK, SK } of keys) {
      page.push({ PK, SK });
      if (page.length < PAGE) continue;
      yield* await store.getMany(page, { consistent: true });
      page = [];
    }
    if (page.length > 0) yield* await store.getMany(page, { consistent: true });
  }
}

/** Returns whether an item is a bucket, and not a stub that a merge leaves behind. */
function isBucket(item: Item | undefined): boolean {
  return item !== undefined && valueAt(item, "rf") !== undefined;
}

/** Returns the limits of an item, for people. `wcu` is not one of them. */
function statesOf(bucket: StoredBucket, nowMs: number): StoredState[] {
  return [...bucket.limits].map(([limitName, stored]) => ({
    entityId: bucket.entityId,
    resource: bucket.resource,
    shard: bucket.shard,
    shardCount: bucket.shardCount,
    limitName,
    ...SCHEDULES.rateAt(stored.rate, nowMs),
    balanceMilli: balanceOf(balanceAt(bucket, stored, nowMs)),
    consumedMilli: stored.totalConsumedMilli ?? 0,
    refilledAtMs: bucket.refilledAtMs,
    ...(stored.period === undefined ? {} : { period: periodOfShard(bucket, stored, nowMs) }),
    ...defined({ holders: holdersIn(limitName, stored) }),
  }));
}

/** Returns how many slots each holder has; `undefined` where none are held. */
function holdersIn(limitName: string, { marks }: StoredLimit) {
  if (marks === undefined || marks.size === 0) return undefined;
  const entries = [...marks].flatMap(([entry, { count }]) =>
    count === 0 ? [] : [{ limitName, entry, milli: count * 1000 }],
  );
  return holdersOf(entries, limitName);
}

/** Returns the resource in the key of a bucket, given the key of one whose resource is empty. */
function resourceIn(key: Key, empty: Key): string {
  const start = empty.PK.length - "#0".length;
  return key.PK.slice(start, key.PK.lastIndexOf("#"));
}
