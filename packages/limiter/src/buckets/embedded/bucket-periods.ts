/** The periods of a bucket's limits, as calls see them. */

import { hasSlots, type Rate } from "../../core/bucket.ts";
import type { PeriodRule } from "../../core/period-rule.ts";
import type { ClosedPeriod } from "../../records/usage/period-item.ts";
import type { LeftOver } from "../bucket-ttl.ts";
import type { SeenPeriod } from "../leg.ts";
import {
  allowanceOf,
  carriedInto,
  hasPeriods,
  levelIn,
  type PeriodLevel,
  startOf,
} from "../periods.ts";
import { heldAt, type Numbers, periodAt } from "./limit-numbers.ts";

/**
 * A limit with periods that the bucket does not have any more, or has as another kind, until its
 * period ends: if it comes back before, it goes on with its balance.
 */
export interface PausedLimit {
  readonly name: string;
  readonly rate: Rate;
  readonly level: PeriodLevel;
  /** Milli-tokens that the period has consumed for leases of earlier ones. */
  readonly lateMilli: number;
}

/** Returns the period that a limit is in; `undefined`: a session that is not open. */
export function seenPeriodAt(
  numbers: Readonly<Numbers>,
  at: number,
  rate: Rate,
  nowMs: number,
): SeenPeriod | undefined {
  const stored = periodAt(numbers, at);
  if (rate.rule?.kind === "session" && nowMs >= stored.endMs) return undefined;
  const { endMs, grantedMilli } = levelIn(stored, allowanceOf(rate), nowMs);
  return { endMs, grantedMilli, atMs: nowMs };
}

/** Returns the statement of a period that ends now, or that has ended. */
export function closedPeriod(
  limitName: string,
  rate: Rate,
  level: PeriodLevel,
  lateMilli: number,
  nowMs: number,
): ClosedPeriod {
  const rule = rate.rule as PeriodRule;
  const { grantedMilli, tokensMilli, endMs } = level;
  return {
    limitName,
    kind: rule.kind,
    startMs: startOf(rule, endMs),
    endMs: Math.min(endMs, nowMs),
    ...(rule.kind === "quota" ? { timeZone: rule.timeZone } : {}),
    allowance: rate.capacityMilli,
    carried: carriedInto(level, allowanceOf(rate)),
    granted: grantedMilli,
    used: grantedMilli - tokensMilli,
    late: lateMilli,
  };
}

/** Returns the earliest end of a period in force among limits; `Infinity` where there is none. */
export function earliestEndMs(
  rates: readonly Rate[],
  numbers: Readonly<Numbers>,
  nowMs: number,
): number {
  let earliestMs = Number.POSITIVE_INFINITY;
  rates.forEach((rate, at) => {
    if (!hasPeriods(rate)) return;
    const { endMs } = periodAt(numbers, at);
    if (nowMs < endMs) earliestMs = Math.min(earliestMs, endMs);
  });
  return earliestMs;
}

/** Returns what is left of every limit, by which a time to live is chosen. */
export function leftIn(
  rates: readonly Rate[],
  numbers: Readonly<Numbers>,
  paused: readonly PausedLimit[],
  nowMs: number,
): readonly LeftOver[] {
  const left = rates.flatMap((rate, at): LeftOver[] => {
    const balanceMilli = heldAt(numbers, at, rate, nowMs);
    // A bucket stays while slots of it are held, whatever its time to live.
    if (hasSlots(rate)) return [];
    if (!hasPeriods(rate)) return [{ rate, balanceMilli }];
    return [{ rate, balanceMilli, endMs: periodAt(numbers, at).endMs }];
  });
  for (const { rate, level } of paused) {
    left.push({ rate, balanceMilli: level.tokensMilli, endMs: level.endMs });
  }
  return left;
}

/** Whether a new limit would be in the same period with the same balance. */
export function isUnused(
  { endMs, tokensMilli, grantedMilli }: PeriodLevel,
  rate: Rate,
  nowMs: number,
): boolean {
  const { rule, capacityMilli } = rate;
  if (rule?.kind === "session") return nowMs >= endMs;
  if (rule?.kind === "quota" && rule.carry !== "none") return false;
  return nowMs >= endMs || (tokensMilli === capacityMilli && grantedMilli === capacityMilli);
}
