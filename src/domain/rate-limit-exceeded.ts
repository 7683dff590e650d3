/** The refusal: which limits were checked, which were exceeded, and when to come back. */

import { RateLimitError, ValidationError } from "./errors.ts";
import type { LimitStatus } from "./limit-status.ts";

/** The most a `Retry-After` header can say; used when waiting would never help. */
const HEADER_SECONDS_MAX = 2_147_483_647;

/** One limit in the JSON of a refusal. A wait that never ends is `null`, as JSON has no infinity. */
export interface LimitStatusJson {
  readonly entity_id: string;
  readonly resource: string;
  readonly limit_name: string;
  readonly capacity: number;
  readonly refill_amount: number;
  readonly refill_period_seconds: number;
  readonly available: number;
  readonly requested: number;
  readonly exceeded: boolean;
  readonly retry_after_seconds: number | null;
}

/** The body of a 429 answer. */
export interface RateLimitExceededJson {
  readonly error: "rate_limit_exceeded";
  readonly message: string;
  readonly retry_after_seconds: number | null;
  readonly retry_after_ms: number | null;
  readonly limits: readonly LimitStatusJson[];
}

/**
 * At least one limit did not have enough. Nothing was taken.
 *
 * @example
 * ```ts
 * import { Limit, RateLimitExceeded } from 'zae-limiter';
 * const limit = Limit.perMinute('tpm', 100);
 * const error = new RateLimitExceeded([
 *   { entityId: 'key-1', resource: 'gpt-4', limitName: 'tpm', limit, available: 0, requested: 10,
 *     exceeded: true, retryAfterSeconds: 6.001, deficit: 10 },
 * ]);
 * console.log(error.retryAfterHeader); // 7
 * console.log(error.toJSON().retry_after_ms); // 6001
 * ```
 */
export class RateLimitExceeded extends RateLimitError {
  override readonly code = "ZAEL_RATE_LIMIT_EXCEEDED";
  /** All limits checked: of the entity itself, then of its parents. */
  readonly statuses: readonly LimitStatus[];
  /** The exceeded ones. */
  readonly violations: readonly LimitStatus[];
  /** The violation with the longest wait. */
  readonly primaryViolation: LimitStatus;

  constructor(statuses: readonly LimitStatus[]) {
    const violations = statuses.filter((status) => status.exceeded);
    const primary = longestWait(violations);
    if (primary === undefined) {
      throw new ValidationError("statuses", statuses.length, "expected at least one violation");
    }
    super(refusalMessage(violations, primary));
    this.statuses = statuses;
    this.violations = violations;
    this.primaryViolation = primary;
  }

  /** The limits that had enough. */
  get passed(): readonly LimitStatus[] {
    return this.statuses.filter((status) => !status.exceeded);
  }

  /** When the same call can succeed; `Infinity` when it never can. */
  get retryAfterSeconds(): number {
    return this.primaryViolation.retryAfterSeconds;
  }

  /** For the `Retry-After` header: whole seconds, rounded up, at least 1. */
  get retryAfterHeader(): string {
    return String(Math.min(HEADER_SECONDS_MAX, Math.max(1, Math.ceil(this.retryAfterSeconds))));
  }

  toJSON(): RateLimitExceededJson {
    return refusalJson(this.message, this.retryAfterSeconds, this.statuses);
  }
}

/** The violation with the longest wait; the first of equals. */
export function longestWait(violations: readonly LimitStatus[]): LimitStatus | undefined {
  let longest = violations[0];
  for (const violation of violations) {
    if (longest && violation.retryAfterSeconds > longest.retryAfterSeconds) longest = violation;
  }
  return longest;
}

/** The sentence of a refusal. */
export function refusalMessage(violations: readonly LimitStatus[], primary: LimitStatus): string {
  const names = violations.map((violation) => violation.limitName).join(", ");
  const advice = Number.isFinite(primary.retryAfterSeconds)
    ? `retry after ${primary.retryAfterSeconds.toFixed(1)}s`
    : `the request is larger than the capacity of ${primary.limit.capacity} and can never fit`;
  return `Rate limit exceeded for ${primary.entityId}/${primary.resource}: [${names}], ${advice}`;
}

/** The JSON of a refusal, shared by the error and by the result of `tryAcquire`. */
export function refusalJson(
  message: string,
  retryAfterSeconds: number,
  statuses: readonly LimitStatus[],
): RateLimitExceededJson {
  const never = !Number.isFinite(retryAfterSeconds);
  return {
    error: "rate_limit_exceeded",
    message,
    retry_after_seconds: never ? null : retryAfterSeconds,
    retry_after_ms: never ? null : Math.round(retryAfterSeconds * 1000),
    limits: statuses.map(statusJson),
  };
}

function statusJson(status: LimitStatus): LimitStatusJson {
  const never = !Number.isFinite(status.retryAfterSeconds);
  return {
    entity_id: status.entityId,
    resource: status.resource,
    limit_name: status.limitName,
    capacity: status.limit.capacity,
    refill_amount: status.limit.refillAmount,
    refill_period_seconds: status.limit.refillPeriodSeconds,
    available: status.available,
    requested: status.requested,
    exceeded: status.exceeded,
    retry_after_seconds: never ? null : status.retryAfterSeconds,
  };
}
