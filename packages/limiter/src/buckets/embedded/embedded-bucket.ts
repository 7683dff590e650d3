/** A bucket of the embedded stores: one writer at a time, so it is refilled as it is used. */

import {
  balanceAt,
  forceTake,
  fullLevel,
  type Level,
  type Rate,
  refill,
} from "../../core/bucket.ts";
import { mulAddDiv } from "../../core/integers.ts";
import type { StoredState } from "../bucket-admin.ts";
import { type BuiltFrom, staleNames } from "../config-match.ts";
import type { BucketConfig, Leg, LimitSource, Link } from "../leg.ts";
import { effectiveLink, sameLink } from "../link.ts";
import type { BucketRow } from "./bucket-table.ts";
import { hourOf } from "./usage-hour.ts";

export interface EmbeddedLimit {
  readonly name: string;
  readonly rate: Rate;
  readonly level: Level;
  readonly consumedMilli: number | bigint;
  /** The part of it that is in the snapshots of usage. */
  readonly countedMilli: number | bigint;
}

/** Immutable: a call that is refused leaves no trace. */
export interface EmbeddedBucket {
  readonly link: Link;
  readonly version: number;
  readonly source: LimitSource;
  /** Epoch seconds; the bucket may go after that. */
  readonly ttl: number | undefined;
  readonly limits: readonly EmbeddedLimit[];
  /** The hour, since 1970, in which everything that is not counted yet was consumed. */
  readonly usageHour: number;
  /** Acquires that are not counted yet. */
  readonly events: number;
  /** What the store has of it, so that a write can leave the rest alone. */
  readonly stored?: { readonly ttl: number | undefined };
}

/** How `matchConfig` sees it. */
export function builtFrom(bucket: EmbeddedBucket): BuiltFrom {
  return {
    version: bucket.version,
    source: bucket.source,
    rateOf: (name) => limitNamed(bucket, name)?.rate,
    limitNames: () => bucket.limits.map(({ name }) => name),
  };
}

export function limitNamed(bucket: EmbeddedBucket, name: string): EmbeddedLimit | undefined {
  return bucket.limits.find((limit) => limit.name === name);
}

export function newBucket(config: BucketConfig, link: Link, nowMs: number): EmbeddedBucket {
  return {
    link,
    version: config.version,
    source: config.source,
    ttl: undefined,
    limits: config.limits.map(({ name, rate }) => newLimit(name, rate, nowMs)),
    usageHour: hourOf(nowMs),
    events: 0,
  };
}

/** The bucket with the limits of a config: balances stay, capped; new limits start full. */
export function withConfig(
  bucket: EmbeddedBucket,
  config: BucketConfig,
  nowMs: number,
): EmbeddedBucket {
  const stale = new Set(staleNames(builtFrom(bucket), config));
  const names = new Set(config.limits.map(({ name }) => name));
  const kept = bucket.limits.filter(({ name }) => !stale.has(name) && !names.has(name));
  const applied = config.limits.map(({ name, rate }) => {
    const stored = limitNamed(bucket, name);
    return stored === undefined ? newLimit(name, rate, nowMs) : withRate(stored, rate, nowMs);
  });
  return {
    ...bucket,
    version: config.source === "override" ? bucket.version : config.version,
    source: config.source,
    limits: [...applied, ...kept],
  };
}

/**
 * Consumes without asking; a negative amount refunds. What is refunded, or not touched, keeps its
 * time: only what is consumed settles how much time has been used.
 */
export function withConsumed(
  limit: EmbeddedLimit,
  amountMilli: number,
  nowMs: number,
): EmbeddedLimit {
  if (amountMilli === 0) return limit;
  const { level, rate } = limit;
  return {
    ...limit,
    level:
      amountMilli < 0
        ? { ...level, tokensMilli: level.tokensMilli - amountMilli }
        : forceTake(level, rate, amountMilli, nowMs),
    consumedMilli: sum(limit.consumedMilli, amountMilli),
  };
}

/** Counts what was consumed, and leaves the balance as it is. */
export function withCounted(limit: EmbeddedLimit, amountMilli: number): EmbeddedLimit {
  if (amountMilli === 0) return limit;
  return { ...limit, consumedMilli: sum(limit.consumedMilli, amountMilli) };
}

/** The balance now. */
export function balanceMilli(limit: EmbeddedLimit, nowMs: number): number {
  return balanceAt(limit.level, limit.rate, nowMs);
}

function newLimit(name: string, rate: Rate, nowMs: number): EmbeddedLimit {
  return { name, rate, level: fullLevel(rate, nowMs), consumedMilli: 0, countedMilli: 0 };
}

/** The balance stays, capped; so does the part of a milli-token that has accrued. */
function withRate(limit: EmbeddedLimit, rate: Rate, nowMs: number): EmbeddedLimit {
  const { tokensMilli, refilledAtMs, remainder } = refill(limit.level, limit.rate, nowMs);
  const level =
    tokensMilli >= rate.capacityMilli
      ? fullLevel(rate, refilledAtMs)
      : {
          tokensMilli,
          refilledAtMs,
          remainder: mulAddDiv(remainder, rate.periodMs, 0, limit.rate.periodMs),
        };
  return { ...limit, rate, level };
}

function sum(total: number | bigint, amount: number): number | bigint {
  const next = typeof total === "number" ? total + amount : total + BigInt(amount);
  if (typeof next === "number" && !Number.isSafeInteger(next)) {
    return BigInt(total) + BigInt(amount);
  }
  return next;
}

/** The links of the buckets, when one is not what the legs were made from. */
export function changedLinks(
  legs: readonly Leg[],
  buckets: readonly EmbeddedBucket[],
): readonly Link[] | undefined {
  const linkAt = (at: number) =>
    effectiveLink((buckets[at] as EmbeddedBucket).link, legs[at]?.config.cascade);
  if (legs.every(({ link }, at) => sameLink(link, linkAt(at)))) return undefined;
  return legs.map((_, at) => linkAt(at));
}

/** What the limits of a leg have; one that the bucket does not have is full. */
export function balances(bucket: EmbeddedBucket, leg: Leg, now: number): readonly number[] {
  return leg.config.limits.map(({ name, rate }) => {
    const limit = limitNamed(bucket, name);
    return limit === undefined ? rate.capacityMilli : balanceMilli(limit, now);
  });
}

/** The limits of a row, for people. */
export function states(row: BucketRow, now: number): StoredState[] {
  return row.bucket.limits.map((limit) => ({
    entityId: row.entityId,
    resource: row.resource,
    shard: 0,
    shardCount: 1,
    limitName: limit.name,
    capacityMilli: limit.rate.capacityMilli,
    refillMilli: limit.rate.refillMilli,
    periodMs: limit.rate.periodMs,
    balanceMilli: balanceMilli(limit, now),
    consumedMilli: limit.consumedMilli,
    refilledAtMs: limit.level.refilledAtMs,
  }));
}
