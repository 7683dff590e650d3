/** Buckets that do not exist yet. */

import { WRITES_RATE } from "../../records/bucket-item.ts";
import type { Leg } from "../bucket-store.ts";
import { bucketTtl } from "../bucket-ttl.ts";
import type { SeenBucket } from "./image.ts";

/** The meter of an item that has taken writes of `costMilli`. */
export function newMeter(costMilli: number) {
  return {
    tokensMilli: WRITES_RATE.capacityMilli - costMilli,
    rate: WRITES_RATE,
    totalConsumedMilli: 0,
    remainder: 0,
  };
}

/** The first shard of a bucket, from which the amounts of the leg have been taken. */
export function newBucket(
  leg: Leg,
  left: readonly number[],
  nowMs: number,
  ttlMultiplier: number,
): SeenBucket {
  const { config } = leg;
  return {
    entityId: leg.entityId,
    resource: leg.resource,
    shard: 0,
    shardCount: 1,
    rebases: 0,
    refilledAtMs: nowMs,
    cascade: leg.link.cascade,
    parentId: leg.link.parentId,
    ttl: bucketTtl(
      undefined,
      { multiplier: ttlMultiplier, source: config.source, isNew: true },
      config.limits.map(({ rate }, at) => ({ rate, balanceMilli: left[at] as number })),
      nowMs,
    ),
    configVersion: config.source === "override" ? 0 : config.version,
    configSource: config.source,
    limits: new Map(
      config.limits.map(({ name, rate }, at) => [
        name,
        {
          tokensMilli: left[at] as number,
          rate,
          totalConsumedMilli: leg.amountsMilli[at] ?? 0,
          remainder: 0,
        },
      ]),
    ),
    writes: newMeter(0),
  };
}
