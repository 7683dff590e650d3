/** The refusal: which limits were checked, which were exceeded, and when to come back. */

import { defined } from "../../base/defined.ts";
import type { LimitKind } from "../limit-spec.ts";
import { type LimitStatus, resetZone } from "../limit-status.ts";
import { TOTAL } from "../names.ts";
import { localIso, localText } from "../zone.ts";
import { RateLimitError, ValidationError } from "./errors.ts";

/** The most a `Retry-After` header can say; used when waiting would never help. */
const HEADER_SECONDS_MAX = 2_147_483_647;

/** One limit in the JSON of a refusal. An infinite wait is `null`. */
export interface LimitStatusJson {
  /** The entity whose bucket this is. */
  readonly entity_id: string;
  readonly resource: string;
  readonly limit_name: string;
  /** How its tokens come back: `rate` evenly, `quota` at once, `concurrency` as calls end. */
  readonly kind: LimitKind;
  /** The most the bucket can hold. */
  readonly capacity: number;
  /** Tokens that come back in one period; absent unless the limit is a rate. */
  readonly refill_amount?: number;
  /** The length of a period in seconds; absent unless the limit is a rate. */
  readonly refill_period_seconds?: number;
  /** The time of the reset of a quota or a session, in epoch milliseconds. */
  readonly resets_at_ms?: number;
  /** This time in ISO 8601, with the offset of the zone of the quota. */
  readonly resets_at?: string;
  /** Whole tokens in the bucket; negative in debt. */
  readonly available: number;
  /** Whole tokens asked for. */
  readonly requested: number;
  /** Whether this limit refused the request. */
  readonly exceeded: boolean;
  /** Seconds until the request fits this limit; `null` when it never does. */
  readonly retry_after_seconds: number | null;
  /** Present where that is an estimate: slots come back when calls end. */
  readonly estimated?: true;
}

/** Options of the JSON of a refusal. */
export interface RefusalJsonOptions {
  /** `false`: nothing of other entities, which are often internal. Default true. */
  readonly parents?: boolean;
}

/** The body of a 429 answer. */
export interface RateLimitExceededJson {
  /** Always this text, for clients to test. */
  readonly error: "rate_limit_exceeded";
  /** A sentence for a person. */
  readonly message: string;
  /** Seconds until the same request can succeed; `null` when it never can. */
  readonly retry_after_seconds: number | null;
  /** Time until a retry can succeed, in whole milliseconds. */
  readonly retry_after_ms: number | null;
  /** Every limit that was checked, the entity's own first. */
  readonly limits: readonly LimitStatusJson[];
}

/**
 * At least one limit did not have enough. Nothing was consumed.
 *
 * @example
 * ```ts
 * import { Limit, RateLimitExceeded } from 'zae-limiter';
 * const limit = Limit.perMinute('tpm', 100);
 * const error = new RateLimitExceeded([
 *   { entityId: 'key-1', resource: 'gpt-4', limitName: 'tpm', kind: 'rate', limit,
 *     available: 0, requested: 10, exceeded: true, deficit: 10,
 *     retryAfterSeconds: 6.001, fullAfterSeconds: 60 },
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

  readonly #caller: string | undefined;

  /** Takes all limits that were checked. `entityId`: the caller; else that of the first. */
  constructor(statuses: readonly LimitStatus[], entityId?: string) {
    const violations = statuses.filter((status) => status.exceeded);
    const primary = longestWait(violations);
    if (primary === undefined) {
      throw new ValidationError("statuses", statuses.length, "expected at least one violation");
    }
    super(refusalMessage(statuses));
    this.#caller = entityId;
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

  /** For the `Retry-After` header: whole seconds, rounded up, at least 1, finite. */
  get retryAfterHeader(): string {
    return retryAfterHeader(this.retryAfterSeconds);
  }

  /** Whether the request is larger than a bucket can hold: waiting never helps. */
  get neverFits(): boolean {
    return !Number.isFinite(this.retryAfterSeconds);
  }

  /** Returns the body of a 429 answer. */
  toJSON(options: RefusalJsonOptions = {}): RateLimitExceededJson {
    return refusalJson(this.statuses, options, this.#caller);
  }
}

/** Returns whole seconds for the `Retry-After` header; its maximum when waiting never helps. */
export function retryAfterHeader(retryAfterSeconds: number): string {
  return String(Math.min(HEADER_SECONDS_MAX, Math.max(1, Math.ceil(retryAfterSeconds))));
}

/** Returns the violation with the longest wait; the first of equals. */
export function longestWait(violations: readonly LimitStatus[]): LimitStatus | undefined {
  let longest = violations[0];
  for (const violation of violations) {
    if (longest && violation.retryAfterSeconds > longest.retryAfterSeconds) longest = violation;
  }
  return longest;
}

/** Returns the sentence of a refusal: each exceeded limit once, under the entity that has it. */
export function refusalMessage(statuses: readonly LimitStatus[]): string {
  const violations = statuses.filter((status) => status.exceeded);
  const primary = longestWait(violations);
  if (primary === undefined) return "";
  const limitsOf = new Map<string, string[]>();
  for (const { entityId, resource, limitName } of violations) {
    const bucket = `${entityId}/${resource}`;
    const names = limitsOf.get(bucket);
    if (names === undefined) limitsOf.set(bucket, [limitName]);
    else names.push(limitName);
  }
  const exceeded = [...limitsOf].map(([bucket, names]) => {
    const scope = bucket.endsWith(`/${TOTAL}`) ? " over all resources" : "";
    return `${bucket}: [${names.join(", ")}]${scope}`;
  });
  const advice = Number.isFinite(primary.retryAfterSeconds)
    ? retryAdvice(primary)
    : `the request is larger than the capacity of ${primary.limit.capacity} and can never fit`;
  return `Rate limit exceeded for ${exceeded.join(", ")}, ${advice}`;
}

/**
 * Returns the JSON of a refusal, shared by the error and by the result of `tryAcquire`. `caller`:
 * the entity that called, which may have no limits of its own; else that of the first status.
 */
export function refusalJson(
  statuses: readonly LimitStatus[],
  { parents = true }: RefusalJsonOptions,
  caller: string | undefined = statuses[0]?.entityId,
): RateLimitExceededJson {
  const primary = longestWait(statuses.filter((status) => status.exceeded));
  const retryAfterSeconds = primary?.retryAfterSeconds ?? 0;
  const never = !Number.isFinite(retryAfterSeconds);
  const own = statuses.filter(({ entityId }) => entityId === caller);
  return {
    error: "rate_limit_exceeded",
    message: parents ? refusalMessage(statuses) : ownMessage(own, primary, caller),
    retry_after_seconds: never ? null : retryAfterSeconds,
    retry_after_ms: never ? null : Math.round(retryAfterSeconds * 1000),
    limits: (parents ? statuses : own).map(statusJson),
  };
}

/** Returns the sentence without ancestors: neither their names nor their capacities. */
function ownMessage(
  own: readonly LimitStatus[],
  primary: LimitStatus | undefined,
  caller: string | undefined,
): string {
  if (primary === undefined) return "";
  if (own.includes(primary)) return refusalMessage(own);
  const bucket = own[0] === undefined ? caller : `${own[0].entityId}/${own[0].resource}`;
  const names = own.filter(({ exceeded }) => exceeded).map(({ limitName }) => limitName);
  const limits = names.length === 0 ? "" : `: [${names.join(", ")}]`;
  const advice = Number.isFinite(primary.retryAfterSeconds)
    ? retryAdvice(primary)
    : "the request can never fit";
  return `Rate limit exceeded for ${bucket}${limits}, ${advice}`;
}

function retryAdvice(status: LimitStatus): string {
  const { retryAfterSeconds, estimated } = status;
  // How long slots are held was learned: a hundredth of a second would look like no wait at all.
  const wait = estimated === true ? Math.max(0.1, retryAfterSeconds) : retryAfterSeconds;
  const advice = `retry after ${estimated === true ? "about " : ""}${wait.toFixed(1)}s`;
  const { resetsAtMs } = status;
  if (resetsAtMs === undefined) return advice;
  return `${advice} (resets ${localText(resetZone(status), resetsAtMs)})`;
}

/** Returns how the tokens of a limit come back. */
function returnJson(status: LimitStatus) {
  const { limit, resetsAtMs } = status;
  if (limit.kind === "concurrency") return undefined;
  if (limit.rule === undefined) {
    const { refillAmount, refillPeriodSeconds } = limit;
    return { refill_amount: refillAmount, refill_period_seconds: refillPeriodSeconds };
  }
  if (resetsAtMs === undefined) return undefined;
  return { resets_at_ms: resetsAtMs, resets_at: localIso(resetZone(status), resetsAtMs) };
}

function statusJson(status: LimitStatus): LimitStatusJson {
  const never = !Number.isFinite(status.retryAfterSeconds);
  return {
    entity_id: status.entityId,
    resource: status.resource,
    limit_name: status.limitName,
    kind: status.kind,
    capacity: status.limit.capacity,
    ...returnJson(status),
    available: status.available,
    requested: status.requested,
    exceeded: status.exceeded,
    retry_after_seconds: never ? null : status.retryAfterSeconds,
    ...defined({ estimated: status.estimated }),
  };
}
