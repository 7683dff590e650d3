/** How long an idle bucket is kept. */

import { accruedMilli, hasSlots, type Rate, retryAfterMs } from "../core/bucket.ts";
import { ceilDiv } from "../core/integers.ts";
import { invariant } from "../domain/check.ts";
import { SCHEDULES } from "../domain/schedules.ts";
import type { LimitSource } from "./leg.ts";
import { hasPeriods } from "./periods.ts";

/** So long that differences between clocks, and a slow removal, do not matter. */
const TTL_SECONDS_MIN = 3600;
const DAY_SECONDS = 86_400;
/** Three thousand years: practically without end, and far from the largest number. */
const TTL_SECONDS_MAX = 100_000_000_000;

/** One limit of a bucket, and what a write leaves of it. */
export interface LeftOver {
  readonly rate: Rate;
  readonly balanceMilli: number;
  /** The end of the period in force, of a limit with periods. */
  readonly endMs?: number;
}

export interface TtlRule {
  /** An idle bucket is kept this many times its time to fill; 0: without end. */
  readonly multiplier: number;
  /** The source of the limits of the call. */
  readonly source: LimitSource;
  /** Whether the bucket is being created. */
  readonly isNew: boolean;
}

/**
 * Returns the epoch second after which the bucket may expire, or `undefined` when it must stay: it
 * has limits of its own, or the multiplier is 0. A call with limits of its own decides nothing
 * about a bucket that stays.
 *
 * A bucket may expire only when all its limits would be full again, named in this call or not. The
 * time therefore covers filling up from empty, because other clients may consume what is left, and
 * from a debt. The current time is kept while it is good for half of what a new one would be: most
 * writes then leave the attribute, and its index, alone. Nothing expires inside a period.
 */
export function bucketTtl(
  current: number | undefined,
  rule: TtlRule,
  limits: Iterable<LeftOver>,
  nowMs: number,
): number | undefined {
  const { multiplier, source, isNew } = rule;
  if (multiplier <= 0 || isOwn(source)) return undefined;
  if (source === "override" && current === undefined && !isNew) return undefined;
  const span = spanOf(limits, multiplier, nowMs);
  if (span === undefined) return undefined;
  const { neededSeconds, wantedSeconds } = span;
  const nowSeconds = Math.ceil(nowMs / 1000);
  const goodEnough = nowSeconds + keptSeconds(neededSeconds, wantedSeconds);
  if (current !== undefined && current >= goodEnough) return current;
  return nowSeconds + wantedSeconds;
}

/**
 * Returns the seconds that must remain until the TTL of a bucket without debts, built from these
 * limits, for the TTL to be kept; `undefined` when the bucket has none.
 */
export function ttlKeptSeconds(
  rates: readonly Rate[],
  multiplier: number,
  source: LimitSource,
): number | undefined {
  if (multiplier <= 0 || isOwn(source)) return undefined;
  const span = spanOf(
    // A call that opens a period renews the time to live.
    rates.filter((rate) => rate.refillMilli > 0).map((rate) => ({ rate, balanceMilli: 0 })),
    multiplier,
    0,
  );
  return span && keptSeconds(span.neededSeconds, span.wantedSeconds);
}

/** Limits of the entity itself, for one resource or for all: its buckets stay. */
function isOwn(source: LimitSource): boolean {
  return source === "entity" || source === "entity_default";
}

function keptSeconds(neededSeconds: number, wantedSeconds: number): number {
  return Math.max(neededSeconds, Math.floor(wantedSeconds / 2));
}

/**
 * Returns how long a bucket must be kept, and how long it is kept when its TTL is renewed;
 * `undefined` while slots of it are held.
 */
function spanOf(
  limits: Iterable<LeftOver>,
  multiplier: number,
  nowMs: number,
): { neededSeconds: number; wantedSeconds: number } | undefined {
  let needed = 1;
  let wanted = TTL_SECONDS_MIN;
  for (const { rate, balanceMilli, endMs = 0 } of limits) {
    if (hasSlots(rate)) {
      if (balanceMilli < rate.capacityMilli) return undefined;
      continue;
    }
    if (hasPeriods(rate)) {
      const seconds = periodSeconds(rate, endMs - nowMs);
      needed = Math.max(needed, seconds);
      wanted = Math.max(wanted, seconds + TTL_SECONDS_MIN);
      continue;
    }
    // A limit with windows needs the longest time that any of its numbers needs.
    for (const each of rate.schedule === undefined ? [rate] : SCHEDULES.ratesOf(rate)) {
      const missing = each.capacityMilli - Math.min(0, balanceMilli);
      needed = Math.max(needed, ceilDiv(retryAfterMs(missing, each), 1000) + 1);
      const fillMs = retryAfterMs(each.capacityMilli, each);
      wanted = Math.max(wanted, Math.ceil((fillMs * multiplier) / 1000));
    }
  }
  const neededSeconds = Math.min(needed, TTL_SECONDS_MAX);
  const wantedSeconds = Math.min(Math.max(wanted, neededSeconds), TTL_SECONDS_MAX);
  invariant(neededSeconds <= wantedSeconds, "a bucket is kept until it is full");
  return { neededSeconds, wantedSeconds };
}

/**
 * Returns how long a period keeps its bucket; what is carried keeps it without end. A quota is kept
 * a day beyond its end, the longest guard of `core/calendar.ts`: a bucket that is made again has no
 * end, so a client with other data of the zone could reset twice.
 */
function periodSeconds({ rule }: Rate, leftMs: number): number {
  if (rule?.kind === "quota" && rule.carry !== "none") return TTL_SECONDS_MAX;
  const guardSeconds = rule?.kind === "quota" ? DAY_SECONDS : 0;
  return Math.max(0, ceilDiv(leftMs, 1000)) + 1 + guardSeconds;
}

/** Returns the deepest balance from which a limit is full again at `ttl`; without end, any. */
export function coveredMilli(ttl: number, rate: Rate, nowMs: number): number {
  if (hasPeriods(rate)) return Number.NEGATIVE_INFINITY;
  const lifetimeMs = ttl * 1000 - nowMs;
  if (rate.schedule !== undefined) {
    return Math.max(...SCHEDULES.ratesOf(rate).map((each) => coveredMilli(ttl, each, nowMs)));
  }
  const gained = accruedMilli(rate, lifetimeMs, 0);
  const covered = lifetimeMs >= TTL_SECONDS_MAX * 1000 || gained === Number.MAX_SAFE_INTEGER;
  return covered ? Number.NEGATIVE_INFINITY : rate.capacityMilli - gained;
}
