/** Merges the shards of buckets whether they are needed or not. */

import { CachedStates } from "../../src/buckets/distributed/cached-states.ts";
import { Merger } from "../../src/buckets/distributed/merger.ts";
import { decoded } from "../../src/buckets/distributed/seen-bucket.ts";
import type { Random } from "../../src/domain/random.ts";
import { bucketKey } from "../../src/records/keys.ts";
import type { ItemStore } from "../../src/storage/item-store.ts";
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
