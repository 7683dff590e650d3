/** Buckets that do not exist yet. */

import { WRITES_RATE } from "../../records/bucket-item.ts";
import type { Leg } from "../bucket-store.ts";
import { bucketTtl } from "../bucket-ttl.ts";
import type { SeenBucket } from "./image.ts";

/** The Python library's meter of writes, full: this library has one of its own. */
export const FULL_PYTHON_METER = {
  tokensMilli: WRITES_RATE.capacityMilli,
  rate: WRITES_RATE,
  totalConsumedMilli: 0,
  remainder: 0,
} as const;

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
    writes: FULL_PYTHON_METER,
    meterMs: undefined,
  };
}
