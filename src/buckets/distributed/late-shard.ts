/**
 * Plans a shard that was announced and not made, as the Python library doubles: what belongs to it
 * is still in a shard that it descends from, beyond that one's share.
 */

import { shardRate } from "../../core/shares.ts";
import type { StoredLimit } from "../../records/bucket-item.ts";
import { excessMilli, type SeenBucket } from "./seen-bucket.ts";
import { WritePlan } from "./write-plan.ts";

export interface LateShard {
  /** The write to the shard that gives. */
  readonly plan: WritePlan;
  readonly limits: ReadonlyMap<string, StoredLimit>;
}

/** `first` has the parameters, and says how many shards there are. */
export function planLateShard(donor: SeenBucket, first: SeenBucket, shard: number): LateShard {
  const { shardCount } = first;
  const plan = new WritePlan();
  const limits = new Map<string, StoredLimit>();
  for (const [name, stored] of first.limits) {
    const given = donor.limits.get(name);
    const { capacityMilli } = shardRate(stored.rate, shard, shardCount);
    const excess = given === undefined ? 0 : excessMilli(donor, given);
    const tokensMilli = Math.min(excess, capacityMilli);
    limits.set(name, { ...stored, tokensMilli, remainder: 0, totalConsumedMilli: 0 });
    if (given === undefined || tokensMilli === 0) continue;
    plan.add(`b_${name}_tk`, -tokensMilli);
    plan.atLeast(`b_${name}_tk`, given.tokensMilli - excess + tokensMilli);
  }
  // A client that may acquire may not check an item without writing it.
  plan.set("shard_count", donor.shardCount);
  plan.require({ is: "=", name: "shard_count", value: donor.shardCount });
  return { plan, limits };
}
