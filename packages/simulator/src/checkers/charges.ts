/**
 * How much of a write left the balance of a bucket. Nearly always that is what `tc` has grown by.
 * Under a bypass `tc` grows and the balance stays; a reset or a top-up adds to the balance, and
 * `tc` stays.
 */

import type { Landing } from "@zae-limiter/testing/table/call.ts";
import type { LimitOfShard, ShardImage } from "./bucket-image.ts";
import { floorDiv, Share, shareRate } from "./share.ts";

/** Milli-tokens by limit name. */
export type Charged = ReadonlyMap<string, bigint>;

const OPERATION_PREFIX = "#OP#";
/** A rebase rounds what it stores. */
const ROUNDING_MILLI = 2n;

/** Whether a landing is the record of a reset or a top-up. */
export function isOperation({ key }: Landing): boolean {
  return key.SK.startsWith(OPERATION_PREFIX);
}

/** Effects that a write may have in addition to consuming and refunding. */
export interface ChargeContext {
  /** The record of a reset or a top-up was written in the same transaction. */
  readonly operated?: boolean;
  /** Limits are bypassed now and then, so a balance may stay as it was. */
  readonly bypasses?: boolean;
}

export function chargedBy(
  before: ShardImage | undefined,
  after: ShardImage | undefined,
  { operated = false, bypasses = false }: ChargeContext,
): Charged {
  const charged = new Map<string, bigint>();
  for (const limit of after?.limits ?? []) {
    const was = before?.limits.find(({ name }) => name === limit.name);
    const consumed = limit.consumed - (was?.consumed ?? 0n);
    const image = after as ShardImage;
    const stays = bypasses && isBalanceKept(before, was, image, limit);
    if (operated && was !== undefined && consumed === 0n) {
      charged.set(limit.name, -addedTo(was, limit, image));
    } else charged.set(limit.name, stays ? 0n : consumed);
  }
  return charged;
}

/** Returns what an operation added, in milli-tokens; a remainder is part of the balance. */
function addedTo(was: LimitOfShard, limit: LimitOfShard, image: ShardImage): bigint {
  const rate = shareRate(limit, image.shard, image.count);
  const levelOf = (stored: LimitOfShard) =>
    Share.numerator(rate, { ...stored, epochMs: image.epochMs }, image.epochMs);
  return floorDiv(levelOf(limit) - levelOf(was), rate.period);
}

/** Whether a write has counted what it consumed, and left the balance as it was. */
function isBalanceKept(
  before: ShardImage | undefined,
  was: LimitOfShard | undefined,
  after: ShardImage,
  limit: LimitOfShard,
): boolean {
  const rate = shareRate(limit, after.shard, after.count);
  if (before === undefined || was === undefined) return limit.tokens === rate.capacity;
  if (before.count !== after.count) return false;
  // A clock that is behind keeps the base time, also where it brings a smaller capacity.
  if (before.epochMs === after.epochMs && was.capacity === limit.capacity) {
    return was.tokens === limit.tokens;
  }
  const level = { ...was, epochMs: before.epochMs };
  const old = shareRate(was, before.shard, before.count);
  const whole = Share.numerator(old, level, after.epochMs) / old.period;
  const difference = smaller(smaller(whole, old.capacity), rate.capacity) - limit.tokens;
  return difference <= ROUNDING_MILLI && difference >= -ROUNDING_MILLI;
}

function smaller(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}
