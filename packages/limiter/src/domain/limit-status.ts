/** The result of checking one limit. */

import { hasSlots, type Rate, waitMs } from "../core/bucket.ts";
import type { Period } from "../core/calendar.ts";
import { ceilDiv, floorDiv } from "../core/integers.ts";
import { waitThrough } from "../core/rate-schedule.ts";
import type { Limit } from "./limit.ts";
import type { LimitKind } from "./limit-spec.ts";
import { SCHEDULES } from "./schedules.ts";
import { UTC } from "./zone.ts";

/**
 * One limit of one entity, as an acquire or a peek found it.
 *
 * @example
 * ```ts
 * import type { LimitStatus } from 'zae-limiter';
 * const print = (status: LimitStatus) =>
 *   `${status.entityId} ${status.limitName}: ${status.available} of ${status.limit.capacity}`;
 * ```
 */
export interface LimitStatus {
  /** The entity whose bucket this is: the caller's, or that of an ancestor. */
  readonly entityId: string;
  readonly resource: string;
  /** The name of the limit, such as `rpm`. */
  readonly limitName: string;
  /** The limit; of one with windows, what it is in the window that is open. */
  readonly limit: Limit;
  /** The limit with all of its windows, where it has some. */
  readonly scheduled?: Limit;
  /** How the tokens of the limit come back. */
  readonly kind: LimitKind;
  /**
   * Whole tokens in the bucket, rounded down; negative in debt. In a refusal and in a peek: what
   * the bucket held then. In the statuses of a lease: what the acquire has left in it.
   */
  readonly available: number;
  /** Whole tokens asked for; 0 when the limit was not named. */
  readonly requested: number;
  /** Whether this limit refused the request. */
  readonly exceeded: boolean;
  /**
   * 0 when not exceeded; `Infinity` when the bucket can never hold that much. Of a quota or a
   * session the time until it resets; of slots an estimate.
   */
  readonly retryAfterSeconds: number;
  /** Seconds until the bucket is full if nothing is consumed; 0 when it is; estimated for slots. */
  readonly fullAfterSeconds: number;
  /** How much is missing: `max(0, requested - available)`. */
  readonly deficit: number;
  /** The limit is soft: it refuses nothing, and is consumed into debt. */
  readonly soft?: true;
  /** The limit is soft, and its balance is below zero. */
  readonly overdrawn?: true;
  /** All limits of the entity and resource are bypassed: consumption is counted, none refused. */
  readonly bypassed?: true;
  /** The times are estimates: slots come back when the calls that hold them end. */
  readonly estimated?: true;
  /** The end of the period in force, of a quota or of a session that has begun: it resets then. */
  readonly resetsAtMs?: number;
  /** The beginning of that period. */
  readonly periodStartMs?: number;
  /** Whole tokens consumed in that period, rounded up. */
  readonly used?: number;
}

/** The period of a quota or a session, as a store found it. */
export interface SeenPeriod extends Period {
  /** Consumed in the period. */
  readonly usedMilli: number;
  /** When the balance was seen. */
  readonly atMs: number;
}

/** The question a status answers. */
export interface LimitCheck {
  readonly entityId: string;
  readonly resource: string;
  readonly limit: Limit;
  readonly requested: number;
  readonly bypassed?: boolean;
  /** The period in force, of a quota and of a session that has begun. */
  readonly period?: SeenPeriod | undefined;
  /** When a limit with windows was seen. */
  readonly atMs?: number | undefined;
  /** How long slots of the bucket were held lately, in milliseconds; a second when absent. */
  readonly heldMs?: number | undefined;
}

/** The wait for a slot of a bucket of which no hold has ended yet. */
export const HELD_MS = 1000;

/**
 * Returns the status of a bucket whose balance is known. Only a request above zero can be exceeded.
 * `behindMs` is how far a clock that ran backwards is behind that balance: nothing accrues until it
 * has caught up.
 */
export function statusOf(
  given: LimitCheck,
  availableMilli: number,
  rate: Rate,
  behindMs = 0,
): LimitStatus {
  const check = inForceAt(given);
  const { entityId, resource, limit, requested, bypassed, period } = check;
  const available = floorDiv(availableMilli, 1000);
  const isGate = requested > 0 && !limit.soft && bypassed !== true;
  const waitingMs = isGate ? waitingFor(check, requested * 1000, availableMilli, rate) : 0;
  return {
    entityId,
    resource,
    limitName: limit.name,
    limit,
    kind: limit.kind,
    available,
    requested,
    exceeded: waitingMs > 0,
    retryAfterSeconds: waitingMs > 0 ? (waitingMs + behindMs) / 1000 : 0,
    fullAfterSeconds: fullAfter(check, availableMilli, rate, behindMs),
    deficit: Math.max(0, requested - available),
    ...marksOf(check, availableMilli),
    ...periodFields(period),
    ...windowFields(given),
  };
}

/** Returns a check with the limit as it was when it was seen. */
function inForceAt(check: LimitCheck): LimitCheck {
  const { limit, atMs } = check;
  return limit.schedule === undefined ? check : { ...check, limit: limit.at(atMs ?? 0) };
}

function windowFields({ limit }: LimitCheck) {
  return limit.schedule === undefined ? undefined : { scheduled: limit };
}

/**
 * Returns the time until a limit has that much: until it accrues, until the limit resets, or as
 * long as slots are held.
 */
function waitingFor(
  { period, heldMs = HELD_MS, atMs = 0 }: LimitCheck,
  neededMilli: number,
  availableMilli: number,
  rate: Rate,
): number {
  if (rate.schedule !== undefined) {
    return waitThrough(neededMilli, availableMilli, SCHEDULES.inTime(rate), atMs);
  }
  const areSlots = hasSlots(rate);
  if (period === undefined && !areSlots) return waitMs(neededMilli, availableMilli, rate);
  if (neededMilli <= availableMilli) return 0;
  if (neededMilli > rate.capacityMilli) return Number.POSITIVE_INFINITY;
  return period === undefined ? heldMs : untilReset(period) + 1;
}

function fullAfter(
  { period, heldMs, atMs = 0, limit }: LimitCheck,
  availableMilli: number,
  rate: Rate,
  behindMs = 0,
): number {
  if (rate.schedule !== undefined) {
    const { capacityMilli } = limit.rate;
    const waitingMs = waitThrough(capacityMilli, availableMilli, SCHEDULES.inTime(rate), atMs) - 1;
    return waitingMs < 0 ? 0 : (Math.max(1, waitingMs) + behindMs) / 1000;
  }
  if (rate.rule === undefined) return secondsUntilFull(availableMilli, rate, behindMs, heldMs);
  if (period === undefined || availableMilli >= rate.capacityMilli) return 0;
  return untilReset(period) / 1000;
}

function untilReset({ endMs, atMs }: SeenPeriod): number {
  return Math.max(0, endMs - atMs);
}

function periodFields(period: SeenPeriod | undefined) {
  if (period === undefined) return undefined;
  return {
    resetsAtMs: period.endMs,
    periodStartMs: period.startMs,
    used: ceilDiv(period.usedMilli, 1000),
  };
}

/** Returns the seconds until a bucket with this balance is full, to the millisecond. */
export function secondsUntilFull(
  availableMilli: number,
  rate: Rate,
  behindMs = 0,
  heldMs = HELD_MS,
): number {
  if (hasSlots(rate)) return availableMilli >= rate.capacityMilli ? 0 : heldMs / 1000;
  // A caller that waits gets one millisecond more, so that it never comes too early.
  const waitingMs = waitMs(rate.capacityMilli, availableMilli, rate) - 1;
  return waitingMs < 0 ? 0 : (Math.max(1, waitingMs) + behindMs) / 1000;
}

/** Returns the status of a limit that was granted: what is left, and nothing is exceeded. */
export function grantedStatus(given: LimitCheck, leftMilli: number, rate: Rate): LimitStatus {
  const check = inForceAt(given);
  const { entityId, resource, limit, requested, period } = check;
  const marks = marksOf(check, leftMilli);
  const status = {
    entityId,
    resource,
    limitName: limit.name,
    limit,
    kind: limit.kind,
    available: floorDiv(leftMilli, 1000),
    requested,
    exceeded: false,
    retryAfterSeconds: 0,
    fullAfterSeconds: fullAfter(check, leftMilli, rate),
    deficit: 0,
  };
  const windows = windowFields(given);
  if (marks === undefined && period === undefined && windows === undefined) return status;
  return { ...status, ...marks, ...periodFields(period), ...windows };
}

type Marks = Pick<LimitStatus, "soft" | "overdrawn" | "bypassed" | "estimated">;

/** Returns the fields that a status has only where they are true. */
function marksOf({ limit, bypassed }: LimitCheck, balanceMilli: number): Marks | undefined {
  const areSlots = limit.kind === "concurrency";
  if (!limit.soft && bypassed !== true && !areSlots) return undefined;
  return {
    ...(areSlots ? { estimated: true } : {}),
    ...(limit.soft ? { soft: true } : {}),
    ...(limit.soft && balanceMilli < 0 ? { overdrawn: true } : {}),
    ...(bypassed === true ? { bypassed } : {}),
  };
}

/** Returns the zone whose clock says when a limit resets. */
export function resetZone({ limit: { rule } }: Pick<LimitStatus, "limit">): string {
  return rule?.kind === "quota" ? rule.timeZone : UTC;
}
