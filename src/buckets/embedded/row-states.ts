/** The limits of a row, for people. */

import type { StoredState } from "../bucket-admin.ts";
import type { BucketRow } from "./bucket-table.ts";
import { balanceMilli } from "./embedded-bucket.ts";

export function states(row: BucketRow, now: number): StoredState[] {
  return row.bucket.limits.map((limit) => ({
    entityId: row.entityId,
    resource: row.resource,
    shard: 0,
    shardCount: 1,
    limitName: limit.name,
    capacityMilli: limit.rate.capacityMilli,
    refillMilli: limit.rate.refillMilli,
    periodMs: limit.rate.periodMs,
    balanceMilli: balanceMilli(limit, now),
    consumedMilli: limit.consumedMilli,
    refilledAtMs: limit.level.refilledAtMs,
  }));
}
