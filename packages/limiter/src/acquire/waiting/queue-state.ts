/** The cached state of a queue of waiters: the last answer of the store, and the refunds since. */

import { isRecent } from "../../base/time.ts";
import { KNOWN_MS } from "../../buckets/spent.ts";
import { accruedMilli, hasSlots, retryAfterMs } from "../../core/bucket.ts";
import { floorDiv } from "../../core/integers.ts";
import { waitThrough } from "../../core/rate-schedule.ts";
import type { Limit } from "../../domain/limit.ts";
import { HELD_MS, type LimitStatus, secondsUntilFull } from "../../domain/limit-status.ts";
import { SCHEDULES } from "../../domain/schedules.ts";
import { bucketId } from "../../records/keys.ts";
import type { AmountsByName } from "../acquire-request.ts";
import { Refusal } from "../decision.ts";
import type { QueueLine } from "./queue-line.ts";

/** The last answer of the store. */
interface Answer {
  readonly statuses: readonly LimitStatus[];
  readonly limits: readonly Limit[] | undefined;
  /** When the answer came: balances are those of that time. */
  readonly seenAtMs: number;
  /** When the store showed the oldest state that the answer goes by. */
  readonly shownAtMs: number;
  /** Tokens this process has refunded since, by bucket and limit. */
  readonly refunded: Map<string, number>;
}

/** Returns the oldest time for `know` at which an answer is not stale yet when it comes. */
export function oldestFresh(nowMs: number): number {
  return nowMs - KNOWN_MS + 1;
}

export class QueueState {
  /** Names of the buckets its requests consume from: of the entity and of its ancestors. */
  readonly heardOf = new Set<string>();
  /** All refunds so far, by bucket and limit. */
  readonly #given = new Map<string, number>();
  #answer: Answer | undefined;

  /** Returns whether the answer is too old to refuse a request. */
  isStale(nowMs: number): boolean {
    return this.#answer !== undefined && !isRecent(this.#answer.shownAtMs, nowMs, KNOWN_MS);
  }

  /** Returns all refunds so far; the answer to a request that asks now may lack later ones. */
  given(): AmountsByName {
    return new Map(this.#given);
  }

  /** Returns the refunds since. */
  givenSince(before: AmountsByName): Map<string, number> {
    const since = new Map<string, number>();
    for (const [at, amount] of this.#given) {
      const more = amount - (before.get(at) ?? 0);
      if (more > 0) since.set(at, more);
    }
    return since;
  }

  /** Records a refund to one of its buckets. */
  refund(bucketName: string, amounts: AmountsByName): void {
    addAt(this.#given, bucketName, amounts);
    if (this.#answer !== undefined) addAt(this.#answer.refunded, bucketName, amounts);
  }

  /** Records an answer to a request that asked after the refunds `before`. */
  know(
    statuses: readonly LimitStatus[],
    { limits }: QueueLine,
    before: AmountsByName,
    nowMs: number,
    shownMs: number,
  ): void {
    const refunded = this.givenSince(before);
    const shownAtMs = Math.min(nowMs, shownMs);
    this.#answer = { statuses, limits, seenAtMs: nowMs, shownAtMs, refunded };
    for (const status of statuses) this.heardOf.add(bucketId(status));
  }

  /**
   * Returns the answer for a request behind those that need `ahead`; `undefined` when nothing is
   * known. Limits given with a call say nothing about calls with other limits.
   */
  behind(request: QueueLine, ahead: AmountsByName, nowMs: number): Refusal | undefined {
    const known = this.#answer;
    if (known === undefined || !sameLimits(known.limits, request.limits)) return undefined;
    const elapsedMs = Math.max(0, nowMs - known.seenAtMs);
    return new Refusal(
      known.statuses.map((status) =>
        statusBehind(status, {
          requested: request.amounts.get(status.limitName) ?? 0,
          ahead: ahead.get(status.limitName) ?? 0,
          elapsedMs,
          nowMs,
          refunded: known.refunded.get(`${bucketId(status)} ${status.limitName}`) ?? 0,
        }),
      ),
      request,
    );
  }
}

function addAt(sums: Map<string, number>, bucketName: string, amounts: AmountsByName): void {
  for (const [name, amount] of amounts) {
    const at = `${bucketName} ${name}`;
    sums.set(at, (sums.get(at) ?? 0) + amount);
  }
}

function sameLimits(
  left: readonly Limit[] | undefined,
  right: readonly Limit[] | undefined,
): boolean {
  if (left === undefined || right === undefined) return left === right;
  return left.length === right.length && left.every((one, at) => right[at]?.equals(one) === true);
}

/** The place of a request in the queue. */
interface PlaceInLine {
  readonly requested: number;
  /** Tokens that the requests ahead need. */
  readonly ahead: number;
  /** Milliseconds since the store reported the status. */
  readonly elapsedMs: number;
  readonly nowMs: number;
  /** Tokens this process has refunded since then. */
  readonly refunded: number;
}

/** Returns the status with a wait that includes the requests ahead. */
function statusBehind(status: LimitStatus, place: PlaceInLine): LimitStatus {
  const { limit } = status;
  const { requested } = place;
  const balanceMilli = balanceNow(status, place);
  const missingMilli = (place.ahead + requested) * 1000 - balanceMilli;
  const isGate = !limit.soft && status.bypassed !== true;
  const exceeded = isGate && requested > 0 && missingMilli > 0;
  const waitMs =
    requested > capacityOf(status) ? Number.POSITIVE_INFINITY : waitOf(status, missingMilli, place);
  const available = floorDiv(balanceMilli, 1000);
  return {
    ...status,
    available,
    requested,
    exceeded,
    retryAfterSeconds: exceeded ? waitMs / 1000 : 0,
    fullAfterSeconds:
      status.resetsAtMs === undefined
        ? secondsUntilFull(balanceMilli, limit.rate, 0, heldMsOf(status))
        : Math.max(0, status.resetsAtMs - place.nowMs) / 1000,
    deficit: Math.max(0, requested - available),
  };
}

/**
 * Returns the time until what is missing is there: until it accrues, or until the period ends. It
 * may take more periods than one; the requests ahead may also leave before.
 */
function waitOf(status: LimitStatus, missingMilli: number, place: PlaceInLine): number {
  const { nowMs } = place;
  const { resetsAtMs, periodStartMs, limit, scheduled } = status;
  if (scheduled !== undefined) {
    return waitInWindows(scheduled, capacityOf(status) * 1000, missingMilli, place);
  }
  if (hasSlots(limit.rate)) return heldMsOf(status);
  if (resetsAtMs === undefined || periodStartMs === undefined) {
    return retryAfterMs(missingMilli, limit.rate);
  }
  const isOver = nowMs >= resetsAtMs;
  const endMs = isOver ? nowMs + resetsAtMs - periodStartMs : resetsAtMs;
  return missingMilli <= 0 ? 0 : endMs - nowMs + 1;
}

/** Returns the time until a line has what it needs, through the windows that open until then. */
function waitInWindows(
  scheduled: Limit,
  mostMilli: number,
  missingMilli: number,
  { ahead, requested, nowMs }: PlaceInLine,
): number {
  const neededMilli = (ahead + requested) * 1000;
  const heldMilli = neededMilli - missingMilli;
  const rates = SCHEDULES.inTime(scheduled.rate);
  const waitMs = waitThrough(Math.min(neededMilli, mostMilli), heldMilli, rates, nowMs);
  return waitMs + retryAfterMs(neededMilli - mostMilli, scheduled.rate);
}

/** Returns the most that a limit holds, now or in any of its windows. */
function capacityOf({ limit, scheduled }: LimitStatus): number {
  if (scheduled === undefined) return limit.capacity;
  const milli = SCHEDULES.ratesOf(scheduled.rate).map(({ capacityMilli }) => capacityMilli);
  return Math.max(...milli) / 1000;
}

/** Returns the balance now; where the status was rounded, the highest it may have been. */
function balanceNow(status: LimitStatus, place: PlaceInLine): number {
  const { elapsedMs, refunded, nowMs } = place;
  const { rate } = status.limit;
  if (hasSlots(rate)) return Math.min(rate.capacityMilli, (status.available + refunded) * 1000);
  if (status.resetsAtMs !== undefined) {
    if (nowMs >= status.resetsAtMs) return rate.capacityMilli;
    return (status.available + refunded) * 1000 + 999;
  }
  const accrued = accruedMilli(rate, elapsedMs, 0);
  const seen =
    Number.isFinite(status.retryAfterSeconds) && status.exceeded && !status.scheduled
      ? status.requested * 1000 - missedMilli(status)
      : status.available * 1000 + 999;
  return Math.min(rate.capacityMilli, seen + accrued + refunded * 1000);
}

/** Returns how long slots are held, as the status of a bucket estimates it. */
function heldMsOf({ fullAfterSeconds }: LimitStatus): number {
  return fullAfterSeconds === 0 ? HELD_MS : fullAfterSeconds * 1000;
}

/** Returns what was missing, computed from the time in which it accrues. */
function missedMilli({ limit: { rate }, retryAfterSeconds }: LimitStatus): number {
  const waitMs = Math.round(retryAfterSeconds * 1000);
  return accruedMilli(rate, waitMs - 1, 0);
}
