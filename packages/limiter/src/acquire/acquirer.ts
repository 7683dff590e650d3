/** Decides acquires: consumes all legs of a call or none, and hands out leases. */

import { Deadline, type Timer } from "../base/time.ts";
import type { ConsumeResult, Outcome, PlainRequest } from "../buckets/bucket-consumer.ts";
import type { BucketStore } from "../buckets/bucket-store.ts";
import {
  type Adjustment,
  isWatched,
  type Leg,
  type LegOutcome,
  type Link,
} from "../buckets/leg.ts";
import { RateLimiterUnavailable } from "../domain/errors/errors.ts";
import { inTime } from "../domain/errors/in-time.ts";
import { tooBusy } from "../domain/errors/unavailability.ts";
import { TOTAL } from "../domain/names.ts";
import { SLOTS_PER_RESOLUTION } from "../records/config/config-resolver.ts";
import type { BucketName } from "../records/keys.ts";
import type { RepositoryInternals } from "../repository/internals.ts";
import {
  type AcquireRequest,
  type AmountsByName,
  type CheckedRequest,
  isPlain,
} from "./acquire-request.ts";
import type { Announcer } from "./announcer.ts";
import type { CallLegs } from "./call-legs.ts";
import {
  errorOf,
  isLocal,
  isUndecided,
  type NamedDecision,
  Refusal,
  type Seen,
} from "./decision.ts";
import type { LeaseWarning, LimiterEvent } from "./events.ts";
import { HoldTimes } from "./hold-times.ts";
import { ActiveLease } from "./lease/active-lease.ts";
import { DegradedLease } from "./lease/degraded-lease.ts";
import { type Granted, hasEntry } from "./lease/holding.ts";
import { type LeaseHost, type LeaseTarget, leaseTargetOf, namesTotal } from "./lease/lease-host.ts";
import { type ConsumeTarget, isMissing, Legs } from "./legs.ts";
import type { RateLimiterOptions } from "./limiter-options.ts";
import type { ObservedCall } from "./observed-call.ts";
import type { QueuedCall } from "./waiting/queue-line.ts";

export type Decided = NamedDecision<string>;

/** The queues of calls that wait for tokens. */
export interface AcquirerQueues {
  /** Whether no call waits. */
  readonly isEmpty: boolean;
  /** Reports tokens that a lease refunds, so that waiters learn of them. */
  refund(bucket: BucketName, tokens: AmountsByName): void;
  /** Refuses a call that does not wait when the tokens left belong to the queue. */
  refusal(target: QueuedCall, deadline: Deadline): Promise<Refusal | undefined>;
}

/** A consume of all legs that was started. */
interface Round {
  readonly call: CallLegs;
  readonly result: ConsumeResult | Promise<ConsumeResult>;
}

/** A call that was refused: its legs and their balances. */
interface Refused extends Seen {
  readonly granted: false;
}

/** Maximum number of consumes when limits or links turn out to be outdated. */
const ROUNDS_MAX = 4;

export class Acquirer implements LeaseHost {
  readonly #internals: RepositoryInternals;
  readonly #options: RateLimiterOptions;
  readonly #announcer: Announcer;
  readonly #queues: AcquirerQueues;
  readonly #legs: Legs;
  readonly #ignoresMissing: boolean;
  readonly #onRefunded: (leg: Leg) => void;
  readonly #holds = new HoldTimes();

  constructor(
    internals: RepositoryInternals,
    options: RateLimiterOptions,
    announcer: Announcer,
    queues: AcquirerQueues,
  ) {
    this.#internals = internals;
    this.#options = options;
    this.#announcer = announcer;
    this.#queues = queues;
    this.#legs = new Legs(internals, options.missingLimits);
    this.#ignoresMissing = options.missingLimits === "ignore";
    this.#onRefunded = (leg) => announcer.refunded(leg);
  }

  get buckets(): BucketStore {
    return this.#internals.buckets;
  }

  /** Decides an ordinary call at once; `undefined`, with nothing done: use `attempt`. */
  tryNow(
    request: AcquireRequest,
    acquireId?: string,
  ): Decided | Promise<Decided | undefined> | undefined {
    if (!isPlain(request)) return undefined;
    const { missingLimits } = request;
    const ignoresMissing =
      missingLimits === undefined ? this.#ignoresMissing : missingLimits === "ignore";
    const { buckets, resolver } = this.#internals;
    // `isPlain` lets only checked lists of limits pass.
    const plain = request as PlainRequest;
    const totals = request.totals ?? this.#options.totals === true;
    const outcome = buckets.tryNow(plain, resolver.cache.generation, ignoresMissing, totals);
    if (outcome === undefined) return undefined;
    resolver.cache.countHits(SLOTS_PER_RESOLUTION);
    return isUndecided(outcome)
      ? this.#decidedLater(outcome, request, acquireId)
      : this.#decidedNow(outcome, request, acquireId);
  }

  // Not inside `tryNow`, in which the closure would cost every acquire an allocation.
  #decidedLater(
    outcome: Promise<Outcome | undefined>,
    request: AcquireRequest,
    acquireId?: string,
  ): Promise<Decided | undefined> {
    return outcome.then((later) => later && this.#decidedNow(later, request, acquireId));
  }

  #decidedNow(outcome: Outcome, request: AcquireRequest, acquireId?: string): Decided {
    if (!outcome.granted) return new Refusal(outcome);
    const lease = new ActiveLease(this, leaseTargetOf(request, outcome), outcome, acquireId);
    return { granted: true, lease };
  }

  /**
   * Decides, or throws `RateLimiterUnavailable` within the time the store is given; no promise
   * where cached states refuse the call.
   */
  attempt(
    request: CheckedRequest,
    acquireId?: string,
    deadline?: Deadline,
  ): Decided | Promise<Decided> {
    const consumed = this.#consume(request, deadline);
    if (!(consumed instanceof Promise)) return new Refusal(consumed);
    return consumed.then((later) =>
      "granted" in later
        ? new Refusal(later)
        : { granted: true, lease: new ActiveLease(this, request, later, acquireId) },
    );
  }

  /** Returns the legs of a call and their balances, and consumes nothing. */
  async read(target: ConsumeTarget): Promise<Seen> {
    const deadline = this.deadline();
    const { legs, shares } = await this.#legsOf(target, deadline, false);
    const { balancesMilli, periods } = await this.buckets.read(legs, { deadline });
    return { legs, shares, balancesMilli, periods, holds: this.#holds };
  }

  /** Returns the names of the limits of an entity, and of the totals that count for it. */
  async limitNames(target: ConsumeTarget): Promise<readonly string[]> {
    const { legs } = await this.#legsOf(target, this.deadline(), false);
    const own = legs.filter(
      ({ entityId, resource }) => entityId === target.entityId || resource === TOTAL,
    );
    return [...new Set(own.flatMap(({ config }) => config.limits.map(({ name }) => name)))];
  }

  /** Applies `onUnavailable`: returns an uncounted lease, or throws. */
  unavailable(request: LeaseTarget, cause: RateLimiterUnavailable): Decided {
    this.#passOrThrow(request, cause);
    return { granted: true, lease: new DegradedLease() };
  }

  get timer(): Timer {
    return this.#internals.timer;
  }

  /** Returns the end of a call that begins now. */
  deadline(): Deadline {
    return new Deadline(this.#internals.timer, this.#internals.timeoutMs);
  }

  #consume(
    target: ConsumeTarget,
    deadline: Deadline = this.deadline(),
  ): Refused | Promise<Granted | Refused> {
    if (target.amountsFor !== undefined) return this.#consumeInRounds(target, deadline, undefined);
    const legs = this.#legs.now(target);
    if (isMissing(legs)) return this.#consumeInRounds(target, deadline, undefined);
    const round = this.#begin(target, legs, deadline);
    const { result } = round;
    const isRefused = !(result instanceof Promise) && result.outcome === "refused";
    if (isRefused && !(result.withoutBucket ?? []).some(isCascading)) {
      return refused(target, round.call, result, this.#holds);
    }
    return this.#consumeInRounds(target, deadline, round);
  }

  /** Repeats the consume while limits or links were outdated; the first round may have begun. */
  async #consumeInRounds(
    target: ConsumeTarget,
    deadline: Deadline,
    begun: Round | undefined,
  ): Promise<Granted | Refused> {
    let round = begun;
    let isOutdated = false;
    for (let rounds = 0; rounds < ROUNDS_MAX; rounds += 1) {
      round ??= this.#begin(target, await this.#legsOf(target, deadline, isOutdated), deadline);
      const { call } = round;
      const { legs, shares } = call;
      const result = await round.result;
      round = undefined;
      if (result.outcome === "granted") {
        const { legs: outcomes } = result;
        this.#see(legs, (at) => (outcomes[at] as LegOutcome).link, true);
        if (legs.some(isWatched)) this.#internals.alerts.granted(legs, outcomes);
        return { legs, shares, outcomes, heldFromMs: this.#heldFrom(outcomes) };
      }
      if (result.outcome === "refused") {
        const unsure = (result.withoutBucket ?? []).filter(isCascading);
        if (await this.#legs.haveMoved(unsure, deadline)) continue;
        return refused(target, call, result, this.#holds);
      }
      if (result.outcome === "relinked") {
        this.#see(legs, (at) => result.links[at] as Link, false);
      } else {
        isOutdated = true;
        this.#internals.resolver.cache.clear();
      }
    }
    throw tooBusy("The limits changed too often to be applied in time");
  }

  #begin({ signal, maxWaitMs = 0 }: ConsumeTarget, call: CallLegs, deadline: Deadline): Round {
    const { legs } = call;
    const result = this.buckets.consume(legs, {
      deadline,
      signal,
      speculative: this.#options.speculativeWrites !== false,
      waits: maxWaitMs > 0,
      onRefunded: this.#onRefunded,
      known: call.untilMs > 0 ? call : undefined,
    });
    return { call, result };
  }

  #see(legs: readonly Leg[], linkAt: (at: number) => Link, isShown: boolean): void {
    legs.forEach(({ entityId, resource }, at) => {
      this.#legs.see(entityId, resource, linkAt(at), isShown);
    });
  }

  #legsOf(target: ConsumeTarget, deadline: Deadline, forced: boolean): Promise<CallLegs> {
    const legs = this.#legs.of(target, deadline, forced);
    // A store in this process can only wait for locks, and ends that wait by itself.
    return this.buckets.embedded ? legs : inTime(this.#internals.timer, deadline, legs);
  }

  /** Consumes more for a lease that is open, behind calls that wait: `lease.consume`. */
  async consumeMore(
    target: LeaseTarget,
    amounts: AmountsByName,
    acquireId: string | undefined,
  ): Promise<Granted | undefined> {
    const announcer = this.#announcer;
    if (!announcer.hasListeners) return this.#consumeMore(target, amounts);
    const { entityId, resource } = target;
    const request = { entityId, resource, consume: Object.fromEntries(amounts) };
    const call = announcer.begin(request, acquireId);
    return call.watch(async () => {
      const granted = await this.#consumeMore(target, amounts, call);
      const isCounted = granted !== undefined;
      call.granted(isCounted ? new ActiveLease(this, target, granted) : new DegradedLease());
      return granted;
    });
  }

  /** Returns the grant; `undefined` when the store cannot answer and calls may pass. */
  async #consumeMore(
    lease: LeaseTarget,
    amounts: AmountsByName,
    call?: ObservedCall,
  ): Promise<Granted | undefined> {
    try {
      const { entityId, resource, limits, missingLimits } = lease;
      const totals = (lease.totals ?? this.#options.totals === true) && !namesTotal(lease);
      const target = { entityId, resource, limits, missingLimits, amounts, totals };
      call?.attempt();
      const deadline = this.deadline();
      const consumed =
        (await this.#queues.refusal(target, deadline)) ?? (await this.#consume(target, deadline));
      if (!("granted" in consumed)) return consumed;
      const refusal = consumed instanceof Refusal ? consumed : new Refusal(consumed);
      call?.refused(refusal, isLocal(refusal));
      throw errorOf(refusal);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      call?.unanswered(error);
      this.#passOrThrow(lease, error);
      return undefined;
    }
  }

  get hasListeners(): boolean {
    return this.#announcer.hasListeners;
  }

  get isAwaited(): boolean {
    return !this.#queues.isEmpty;
  }

  emit(event: LimiterEvent): void {
    this.#announcer.emit(event);
  }

  adjusted(adjustment: Adjustment): void {
    if (isWatched(adjustment)) this.#internals.alerts.adjusted(adjustment);
  }

  held(bucket: BucketName, fromMs: number): void {
    this.#holds.add(bucket, this.timer.nowMs() - fromMs);
  }

  #heldFrom(outcomes: readonly LegOutcome[]): number | undefined {
    return outcomes.some(hasEntry) ? this.timer.nowMs() : undefined;
  }

  refunded(bucket: BucketName, tokens: AmountsByName): void {
    this.#queues.refund(bucket, tokens);
  }

  /** Warns and returns true under `allow`; false: the caller must throw the cause. */
  adjustmentFailed(request: LeaseTarget, cause: unknown): boolean {
    if (this.#isBlocking(request)) return false;
    this.warnNotAdjusted(request, cause);
    return true;
  }

  warnNotAdjusted({ entityId, resource }: BucketName, cause: unknown): void {
    this.warn({ kind: "adjustment_failed", entityId, resource, cause });
  }

  warn(warning: LeaseWarning): void {
    this.#announcer.warn(warning);
  }

  checkNames(...names: Parameters<Legs["checkNames"]>): void {
    this.#legs.checkNames(...names);
  }

  /** Lets a call pass uncounted that the store could not answer, or throws. */
  #passOrThrow(request: LeaseTarget, error: RateLimiterUnavailable): void {
    if (!this.#isBlocking(request)) return;
    // The context comes last in a message, and more of it is known here.
    const message = error.message.replace(` [stack=${error.stackName}]`, "");
    throw new RateLimiterUnavailable(message, {
      cause: error.cause ?? error,
      ...(error.reason === undefined ? {} : { reason: error.reason }),
      nothingWritten: error.nothingWritten,
      stackName: this.#internals.storeName,
      entityId: request.entityId,
      resource: request.resource,
    });
  }

  /** Whether `onUnavailable` blocks: of the call, else of the limiter, else as stored. */
  #isBlocking(request: LeaseTarget): boolean {
    const mode =
      request.onUnavailable ??
      this.#options.onUnavailable ??
      this.#internals.onUnavailable ??
      this.#internals.resolver.cache.lastOnUnavailable;
    return mode !== "allow";
  }
}

/** Whether an entity cascades by a link that may have changed. */
function isCascading({ link, linkIsFresh }: Leg): boolean {
  return link.cascade && !linkIsFresh;
}

function refused(
  { entityId: caller }: ConsumeTarget,
  { legs, shares }: CallLegs,
  { balancesMilli, periods, local, shownAtMs }: Extract<ConsumeResult, { outcome: "refused" }>,
  holds: HoldTimes,
): Refused {
  return { granted: false, legs, shares, caller, balancesMilli, periods, holds, local, shownAtMs };
}
