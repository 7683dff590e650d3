/**
 * As of when a write counts: the moment at which the process sent it, or one at which it had sent a
 * write to the same item before, whose condition failed. A call counts at some moment while it is
 * under way, and such a call was.
 *
 * A process does not say which moment it means, and need not be believed: an upper bound on a
 * balance in its condition proves that the limit was not beyond full at some moment, and only the
 * latest one that is proven counts. A write that moves slots waits for its turn with the process's
 * other writes to the item: it was planned at a moment that no request shows.
 */

import type { Key } from "@zae-limiter/limiter/storage/item.ts";
import type { Condition } from "@zae-limiter/limiter/storage/item-store.ts";
import type { TableCall } from "@zae-limiter/testing/table/call.ts";
import type { ShardImage } from "./bucket-image.ts";
import { flowOf, Share } from "./share.ts";

/** No call is under way for longer. */
const KEPT_MS = 10_000;
/** No write waits for its turn for longer than a call takes in the simulation. */
const TURN_MS_MAX = 2000;

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

/** Returns the latest moment at which a write that waited for its turn can have been planned. */
export function turnOf(before: ShardImage, after: ShardImage, sentMs: number): number {
  for (let atMs = sentMs; atMs > sentMs - TURN_MS_MAX; atMs -= 1) {
    if (takesEnough(before, after, atMs)) return atMs;
  }
  return sentMs;
}

/** Whether a write leaves no limit more than what it had at a moment without what was consumed. */
function takesEnough(before: ShardImage, after: ShardImage, atMs: number): boolean {
  return after.limits.every((limit) => {
    const was = before.limits.find(({ name }) => name === limit.name);
    if (was === undefined || limit.quota !== undefined) return true;
    const rate = flowOf(was, before.shard, before.count).at(before.epochMs);
    const full = rate.capacity * rate.period;
    const had = Share.numerator(rate, { ...was, epochMs: before.epochMs }, atMs);
    const left = Share.numerator(rate, { ...limit, epochMs: after.epochMs }, atMs);
    const consumed = (limit.consumed - was.consumed) * rate.period;
    return smaller(left, full) <= smaller(had, full) - consumed;
  });
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

/** Whether no bound of the condition lies beyond what full was at a moment. */
function isProven(image: ShardImage, condition: Condition, atMs: number): boolean {
  return image.limits.every((limit) => {
    const bound = condition.find(({ is, name }) => is === "<=" && name === `b_${limit.name}_tk`);
    if (bound === undefined || !("value" in bound) || typeof bound.value !== "number") return true;
    const rate = flowOf(limit, image.shard, image.count).at(image.epochMs);
    const stored = { ...limit, tokens: BigInt(bound.value), epochMs: image.epochMs };
    return Share.numerator(rate, stored, atMs) <= rate.capacity * rate.period;
  });
}
