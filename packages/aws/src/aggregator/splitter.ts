/** Splits buckets with the code that the limiter itself uses. */

import { type Random, systemRandom } from "@zae-limiter/limiter/base/random.ts";
import { type Clock, Deadline, systemTimer, type Timer } from "@zae-limiter/limiter/base/time.ts";
import { LinkChecks } from "@zae-limiter/limiter/buckets/distributed/consume/link-checks.ts";
import { decoded } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { Splitter } from "@zae-limiter/limiter/buckets/distributed/shards/splitter.ts";
import { CachedStates } from "@zae-limiter/limiter/buckets/distributed/state/cached-states.ts";
import { WRITES_PER_PARTITION } from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { type BucketPlace, bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { readVersion, type VersionRecord } from "@zae-limiter/limiter/records/version-record.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { LRUCache } from "lru-cache";
import type { ShardSplitter } from "./bucket-upkeep.ts";
import type { Log } from "./log.ts";

export interface SplitterOptions {
  readonly store: ItemStore;
  readonly clock: Clock;
  readonly log?: Log | undefined;
  readonly timer?: Timer | undefined;
  readonly random?: Random | undefined;
}

const NAMESPACES_MAX = 100;
const TIMEOUT_MS = 5000;

export function splitterOver(options: SplitterOptions): ShardSplitter {
  const { store, clock, timer = systemTimer, random = systemRandom } = options;
  const log: Log = options.log ?? (() => undefined);
  const splitters = new LRUCache<string, Splitter>({ max: NAMESPACES_MAX });
  let version: Promise<VersionRecord | undefined> | undefined;
  const splitterOf = async (namespaceId: string) => {
    const known = splitters.get(namespaceId);
    if (known !== undefined) return known;
    version ??= readVersion(store);
    const { maxShards } = (await version) ?? {};
    const context = { store, namespaceId, clock, random };
    const states = new CachedStates();
    const made = new Splitter(context, states, new LinkChecks(context, states), {
      maxShards,
      writesPerPartition: WRITES_PER_PARTITION,
      onSplit: ({ entityId, resource, shardCount }) =>
        log("info", "a bucket was split", {
          ...about(namespaceId, entityId, resource),
          shards: shardCount,
        }),
      onWarning: ({ entityId, resource, shardCount }) =>
        log("warning", "a bucket has as many shards as it may have", {
          ...about(namespaceId, entityId, resource),
          shards: shardCount,
        }),
    });
    splitters.set(namespaceId, made);
    return made;
  };
  const deadline = () => new Deadline(timer, TIMEOUT_MS);
  return {
    split: async ({ namespaceId }, bucket, largestMilli) => {
      const splitter = await splitterOf(namespaceId);
      splitter.loads?.noteLargest(bucket, largestMilli);
      return (await splitter.splitHot(bucket, "saturated", deadline())) ? 1 : 0;
    },
    complete: async (name, bucket) => {
      const splitter = await splitterOf(name.namespaceId);
      if (bucket.announced !== undefined) {
        await splitter.repair(bucket, deadline());
        return 0;
      }
      const missing = await missingShards(store, name, bucket.shardCount);
      for (const shard of missing) await splitter.createShard(name, shard, deadline());
      return missing.length;
    },
  };
}

function about(namespaceId: string, entityId: string, resource: string) {
  return { namespace_id: namespaceId, entity_id: entityId, resource };
}

async function missingShards(
  store: ItemStore,
  { namespaceId, entityId, resource }: BucketPlace,
  count: number,
): Promise<number[]> {
  const shards = Array.from({ length: count }, (_, shard) => shard);
  const keys = shards.map((shard) => bucketKey(namespaceId, entityId, resource, shard));
  const items = await store.getMany(keys, { consistent: true });
  // Without shard 0 there is no bucket any more, and nothing to complete.
  if (decoded(items[0]) === undefined) return [];
  return shards.filter((shard) => decoded(items[shard]) === undefined);
}
