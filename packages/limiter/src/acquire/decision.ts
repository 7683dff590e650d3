/** The answers to an acquire. */

import { INSPECT, type InspectStyle, inspected } from "../base/inspect.ts";
import type { Leg } from "../buckets/leg.ts";
import type { Rate } from "../core/bucket.ts";
import { floorDiv } from "../core/integers.ts";
import {
  longestWait,
  RateLimitExceeded,
  type RateLimitExceededJson,
  type RefusalJsonOptions,
  refusalJson,
  refusalMessage,
  retryAfterHeader,
} from "../domain/errors/rate-limit-exceeded.ts";
import type { Limit } from "../domain/limit.ts";
import {
  grantedStatus,
  type LimitCheck,
  type LimitStatus,
  statusOf,
} from "../domain/limit-status.ts";
import type { Lease } from "./lease/lease.ts";

/** Legs and their balances. */
export interface Seen {
  readonly legs: readonly Leg[];
  readonly balancesMilli: readonly (readonly number[])[];
  /** When the store showed the oldest state among them; absent: just now. */
  readonly shownAtMs?: number | undefined;
  /** Whether cached states decided, without a request to the store. */
  readonly local?: boolean;
}

/** The answer of `tryAcquire`. */
export type Decision<Names extends string = string> =
  | { readonly granted: true; readonly lease: Lease<Names> }
  | Refusal;

let readShownAtMs: (refusal: Refusal) => number | undefined;
let readLocal: (refusal: Refusal) => boolean;

/** Returns when the store showed the oldest state that decided; `undefined`: just now. */
export function shownAtMsOf(refusal: Refusal): number | undefined {
  return readShownAtMs(refusal);
}

/** Whether this process refused a call by itself: by cached states, or because others wait. */
export function isLocal(refusal: Refusal): boolean {
  return readLocal(refusal);
}

/** A decision whose lease has the names of the limits in its type. */
export type NamedDecision<Names extends string> =
  | { readonly granted: true; readonly lease: Lease<Names> & { readonly isEnded: boolean } }
  | Refusal;

/**
 * An acquire that did not fit. Nothing was consumed.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:');
 * const request = { entityId: 'key-1', resource: 'gpt-4', limits: ['rpm:1'], consume: { rpm: 1 } };
 * await limiter.acquire(request);
 * const decision = await limiter.tryAcquire(request);
 * if (!decision.granted) {
 *   console.log(decision.violations[0]?.limitName, decision.neverFits); // rpm false
 * }
 * await limiter.close();
 * ```
 */
export class Refusal {
  /** Always `false`, to distinguish a refusal from a grant. */
  readonly granted = false;
  #statuses: readonly LimitStatus[] | Seen;
  readonly #shownAtMs: number | undefined;
  readonly #isLocal: boolean;

  static {
    readShownAtMs = (refusal) => refusal.#shownAtMs;
    readLocal = (refusal) => refusal.#isLocal;
  }

  /** Takes statuses, or the legs they are computed from on first use. */
  constructor(statuses: readonly LimitStatus[] | Seen) {
    this.#statuses = statuses;
    const isSeen = "legs" in statuses;
    this.#shownAtMs = isSeen ? statuses.shownAtMs : undefined;
    this.#isLocal = isSeen ? statuses.local === true : true;
  }

  /** All limits checked: of the entity itself, then of its parents. */
  get statuses(): readonly LimitStatus[] {
    // Built lazily: most callers never read the statuses of a refusal.
    if ("legs" in this.#statuses) {
      this.#statuses = statusesOf(this.#statuses.legs, this.#statuses.balancesMilli);
    }
    return this.#statuses;
  }

  /** Statuses of the limits that were exceeded. */
  get violations(): readonly LimitStatus[] {
    return this.statuses.filter((status) => status.exceeded);
  }

  /** Seconds until the same call can succeed; `Infinity` when it never can. */
  get retryAfterSeconds(): number {
    return longestWait(this.violations)?.retryAfterSeconds ?? 0;
  }

  /** Value of the `Retry-After` header: whole seconds, rounded up, at least 1, finite. */
  get retryAfterHeader(): string {
    return retryAfterHeader(this.retryAfterSeconds);
  }

  /** Whether the request is larger than a bucket can hold: waiting never helps. */
  get neverFits(): boolean {
    return !Number.isFinite(this.retryAfterSeconds);
  }

  /** Returns the body of a 429 answer. */
  toJSON(options: RefusalJsonOptions = {}): RateLimitExceededJson {
    return refusalJson(this.statuses, options);
  }

  /** Returns what `console.log` shows. */
  [INSPECT](...style: InspectStyle): string {
    const { granted, retryAfterSeconds } = this;
    const violations = this.violations.map(
      ({ entityId, limitName, available, requested, limit }) =>
        `${entityId} ${limitName}: ${requested} requested, ${available} of ${limit.capacity} left`,
    );
    const message = refusalMessage(this.statuses);
    return inspected("Refusal", { granted, message, retryAfterSeconds, violations }, style);
  }
}

/** Returns the lease of a grant, or throws the refusal. */
export function leaseOf<Names extends string>(decision: NamedDecision<Names>): Lease<Names> {
  return decision.granted ? decision.lease : thrown(decision);
}

function thrown({ statuses }: Refusal): never {
  throw new RateLimitExceeded(statuses);
}

/** Whether the answer is still pending. Reading a field is faster than `instanceof Promise`. */
export function isUndecided<T>(
  answer: { readonly granted: boolean } | Promise<T>,
): answer is Promise<T> {
  return (answer as { readonly granted?: boolean }).granted === undefined;
}

/** Returns the statuses of all legs, given their balances. */
export function statusesOf(
  legs: readonly Leg[],
  balancesMilli: readonly (readonly number[])[],
): LimitStatus[] {
  return statusesBy(statusOf, legs, balancesMilli);
}

/** Returns the whole tokens of each limit of the first leg that all legs have at least. */
export function smallestOf(
  legs: readonly Leg[],
  balancesMilli: readonly (readonly number[])[],
): Record<string, number> {
  const smallest = new Map<string, number>();
  legs.forEach((leg, legAt) => {
    leg.config.limits.forEach(({ name }, at) => {
      const available = floorDiv(balancesMilli[legAt]?.[at] as number, 1000);
      if (legAt === 0) smallest.set(name, available);
      else if (smallest.has(name)) {
        smallest.set(name, Math.min(smallest.get(name) as number, available));
      }
    });
  });
  return Object.fromEntries(smallest);
}

/** Returns the statuses after a grant: what is left, and nothing is exceeded. */
export function statusesAfter(
  legs: readonly Leg[],
  balancesMilli: readonly (readonly number[])[],
): LimitStatus[] {
  return statusesBy(grantedStatus, legs, balancesMilli);
}

function statusesBy(
  make: (check: LimitCheck, balanceMilli: number, rate: Rate) => LimitStatus,
  legs: readonly Leg[],
  balancesMilli: readonly (readonly number[])[],
): LimitStatus[] {
  // A list that grows by `push` reserves room for seventeen; most calls have one or two.
  const statuses = new Array<LimitStatus>(legs.reduce(countLimits, 0));
  let count = 0;
  for (let legAt = 0; legAt < legs.length; legAt += 1) {
    const { entityId, resource, config, amountsMilli } = legs[legAt] as Leg;
    const balances = balancesMilli[legAt] as readonly number[];
    for (let at = 0; at < config.limits.length; at += 1) {
      const limit = config.limits[at] as Limit;
      const requested = (amountsMilli[at] ?? 0) / 1000;
      const check = { entityId, resource, limit, requested, bypassed: config.bypass === true };
      statuses[count] = make(check, balances[at] as number, limit.rate);
      count += 1;
    }
  }
  return statuses;
}

function countLimits(count: number, { config }: Leg): number {
  return count + config.limits.length;
}
