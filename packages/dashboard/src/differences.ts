/** Differences between two sets of limits. Pure. */

import type { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { describedLimit } from "./limit-texts.ts";
import type { DifferenceJson, ExceededJson } from "./wire.ts";

const HOUR_SECONDS = 3600;

/** Returns the limits that are added, removed or changed, by name. */
export function differencesOf(
  before: readonly Limit[],
  after: readonly Limit[],
): readonly DifferenceJson[] {
  const names = new Set([...before, ...after].map(({ name }) => name));
  return [...names].flatMap((limitName) => {
    const [old, next] = [before, after].map((limits) =>
      limits.find(({ name }) => name === limitName),
    );
    if (old !== undefined && next?.equals(old) === true) return [];
    const [was, is] = [old, next].map((limit) => (limit ? describedLimit(limit) : null));
    return [{ limitName, before: was ?? null, after: is ?? null }];
  });
}

/** Returns the most that a limit grants within an hour: a full bucket and an hour of refill. */
export function allowedInHour(limit: Limit): number {
  const { capacity, refillAmount, refillPeriodSeconds } = limit;
  return capacity + Math.floor((refillAmount * HOUR_SECONDS) / refillPeriodSeconds);
}

/** The usage of an entity in one hour. */
export interface HourlyUse {
  readonly windowStart: string;
  readonly counters: Readonly<Record<string, number>>;
}

/** Returns the hour with the highest use of each limit that allows less than that. */
export function exceededBy(
  limits: readonly Limit[],
  hours: readonly HourlyUse[],
): readonly ExceededJson[] {
  return limits.flatMap((limit) => {
    const allowed = allowedInHour(limit);
    const uses = hours.map(({ windowStart, counters }) => ({
      limitName: limit.name,
      used: counters[limit.name] ?? 0,
      allowed,
      hour: windowStart,
    }));
    const highest = uses.reduce<ExceededJson | undefined>(
      (most, use) => (most === undefined || use.used > most.used ? use : most),
      undefined,
    );
    return highest !== undefined && highest.used > allowed ? [highest] : [];
  });
}
