/**
 * Finds the periods that changes of bucket items have closed. Pure.
 *
 * The write that moves the base time of an item to the end of a period or beyond closes it: the
 * image before is what the period came to in this shard. An item that goes away after the end
 * closes it too; one that goes away before, in a merge or a deletion, does not.
 */

import {
  allowanceAt,
  storedLevel,
} from "@zae-limiter/limiter/buckets/distributed/plan/period-plan.ts";
import type { SeenBucket } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { carriedInto, startOf } from "@zae-limiter/limiter/buckets/periods.ts";
import type { StoredLimit } from "@zae-limiter/limiter/records/bucket-item.ts";
import { PAUSED } from "@zae-limiter/limiter/records/bucket-shape.ts";
import { parseBucketKey, STATE_SK } from "@zae-limiter/limiter/records/keys.ts";
import { RESETS } from "@zae-limiter/limiter/records/period-attributes.ts";
import type { ClosedPeriod } from "@zae-limiter/limiter/records/usage/period-item.ts";
import type { UsageSubject } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { type Item, numberAt } from "@zae-limiter/limiter/storage/item.ts";
import { readableBucket } from "./readable-bucket.ts";
import type { StreamChange } from "./stream-change.ts";

/** A period that one shard of a bucket has closed. */
export interface Closing {
  /** The record that shows it. */
  readonly id: string;
  readonly subject: UsageSubject;
  readonly shard: number;
  /** The base time of the bucket before. */
  readonly baseMs: number;
  readonly period: ClosedPeriod;
}

/** Returns the periods that changes have closed, shard by shard. */
export function closingsIn(changes: Iterable<StreamChange>): Closing[] {
  return [...changes].flatMap(closingsOf);
}

function closingsOf({ id, key, before, after, atMs }: StreamChange): Closing[] {
  if (before === undefined || key.SK !== STATE_SK || !mayHavePeriods(before)) return [];
  const baseMs = numberAt(before, "rf") ?? 0;
  const untilMs = numberAt(after, "rf") ?? atMs;
  const place = parseBucketKey(key.PK);
  const bucket = untilMs > baseMs && place !== undefined ? readableBucket(before) : undefined;
  if (place === undefined || bucket === undefined) return [];
  const { shard, ...subject } = place;
  return endedIn(bucket, baseMs, untilMs).map((period) => ({ id, subject, shard, baseMs, period }));
}

/** Returns the periods of a bucket that end after the one time and not after the other. */
function endedIn(bucket: SeenBucket, afterMs: number, untilMs: number): ClosedPeriod[] {
  const paused = [...(bucket.paused?.values() ?? [])].map(
    ({ limitName, rate, level, toppedUpMilli }): readonly [string, StoredLimit] => {
      const { tokensMilli, endMs, leftMilli } = level;
      const period = { endMs, leftMilli, toppedUpMilli, isStored: true };
      return [limitName, { tokensMilli, rate, period, totalConsumedMilli: 0, remainder: 0 }];
    },
  );
  return [...bucket.limits, ...paused].flatMap(([limitName, stored]) => {
    const level = storedLevel(bucket, stored);
    const { rule, capacityMilli } = stored.rate;
    if (level === undefined || rule === undefined) return [];
    const { endMs, grantedMilli, tokensMilli } = level;
    if (endMs <= afterMs || endMs > untilMs) return [];
    return {
      limitName,
      kind: rule.kind,
      startMs: startOf(rule, endMs),
      endMs,
      ...(rule.kind === "quota" ? { timeZone: rule.timeZone } : {}),
      allowance: capacityMilli,
      carried: carriedInto(level, allowanceAt(bucket, stored.rate)),
      granted: grantedMilli,
      used: grantedMilli - tokensMilli,
    };
  });
}

/** Returns false for most buckets, which are then not decoded. */
function mayHavePeriods(item: Item): boolean {
  for (const name in item) {
    const isOfRule = name.endsWith(RESETS) || name.endsWith("_rsa") || name.startsWith(PAUSED);
    if (isOfRule) return true;
  }
  return false;
}
