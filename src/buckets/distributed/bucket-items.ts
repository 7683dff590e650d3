/** Finds bucket items: of an entity, of a resource, all shards of one bucket. */

import { decodeBucket, type StoredBucket } from "../../records/bucket-item.ts";
import {
  BUCKET_PREFIX,
  bucketKey,
  entityPartition,
  resourcePartition,
} from "../../records/keys.ts";
import type { RecordContext } from "../../records/record-context.ts";
import type { Key } from "../../storage/item.ts";
import type { Query } from "../../storage/item-store.ts";
import type { StoredState } from "../bucket-store.ts";
import { balanceOf, limitImage } from "./image.ts";

const PAGE = 100;

export class BucketItems {
  readonly #context: RecordContext;

  constructor(context: RecordContext) {
    this.#context = context;
  }

  /** The keys of an entity's buckets, of all its resources or of one. */
  async *keysOf(entityId: string, resource?: string): AsyncGenerator<Key> {
    const { store, namespaceId } = this.#context;
    const prefix = resource === undefined ? BUCKET_PREFIX : `${BUCKET_PREFIX}${resource}#`;
    const query: Query = {
      index: "GSI3",
      partition: entityPartition(namespaceId, entityId),
      sort: { beginsWith: prefix },
    };
    for await (const { PK, SK } of store.query(query)) yield { PK, SK };
  }

  /** An entity's buckets. */
  ofEntity(entityId: string, resource?: string): AsyncGenerator<StoredBucket> {
    return this.#fetch(this.keysOf(entityId, resource));
  }

  /** A resource's buckets. The index has only keys: balances would double the price of a take. */
  async *ofResource(resource: string): AsyncGenerator<StoredBucket> {
    const { store, namespaceId } = this.#context;
    const query: Query = {
      index: "GSI2",
      partition: resourcePartition(namespaceId, resource),
      sort: { beginsWith: BUCKET_PREFIX },
    };
    yield* this.#fetch(store.query(query));
  }

  /** The other shards of a bucket, given the first. */
  async others(first: StoredBucket): Promise<StoredBucket[]> {
    if (first.shardCount <= 1) return [];
    const { store, namespaceId } = this.#context;
    const keys = Array.from({ length: first.shardCount - 1 }, (_, at) =>
      bucketKey(namespaceId, first.entityId, first.resource, at + 1),
    );
    const items = await store.getMany(keys, { consistent: true });
    return items.flatMap((item) => (item === undefined ? [] : (decodeBucket(item) ?? [])));
  }

  async *#fetch(keys: AsyncIterable<Key>): AsyncGenerator<StoredBucket> {
    let page: Key[] = [];
    for await (const { PK, SK } of keys) {
      page.push({ PK, SK });
      if (page.length < PAGE) continue;
      yield* await this.#decode(page);
      page = [];
    }
    if (page.length > 0) yield* await this.#decode(page);
  }

  async #decode(keys: readonly Key[]): Promise<StoredBucket[]> {
    const items = await this.#context.store.getMany(keys, { consistent: true });
    return items.flatMap((item) => (item === undefined ? [] : (decodeBucket(item) ?? [])));
  }
}

/** The limits of an item, for people. `wcu` is not one of them. */
export function statesOf(bucket: StoredBucket, nowMs: number): StoredState[] {
  return [...bucket.limits].map(([limitName, stored]) => ({
    entityId: bucket.entityId,
    resource: bucket.resource,
    shard: bucket.shard,
    shardCount: bucket.shardCount,
    limitName,
    ...stored.rate,
    balanceMilli: balanceOf(limitImage(bucket, stored, nowMs)),
    consumedMilli: stored.totalConsumedMilli ?? 0,
    refilledAtMs: bucket.refilledAtMs,
  }));
}
