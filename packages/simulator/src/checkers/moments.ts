/**
 * As of when a write counts: the moment at which the process sent it, or one at which it had sent a
 * write to the same item before, whose condition failed. A call counts at some moment while it is
 * under way, and such a call was.
 *
 * A process does not say which moment it means, and need not be believed: an upper bound on a
 * balance in its condition proves that the limit was not beyond full at some moment, and only the
 * latest one that is proven counts.
 */

import type { Key } from "@zae-limiter/limiter/storage/item.ts";
import type { Condition } from "@zae-limiter/limiter/storage/item-store.ts";
import type { TableCall } from "@zae-limiter/testing/table/call.ts";
import type { ShardImage } from "./bucket-image.ts";
import { Share, shareRate } from "./share.ts";

/** No call is under way for longer. */
const KEPT_MS = 10_000;

export class Moments {
  readonly #failed = new Map<string, number[]>();

  /** Records that a write to the item was refused by its condition. */
  missed({ process, plannedMs }: TableCall, { PK }: Key): void {
    const id = `${process} ${PK}`;
    const known = this.#failed.get(id) ?? [];
    const kept = known.filter((atMs) => plannedMs - atMs < KEPT_MS);
    this.#failed.set(id, [...kept, plannedMs]);
  }

  /** Returns the time at which a write counts that found the item as in `before`. */
  of(
    { process, plannedMs }: TableCall,
    before: ShardImage,
    PK: string,
    condition: Condition,
  ): number {
    if (isProven(before, condition, plannedMs)) return plannedMs;
    const failed = this.#failed.get(`${process} ${PK}`) ?? [];
    const recent = failed.filter((atMs) => plannedMs - atMs < KEPT_MS);
    const proven = recent.filter((atMs) => isProven(before, condition, atMs));
    return proven.length === 0 ? plannedMs : Math.max(...proven);
  }
}

/** Whether no bound of the condition lies beyond what full was at a moment. */
function isProven(image: ShardImage, condition: Condition, atMs: number): boolean {
  return image.limits.every((limit) => {
    const bound = condition.find(({ is, name }) => is === "<=" && name === `b_${limit.name}_tk`);
    if (bound === undefined || !("value" in bound) || typeof bound.value !== "number") return true;
    const rate = shareRate(limit, image.shard, image.count);
    const stored = { ...limit, tokens: BigInt(bound.value), epochMs: image.epochMs };
    return Share.numerator(rate, stored, atMs) <= rate.capacity * rate.period;
  });
}
