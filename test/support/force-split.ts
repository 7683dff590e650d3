/** Splits buckets whether they are hot or not, and however small their shares become. */

import { decoded, encodeShard } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { NO_BUCKET } from "@zae-limiter/limiter/buckets/distributed/plan/write-plan.ts";
import { planSplit, UNDISTURBED } from "@zae-limiter/limiter/buckets/distributed/shards/split.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";

export interface Target {
  readonly namespaceId: string;
  readonly entityId: string;
  readonly resource: string;
}

/** Splits one shard in two or in more, if it is there; whether it could. */
export async function splitShard(
  items: ItemStore,
  { namespaceId, entityId, resource }: Target,
  shard: number,
  nowMs: number,
  factor = 2,
): Promise<boolean> {
  const key = bucketKey(namespaceId, entityId, resource, shard);
  const item = await items.get(key, { consistent: true });
  const bucket = decoded(item);
  if (bucket === undefined) return false;
  const { plan, created } = planSplit(bucket, nowMs, UNDISTURBED, factor);
  const result = await items.transact([
    { update: key, change: plan.change, condition: plan.condition },
    ...created.map((half) => ({ put: encodeShard(namespaceId, half), condition: [NO_BUCKET] })),
  ]);
  return result.ok;
}

/** Doubles a bucket, shard by shard, until it has `count` shards. */
export async function splitInto(
  items: ItemStore,
  target: Target,
  count: number,
  nowMs: number,
): Promise<void> {
  for (let have = 1; have < count; have *= 2) {
    for (let shard = 0; shard < have; shard += 1) {
      if (!(await splitShard(items, target, shard, nowMs))) {
        throw new Error(`shard ${shard} of ${have} could not be split`);
      }
    }
  }
}
