/** The status of a limit for a request that waits behind others in the queue. */

import { accruedMilli, retryAfterMs } from "../core/bucket.ts";
import { floorDiv } from "../core/integers.ts";
import { type LimitStatus, secondsUntilFull } from "../domain/limit-status.ts";

export interface PlaceInLine {
  readonly requested: number;
  /** Tokens that the requests ahead need. */
  readonly ahead: number;
  /** Milliseconds since the store reported the status. */
  readonly elapsedMs: number;
  /** Tokens this process has refunded since then. */
  readonly refunded: number;
}

/** Returns the status with a wait that includes the requests ahead. */
export function statusBehind(status: LimitStatus, place: PlaceInLine): LimitStatus {
  const { limit } = status;
  const { requested } = place;
  const balanceMilli = balanceNow(status, place);
  const missingMilli = (place.ahead + requested) * 1000 - balanceMilli;
  const isGate = !limit.soft && status.bypassed !== true;
  const exceeded = isGate && requested > 0 && missingMilli > 0;
  const waitMs =
    requested > limit.capacity ? Number.POSITIVE_INFINITY : retryAfterMs(missingMilli, limit.rate);
  const available = floorDiv(balanceMilli, 1000);
  return {
    ...status,
    available,
    requested,
    exceeded,
    retryAfterSeconds: exceeded ? waitMs / 1000 : 0,
    fullAfterSeconds: secondsUntilFull(balanceMilli, limit.rate),
    deficit: Math.max(0, requested - available),
  };
}

/** Returns the balance now; where the status was rounded, the highest it may have been. */
function balanceNow(status: LimitStatus, { elapsedMs, refunded }: PlaceInLine): number {
  const { rate } = status.limit;
  const accrued = accruedMilli(rate, elapsedMs, 0);
  const seen =
    Number.isFinite(status.retryAfterSeconds) && status.exceeded
      ? status.requested * 1000 - missedMilli(status)
      : status.available * 1000 + 999;
  return Math.min(rate.capacityMilli, seen + accrued + refunded * 1000);
}

/** Returns what was missing, computed from the time in which it accrues. */
function missedMilli({ limit: { rate }, retryAfterSeconds }: LimitStatus): number {
  const waitMs = Math.round(retryAfterSeconds * 1000);
  return accruedMilli(rate, waitMs - 1, 0);
}
