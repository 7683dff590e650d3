/** The answers to an acquire. */

import { INSPECT, type InspectStyle, inspected } from "../base/inspect.ts";
import type { SeenBalances } from "../buckets/bucket-consumer.ts";
import type { Leg, SeenPeriod } from "../buckets/leg.ts";
import { startOf } from "../buckets/periods.ts";
import type { Rate } from "../core/bucket.ts";
import { floorDiv } from "../core/integers.ts";
import { isCounter } from "../domain/counter.ts";
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
import { TOTAL } from "../domain/names.ts";
import type { BucketName } from "../records/keys.ts";
import { partsAt, type Shares } from "./call-legs.ts";
import type { HoldTimes } from "./hold-times.ts";
import type { Lease } from "./lease/lease.ts";

/** Legs and their balances. */
export interface Seen {
  readonly legs: readonly Leg[];
  readonly shares?: Shares;
  /** The entity that called; absent: that of the first leg. */
  readonly caller?: string;
  readonly balancesMilli: readonly (readonly number[])[];
  readonly periods?: SeenBalances["periods"];
  /** How long slots were held lately. */
  readonly holds?: HoldTimes;
  /** When the store showed the oldest state among them; absent: just now. */
  readonly shownAtMs?: number | undefined;
  /** Whether cached states decided, without a request to the store. */
  readonly local?: boolean;
}

/** A queue, and the call that it refused. */
interface RefusingLine extends BucketName {
  readonly call: { readonly entityId: string };
}

/** The answer of `tryAcquire`. */
export type Decision<Names extends string = string> =
  | { readonly granted: true; readonly lease: Lease<Names> }
  | Refusal;

let readShownAtMs: (refusal: Refusal) => number | undefined;
let readLocal: (refusal: Refusal) => boolean;
let readLine: (refusal: Refusal) => BucketName | undefined;
let readCaller: (refusal: Refusal) => string | undefined;
let readParts: (refusal: Refusal, bucket: BucketName) => readonly number[];

/** Returns when the store showed the oldest state that decided; `undefined`: just now. */
export function shownAtMsOf(refusal: Refusal): number | undefined {
  return readShownAtMs(refusal);
}

/** Whether this process refused a call by itself: by cached states, or because others wait. */
export function isLocal(refusal: Refusal): boolean {
  return readLocal(refusal);
}

/** Returns the entity that called, which may have no limits of its own. */
export function callerOf(refusal: Refusal): string | undefined {
  return readCaller(refusal);
}

/** Returns the parts of a call that consume from a bucket; those of `also` count from 1. */
export function partsOf(refusal: Refusal, bucket: BucketName): readonly number[] {
  return readParts(refusal, bucket);
}

/**
 * Returns the queue that a call waits in for a limit that was exceeded, by the entities of its
 * parts; an ancestor has no queue.
 */
export function lineOf(
  refusal: Refusal,
  { entityId, resource }: BucketName,
  entities: readonly string[],
): BucketName {
  const line = readLine(refusal);
  if (line !== undefined) return line;
  const [part = 0] = partsOf(refusal, { entityId, resource });
  return { entityId: entities[part] ?? entityId, resource };
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
  readonly #seen: Seen | undefined;
  /** The queue that refused the call, where one did. */
  readonly #line: RefusingLine | undefined;

  static {
    readLine = (refusal) => refusal.#line;
    readCaller = (refusal) =>
      refusal.#line?.call.entityId ?? refusal.#seen?.caller ?? refusal.statuses[0]?.entityId;
    readShownAtMs = (refusal) => refusal.#shownAtMs;
    readParts = (refusal, bucket) => {
      const { legs = [], shares } = refusal.#seen ?? {};
      return partsOfBucket(legs, shares, bucket);
    };
    readLocal = (refusal) => refusal.#isLocal;
  }

  /** Takes the statuses of a queue, or the legs they are computed from on first use. */
  constructor(statuses: readonly LimitStatus[] | Seen, line?: RefusingLine) {
    this.#line = line;
    this.#statuses = statuses;
    this.#seen = "legs" in statuses ? statuses : undefined;
    this.#shownAtMs = this.#seen?.shownAtMs;
    this.#isLocal = this.#seen === undefined || this.#seen.local === true;
  }

  /** All limits checked: of the entity itself, then of its parents. */
  get statuses(): readonly LimitStatus[] {
    // Built lazily: most callers never read the statuses of a refusal.
    if ("legs" in this.#statuses) {
      this.#statuses = statusesOf(this.#statuses.legs, this.#statuses);
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
    return refusalJson(this.statuses, options, callerOf(this));
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

function thrown(refusal: Refusal): never {
  throw errorOf(refusal);
}

/** Returns a refusal as an error. */
export function errorOf(refusal: Refusal): RateLimitExceeded {
  return new RateLimitExceeded(refusal.statuses, callerOf(refusal));
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
  seen: SeenBalances & Pick<Seen, "holds">,
): LimitStatus[] {
  return statusesBy(statusOf, legs, seen);
}

/** Returns the parts of a call that consume from a bucket. */
export function partsOfBucket(
  legs: readonly Leg[],
  shares: Shares,
  { entityId, resource }: BucketName,
): readonly number[] {
  if (shares === undefined) return partsAt(shares, 0);
  const at = legs.findIndex((leg) => leg.entityId === entityId && leg.resource === resource);
  return partsAt(shares, at);
}

/**
 * Returns the whole tokens that all legs have at least, of each limit of the entity itself and of
 * the totals that count for it.
 */
export function smallestOf(
  own: string,
  legs: readonly Leg[],
  balancesMilli: readonly (readonly number[])[],
): Record<string, number> {
  const smallest = new Map<string, number>();
  for (const { entityId, resource, config } of legs) {
    if (entityId !== own && resource !== TOTAL) continue;
    for (const { name } of config.limits) smallest.set(name, Number.POSITIVE_INFINITY);
  }
  legs.forEach((leg, legAt) => {
    leg.config.limits.forEach(({ name }, at) => {
      const least = smallest.get(name);
      if (least === undefined) return;
      smallest.set(name, Math.min(least, floorDiv(balancesMilli[legAt]?.[at] as number, 1000)));
    });
  });
  return Object.fromEntries(smallest);
}

/** Returns the statuses after a grant: what is left, and nothing is exceeded. */
export function statusesAfter(legs: readonly Leg[], seen: SeenBalances): LimitStatus[] {
  return statusesBy(grantedStatus, legs, seen);
}

function statusesBy(
  make: (check: LimitCheck, balanceMilli: number, rate: Rate) => LimitStatus,
  legs: readonly Leg[],
  { balancesMilli, periods, holds }: SeenBalances & Pick<Seen, "holds">,
): LimitStatus[] {
  // A list that grows by `push` reserves room for seventeen; most calls have one or two.
  const statuses = new Array<LimitStatus>(legs.reduce(countLimits, 0));
  let count = 0;
  for (let legAt = 0; legAt < legs.length; legAt += 1) {
    const { entityId, resource, config, amountsMilli } = legs[legAt] as Leg;
    const balances = balancesMilli[legAt] as readonly number[];
    const seen = periods?.[legAt];
    for (let at = 0; at < config.limits.length; at += 1) {
      const limit = config.limits[at] as Limit;
      if (isCounter(limit)) continue;
      const requested = (amountsMilli[at] ?? 0) / 1000;
      const balance = balances[at] as number;
      const period = periodOf(limit, seen?.[at], balance);
      const bypassed = config.bypass === true;
      const heldMs = limit.kind === "concurrency" ? holds?.median(legs[legAt] as Leg) : undefined;
      const atMs = limit.schedule === undefined ? undefined : seen?.[at]?.atMs;
      const check = { entityId, resource, limit, requested, bypassed, period, heldMs, atMs };
      statuses[count] = make(check, balance, limit.rate);
      count += 1;
    }
  }
  return statuses;
}

/** Returns the period of a status; `undefined` where the limit is in none. */
function periodOf(
  { rate: { rule } }: Limit,
  seen: SeenPeriod | undefined,
  balanceMilli: number,
): LimitCheck["period"] {
  if (seen === undefined || rule === undefined) return undefined;
  const { endMs, grantedMilli, atMs } = seen;
  const startMs = startOf(rule, endMs);
  return { startMs, endMs, usedMilli: grantedMilli - balanceMilli, atMs };
}

function countLimits(count: number, { config }: Leg): number {
  let counters = 0;
  for (const limit of config.limits) if (isCounter(limit)) counters += 1;
  return count + config.limits.length - counters;
}
