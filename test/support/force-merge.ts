/** Merges the shards of buckets whether they are needed or not. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { decoded } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { Merger } from "@zae-limiter/limiter/buckets/distributed/shards/merger.ts";
import { CachedStates } from "@zae-limiter/limiter/buckets/distributed/state/cached-states.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Target } from "./force-split.ts";

/** Halves the number of shards, if there are several; whether it could. */
export async function halveShards(
  items: ItemStore,
  { namespaceId, entityId, resource }: Target,
  nowMs: number,
  random: Random = Math.random,
): Promise<boolean> {
  const first = decoded(
    await items.get(bucketKey(namespaceId, entityId, resource, 0), { consistent: true }),
  );
  if (first === undefined) return false;
  const context = { store: items, namespaceId, clock: () => nowMs, random };
  const options = { ttlMultiplier: 7, timeoutMs: 2000 };
  const merger = new Merger(context, new CachedStates(), options);
  return (await merger.halve(first)) !== undefined;
}
