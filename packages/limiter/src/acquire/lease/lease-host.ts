/** The target of a lease, and the parts that all leases of a limiter have in common. */

import type { BucketStore } from "../../buckets/bucket-store.ts";
import type { Adjustment } from "../../buckets/leg.ts";
import type { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import type { OnUnavailable } from "../../domain/errors/unavailability.ts";
import type { Limit } from "../../domain/limit.ts";
import type { AmountsByName, CheckedAlso, MissingLimits } from "../acquire-request.ts";
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
}

/** The limiter, as its leases use it. */
export interface LeaseHost {
  readonly buckets: BucketStore;
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
