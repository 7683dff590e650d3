/**
 * Merges, as a transaction shows them: a shard halves its count, and its other half becomes a stub
 * that is no bucket any more. What the half has consumed was consumed before, so the shard that
 * stays is compared with both of them together.
 */

import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { Landing } from "@zae-limiter/testing/table/call.ts";
import { imageOf, type ShardImage } from "./bucket-image.ts";

/** A shard that another one has taken in. */
export interface MergedShard {
  readonly PK: string;
  readonly image: ShardImage;
}

/** Whether the item is what a merge leaves of a removed shard: its key, until it expires. */
export function isStub(item: Item | undefined): boolean {
  return item !== undefined && item.rf === undefined;
}

/** Returns the shard that `kept` takes in by this transaction; `undefined` if there is none. */
export function mergedInto(kept: Landing, all: readonly Landing[]): MergedShard | undefined {
  const [before, after] = [kept.before && imageOf(kept.before), kept.after && imageOf(kept.after)];
  if (before === undefined || after === undefined || before.count !== 2 * after.count) {
    return undefined;
  }
  for (const { key, before: item, after: stub } of all) {
    const image = item && isStub(stub) ? imageOf(item) : undefined;
    const isHalf = image?.bucket === after.bucket && image.shard === after.shard + after.count;
    if (image !== undefined && isHalf && image.count === before.count) return { PK: key.PK, image };
  }
  return undefined;
}

/** Whether the landing is that of a shard which another one takes in. */
export function isTakenIn(landing: Landing, all: readonly Landing[]): boolean {
  if (!isStub(landing.after)) return false;
  return all.some((other) => mergedInto(other, all)?.PK === landing.key.PK);
}

/** Returns the shard before a landing, together with the one that it takes in. */
export function imageBefore(
  { before }: Landing,
  merged: MergedShard | undefined,
): ShardImage | undefined {
  const image = before && imageOf(before);
  return image === undefined || merged === undefined ? image : together(image, merged);
}

/** Adds the consumption of the merged shard to that of the shard that takes it in. */
function together(kept: ShardImage, { image: gone }: MergedShard): ShardImage {
  const names = new Set([...kept.limits, ...gone.limits].map(({ name }) => name));
  const limits = [...names].flatMap((name) => {
    const mine = kept.limits.find((limit) => limit.name === name);
    const other = gone.limits.find((limit) => limit.name === name);
    if (mine === undefined || other === undefined) return mine ?? other ?? [];
    return { ...mine, consumed: mine.consumed + other.consumed };
  });
  return { ...kept, limits, acquires: kept.acquires + gone.acquires };
}
