/** A bucket that a lease has outlived, created again to consume what the lease used. */

import { encodeBucket } from "../../records/bucket-item.ts";
import { lifeKeys, wasDeleted } from "../../records/deletion-mark.ts";
import { entityKey } from "../../records/keys.ts";
import type { RecordContext } from "../../records/record-context.ts";
import type { Item, Value } from "../../storage/item.ts";
import type { Adjustment } from "../leg.ts";
import { linkInRecord } from "../link.ts";
import { newBucket } from "./new-bucket.ts";

/**
 * Returns the item of a full bucket from which the adjustment was consumed. `undefined` when
 * nothing is consumed, since a refund needs no bucket, and when the entity or the namespace was
 * deleted.
 */
export async function outlivedBucket(
  { store, namespaceId, clock }: RecordContext,
  adjustment: Adjustment,
  ttlMultiplier: number,
  timeoutMs: number,
): Promise<Item | undefined> {
  const { entityId, config, deltasMilli } = adjustment;
  if (deltasMilli.every((delta) => delta <= 0)) return undefined;
  const keys = [...lifeKeys(namespaceId, entityId), entityKey(namespaceId, entityId)];
  const [mark, namespace, record] = await store.getMany(keys, { consistent: true, timeoutMs });
  if (wasDeleted(mark, namespace)) return undefined;
  const bucket = newBucket({
    name: adjustment,
    config,
    link: linkInRecord(record),
    amountsMilli: deltasMilli.map((delta) => Math.max(0, delta)),
    nowMs: clock(),
    ttlMultiplier,
  });
  return { ...encodeBucket(namespaceId, bucket), ...refundTotals(adjustment) };
}

/** A refund leaves a full bucket full, and is still subtracted from what was consumed in total. */
function refundTotals({ config, deltasMilli }: Adjustment): Record<string, Value> {
  const totals: Record<string, Value> = {};
  config.limits.forEach(({ name }, at) => {
    const delta = deltasMilli[at] ?? 0;
    if (delta < 0) totals[`b_${name}_tc`] = delta;
  });
  return totals;
}
