/** The target of a lease, and the parts that all leases of a limiter have in common. */

import type { Timer } from "../../base/time.ts";
import type { Outcome } from "../../buckets/bucket-consumer.ts";
import type { BucketStore } from "../../buckets/bucket-store.ts";
import type { Adjustment } from "../../buckets/leg.ts";
import type { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import type { OnUnavailable } from "../../domain/errors/unavailability.ts";
import type { Limit } from "../../domain/limit.ts";
import { TOTAL } from "../../domain/names.ts";
import type { BucketName } from "../../records/keys.ts";
import type {
  AcquireRequest,
  AmountsByName,
  CheckedAlso,
  MissingLimits,
} from "../acquire-request.ts";
import type { LeaseWarning, LimiterEvent } from "../events.ts";
import type { Granted } from "./holding.ts";

/** Reads the host of the leases of a limiter, for other parts of this package. */
export const LEASE_HOST = Symbol("zae-limiter.lease-host");

/** The bucket that a lease consumes from, and options of its request. */
export interface LeaseTarget {
  readonly entityId: string;
  readonly resource: string;
  readonly limits?: readonly Limit[] | undefined;
  readonly onUnavailable?: OnUnavailable | undefined;
  readonly missingLimits?: MissingLimits | undefined;
  /** Whether totals count; the setting of the limiter when absent. */
  readonly totals?: boolean | undefined;
  /** Other parts of the call. */
  readonly also?: readonly CheckedAlso[] | undefined;
  /** How long slots may be held, in milliseconds. */
  readonly maxHoldMs?: number | undefined;
}

/** Whether the call of a lease consumed from the total of its entity by a part of its own. */
export function namesTotal({ entityId, also = [] }: LeaseTarget): boolean {
  return also.some((part) => part.resource === TOTAL && part.entityId === entityId);
}

/** Returns the lease target; the other fields of the request apply to its lease too. */
export function leaseTargetOf(request: AcquireRequest, outcome: Outcome): LeaseTarget {
  const { limits, onUnavailable, missingLimits, totals } = request;
  if ((limits ?? onUnavailable ?? missingLimits ?? totals) === undefined) return outcome;
  const { entityId, resource } = outcome;
  // `isPlain` lets only checked lists of limits pass.
  const given = limits as readonly Limit[] | undefined;
  return { entityId, resource, limits: given, onUnavailable, missingLimits, totals };
}

/** The limiter, as its leases use it. */
export interface LeaseHost {
  readonly buckets: BucketStore;
  readonly timer: Timer;
  /** Consumes more of the target, or throws; `undefined`: an outage let it pass uncounted. */
  consumeMore(
    target: LeaseTarget,
    amounts: AmountsByName,
    acquireId: string | undefined,
  ): Promise<Granted | undefined>;
  /** Reports an adjustment that was written. */
  adjusted(adjustment: Adjustment): void;
  /** Decides about an adjustment that cannot be written: `true` lets it pass with a warning. */
  adjustmentFailed(target: LeaseTarget, cause: RateLimiterUnavailable): boolean;
  /** Whether an event would reach a listener. */
  readonly hasListeners: boolean;
  /** Whether a call waits for tokens, so that refunds have to be reported. */
  readonly isAwaited: boolean;
  emit(event: LimiterEvent): void;
  /** Reports slots that were held since a time of the timer. */
  held(bucket: BucketName, fromMs: number): void;
  /** Reports whole tokens that were refunded to a bucket. */
  refunded(bucket: { entityId: string; resource: string }, tokens: AmountsByName): void;
  /** Refuses names that none of the limits has, unless the target ignores those. */
  checkNames(
    target: LeaseTarget,
    field: string,
    amounts: AmountsByName,
    limits: readonly Limit[],
  ): void;
  /** Warns of amounts that could not be applied as they were given. */
  warn(warning: LeaseWarning): void;
}
