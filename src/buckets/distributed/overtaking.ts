/**
 * What a write that failed means. A write that was planned later may have been served before it: at
 * the time of the plan the bucket was not full, and yet it will look full the next time.
 */

import { type ConsumePlan, planConsume } from "./consume-plan.ts";
import type { SeenBucket } from "./seen-bucket.ts";
import type { Request, ShardWrite } from "./step.ts";

/**
 * The time that decides. What the item held when it was asked for decides: counting the time that
 * the answer took would keep all clients of a scarce bucket asking until one of them gives up. Of
 * the time before its base time, which a split or other limits have moved, a bucket says nothing.
 */
export function askedAt(askedMs: number, { refilledAtMs }: SeenBucket, nowMs: number): number {
  return Math.min(nowMs, Math.max(askedMs, refilledAtMs));
}

/** Whether a bucket that had too little is full by now: a late call does not compete for tokens. */
export function isFullNow(
  { config, members }: Request,
  bucket: SeenBucket,
  { nowMs, ttlMultiplier }: { readonly nowMs: number; readonly ttlMultiplier: number },
): boolean {
  const [first] = members;
  if (first === undefined) return false;
  const trustFull = () => true;
  const context = { nowMs, ttlMultiplier, trustFull };
  const plan = planConsume(bucket, config, first.amountsMilli, context);
  return plan.kind === "write" && plan.guesses.every(({ full }) => full);
}

/**
 * Whether to send the write once more for the same time. At that time the bucket is below full, and
 * a write that comes in between was planned later still.
 */
export function repeatsOvertaken(
  overtaken: ShardWrite | undefined,
  bucket: SeenBucket,
  { guesses }: Extract<ConsumePlan, { kind: "write" }>,
): boolean {
  if (overtaken === undefined || overtaken.repeats) return false;
  if (!isSameBase(overtaken.from, bucket)) return false;
  return guesses.length > 0 && guesses.every(({ full }) => !full);
}

/** Whether both tell balances relative to the same base time. */
function isSameBase(one: SeenBucket, other: SeenBucket): boolean {
  return (
    one.refilledAtMs === other.refilledAtMs &&
    one.rebases === other.rebases &&
    one.shardCount === other.shardCount
  );
}
