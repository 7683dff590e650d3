/** Shards as a call would find them that brings limits along, for readers, which write nothing. */

import { bucketKey } from "../../../records/keys.ts";
import { applyChange } from "../../../storage/evaluate.ts";
import { matchConfig } from "../../config-match.ts";
import type { BucketConfig } from "../../leg.ts";
import { planConsume } from "./consume-plan.ts";
import { builtFrom, decoded, encodeShard, type SeenBucket } from "./seen-bucket.ts";
import type { PlanContext } from "./write-plan.ts";

export interface ReaderContext extends Pick<PlanContext, "nowMs" | "rules"> {
  readonly namespaceId: string;
}

/** Returns shards after the writes that apply a config to them, where one has to. */
export function withConfig(
  shards: readonly SeenBucket[],
  config: BucketConfig,
  context: ReaderContext,
): readonly SeenBucket[] {
  return shards.map((shard) =>
    matchConfig(builtFrom(shard), config) === "apply" ? applied(shard, config, context) : shard,
  );
}

function applied(
  bucket: SeenBucket,
  config: BucketConfig,
  { namespaceId, nowMs, rules }: ReaderContext,
): SeenBucket {
  const nothing = config.limits.map(() => 0);
  const context = { nowMs, rules, trustFull: () => true };
  const planned = planConsume(bucket, config, nothing, context);
  if (planned.kind !== "write") return bucket;
  const { entityId, resource, shard } = bucket;
  const key = bucketKey(namespaceId, entityId, resource, shard);
  const item = encodeShard(namespaceId, bucket);
  return decoded(applyChange(key, item, planned.plan.change)) ?? bucket;
}
