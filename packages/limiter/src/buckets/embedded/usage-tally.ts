/**
 * Usage of an embedded bucket, counted in the acquire's own step.
 *
 * A bucket has its total consumption, and how much of it the snapshots contain already. The
 * difference belongs to one hour. It is added to the snapshots when the hour is over, when the
 * bucket is deleted, and when usage is read: an acquire costs no more than a comparison, and
 * consumption that is not in the snapshots yet is in the bucket, so nothing is lost.
 */

import type { UsageSubject } from "../../records/usage/usage-item.ts";
import type { EmbeddedBucket } from "./embedded-bucket.ts";
import { hourStartMs } from "./usage-hour.ts";

/** Puts what a bucket consumed in an hour into the snapshots, within the step of the caller. */
export type CountUsage = (subject: UsageSubject, usage: PendingUsage) => void;

export interface PendingUsage {
  /** A moment of the hour it belongs to. */
  readonly atMs: number;
  readonly amountsMilli: readonly (readonly [limitName: string, milli: number | bigint])[];
  readonly events: number;
  /** By the name of a soft limit: acquires that left it below zero. */
  readonly overdrawn?: ReadonlyMap<string, number>;
}

/** What of a bucket is not in the snapshots yet. */
export function pendingUsage(bucket: EmbeddedBucket): PendingUsage | undefined {
  const { events, limits, usageHour } = bucket;
  const changed = limits.filter(
    ({ consumedMilli, countedMilli }) => consumedMilli !== countedMilli,
  );
  if (changed.length === 0 && events === 0) return undefined;
  return {
    atMs: hourStartMs(usageHour),
    amountsMilli: changed.map(({ name, consumedMilli, countedMilli }) => [
      name,
      difference(consumedMilli, countedMilli),
    ]),
    events,
  };
}

/** The bucket with everything counted, at the beginning of an hour. */
export function asCounted(bucket: EmbeddedBucket, hour: number): EmbeddedBucket {
  return {
    ...bucket,
    usageHour: hour,
    events: 0,
    limits: bucket.limits.map((limit) => ({ ...limit, countedMilli: limit.consumedMilli })),
  };
}

function difference(total: number | bigint, counted: number | bigint): number | bigint {
  if (typeof total === "number" && typeof counted === "number") return total - counted;
  return BigInt(total) - BigInt(counted);
}
