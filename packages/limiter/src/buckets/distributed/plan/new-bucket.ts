/** Buckets that do not exist yet. */

import { hasSlots, type Rate } from "../../../core/bucket.ts";
import { invariant } from "../../../domain/check.ts";
import { SCHEDULES } from "../../../domain/schedules.ts";
import { WRITES_RATE } from "../../../records/bucket-item.ts";
import type { BucketName } from "../../../records/keys.ts";
import type { StoredPeriod } from "../../../records/period-attributes.ts";
import { softStamp, stamped } from "../../../records/python-attributes.ts";
import { NO_MARKS } from "../../../records/slot-attributes.ts";
import type { Value } from "../../../storage/item.ts";
import { bucketTtl, type LeftOver } from "../../bucket-ttl.ts";
import { type BucketConfig, type Link, takenOf } from "../../leg.ts";
import { allowanceOf, hasPeriods } from "../../periods.ts";
import type { BucketRules } from "../table-traits.ts";
import { newLevel } from "./paused-limits.ts";
import { type SeenBucket, UNSHARDED } from "./seen-bucket.ts";

/** The Python library's meter of writes, full: this library has one of its own. */
export const FULL_PYTHON_METER = {
  tokensMilli: WRITES_RATE.capacityMilli,
  rate: WRITES_RATE,
  totalConsumedMilli: 0,
  remainder: 0,
} as const;

export interface NewBucket {
  readonly name: BucketName;
  readonly config: BucketConfig;
  readonly link: Link;
  /** Stamps of the Python library that name the owner. */
  readonly stamps?: Readonly<Record<string, Value>>;
  /** Consumed from the full bucket; slots are taken from one that is there. */
  readonly amountsMilli: readonly number[];
  readonly nowMs: number;
  readonly rules: BucketRules;
}

/** Returns the first shard of a bucket, from which the amounts have been consumed. */
export function newBucket(made: NewBucket): SeenBucket {
  const { name, config, link, amountsMilli, nowMs, rules } = made;
  const { limits, source } = config;
  const ttlRule = { multiplier: rules.ttlMultiplier, source, isNew: true };
  const takenMilli = takenOf(config, amountsMilli);
  const left = limits.map(({ rate }, at): LeftOver & { period?: StoredPeriod } => {
    const taken = takenMilli[at] ?? 0;
    const balanceMilli = SCHEDULES.rateAt(rate, nowMs).capacityMilli - taken;
    const period = newPeriod(rate, taken, nowMs, rules);
    return period === undefined
      ? { rate, balanceMilli }
      : { rate, balanceMilli, endMs: period.endMs, period };
  });
  invariant(
    left.every(
      ({ balanceMilli, rate }) => balanceMilli <= SCHEDULES.rateAt(rate, nowMs).capacityMilli,
    ),
    "a new bucket holds at most its capacity",
  );
  return {
    entityId: name.entityId,
    resource: name.resource,
    shard: 0,
    shardCount: 1,
    rebases: 0,
    ...UNSHARDED,
    refilledAtMs: nowMs,
    cascade: link.cascade,
    parentId: link.parentId,
    ttl: bucketTtl(undefined, ttlRule, left, nowMs),
    configVersion: source === "override" ? 0 : config.version,
    configSource: source,
    limits: new Map(
      limits.map(({ name: limit, rate }, at) => [
        limit,
        {
          tokensMilli: (left[at] as (typeof left)[number]).balanceMilli,
          rate,
          totalConsumedMilli: amountsMilli[at] ?? 0,
          remainder: 0,
          ...periodOf(left[at]?.period),
          ...(hasSlots(rate) ? { marks: NO_MARKS, totalConsumedMilli: undefined } : undefined),
        },
      ]),
    ),
    writes: rules.isSharedWithPython ? FULL_PYTHON_METER : undefined,
    meterMs: undefined,
    python: rules.isSharedWithPython
      ? stampedWith({ ...made.stamps, ...hintsFor(config, nowMs) })
      : undefined,
  };
}

/** Returns the period that a new limit is in; a session is opened by what is consumed. */
function newPeriod(
  rate: Rate,
  takenMilli: number,
  nowMs: number,
  rules: BucketRules,
): StoredPeriod | undefined {
  if (!hasPeriods(rate)) return undefined;
  const allowance = allowanceOf(rate, 0, 1, rules.periods);
  const { endMs, leftMilli } = newLevel(allowance, takenMilli, nowMs);
  return { endMs, leftMilli, toppedUpMilli: 0, isStored: true };
}

function periodOf(period: StoredPeriod | undefined) {
  return period === undefined ? undefined : { period };
}

/**
 * Returns stamps that make clients of the Python library read the config: without them they enforce
 * the limits of a bucket. They are over at once: what this process has cached must not grant
 * anything.
 */
function hintsFor({ limits, source, bypass }: BucketConfig, nowMs: number): Record<string, Value> {
  const soft =
    source === "override" ? [] : limits.filter((limit) => limit.soft && !hasSlots(limit.rate));
  return {
    ...Object.fromEntries(soft.map(({ name }) => [softStamp(name), nowMs])),
    ...(bypass === true ? { bypass: nowMs } : {}),
  };
}

function stampedWith(stamps: Readonly<Record<string, Value>>) {
  return Object.keys(stamps).length === 0 ? undefined : stamped(stamps);
}
