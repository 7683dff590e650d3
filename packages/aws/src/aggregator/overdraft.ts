/**
 * Which soft limits a write has consumed into debt, by the item after it. Pure.
 *
 * A bucket of this library does not say which of its limits are soft. It does not have to: an
 * acquire leaves only soft ones below zero. Clients of the Python library stamp their soft limits,
 * and their adjustments cannot be told from acquires.
 */

import { balanceAt, balanceOf } from "@zae-limiter/limiter/buckets/distributed/plan/balance-at.ts";
import {
  decoded,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { DamagedRecordError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { attributesOf } from "@zae-limiter/limiter/records/bucket-item.ts";
import { softStamp } from "@zae-limiter/limiter/records/python-attributes.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { numberAt } from "@zae-limiter/limiter/storage/item.ts";

/** The time of a stream record is rounded down to a second. */
const ROUNDED_MS = 1000;

export interface ConsumingWrite {
  readonly before: Item | undefined;
  readonly after: Item;
  /** When it was made, rounded down to a second. */
  readonly atMs: number;
  /** Whether it was an acquire of this library. */
  readonly isAcquire: boolean;
}

/** `names`: the limits that the write has counted consumption of. */
export function overdrawnBy(write: ConsumingWrite, names: readonly string[]): readonly string[] {
  const { before, after } = write;
  const candidates = names.filter((name) => {
    const stored = tokensAt(after, name);
    // Under bypass consumption is counted, and the balance stays.
    const isCountedOnly =
      before !== undefined &&
      numberAt(before, "rf") === numberAt(after, "rf") &&
      stored >= tokensAt(before, name);
    return stored < 0 && !isCountedOnly;
  });
  const bucket = candidates.length === 0 ? undefined : readable(after);
  if (bucket === undefined) return [];
  return candidates.filter((name) => {
    const limit = bucket.limits.get(name);
    const isStamped = (numberAt(after, softStamp(name)) ?? 0) > write.atMs;
    if (limit === undefined || (!isStamped && !write.isAcquire)) return false;
    const atMs = isStamped ? write.atMs : write.atMs + ROUNDED_MS;
    return balanceOf(balanceAt(bucket, limit, atMs)) < 0;
  });
}

/** The bucket in an item; a damaged one has no debts, and its consumption counts all the same. */
function readable(item: Item): SeenBucket | undefined {
  try {
    return decoded(item);
  } catch (error) {
    if (error instanceof DamagedRecordError) return undefined;
    throw error;
  }
}

function tokensAt(item: Item | undefined, name: string): number {
  return (item && numberAt(item, attributesOf(name).tokens)) ?? 0;
}
