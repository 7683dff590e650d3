/** Decides acquires: consumes all legs of a call or none, and hands out leases. */

import { Deadline } from "../base/time.ts";
import type { ConsumeResult, Outcome, PlainRequest } from "../buckets/bucket-consumer.ts";
import type { BucketStore } from "../buckets/bucket-store.ts";
import type { Leg, LegOutcome, Link } from "../buckets/leg.ts";
import { RateLimiterUnavailable } from "../domain/errors/errors.ts";
import { RateLimitExceeded } from "../domain/errors/rate-limit-exceeded.ts";
import { type OnUnavailable, tooBusy } from "../domain/errors/unavailability.ts";
import type { Limit } from "../domain/limit.ts";
import { CONFIG_LEVELS } from "../domain/precedence.ts";
import type { BucketName } from "../records/keys.ts";
import type { RepositoryInternals } from "../repository/internals.ts";
import {
  type AcquireRequest,
  type AmountsByName,
  type CheckedRequest,
  isPlain,
  type MissingLimits,
} from "./acquire-request.ts";
import type { Announcer } from "./announcer.ts";
import { isLocal, isUndecided, type NamedDecision, Refusal, type Seen } from "./decision.ts";
import type { LeaseWarning, LimiterEvent } from "./events.ts";
import { inTime } from "./in-time.ts";
import { ActiveLease } from "./lease/active-lease.ts";
import { DegradedLease } from "./lease/degraded-lease.ts";
import type { Granted } from "./lease/holding.ts";
import type { LeaseHost, LeaseTarget } from "./lease/lease-host.ts";
import { type CallLegs, type ConsumeTarget, isMissing, Legs } from "./legs.ts";
import type { ObservedCall } from "./observed-call.ts";
import type { QueueRequest } from "./waiting/queue-state.ts";

export type Decided = NamedDecision<string>;

export interface AcquirerOptions {
  readonly onUnavailable: OnUnavailable | undefined;
  readonly speculativeWrites: boolean | undefined;
  readonly announcer: Announcer;
  readonly missingLimits: MissingLimits | undefined;
  /** Called with tokens that leases refund, so that waiters learn of them. */
  readonly refunded: LeaseHost["refunded"];
  readonly isAwaited: () => boolean;
  /** Refuses a call that does not wait when the tokens left belong to the queue. */
  readonly refusedByOthers: (
    target: QueueRequest,
    deadline: Deadline,
  ) => Promise<Refusal | undefined>;
}

/** A consume of all legs that was started. */
interface Round {
  readonly legs: readonly Leg[];
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
  readonly #options: AcquirerOptions;
  readonly #legs: Legs;
  readonly #ignoresMissing: boolean;
  readonly #onRefunded: (leg: Leg) => void;

  constructor(internals: RepositoryInternals, options: AcquirerOptions) {
    this.#internals = internals;
    this.#options = options;
    this.#legs = new Legs(internals, options.missingLimits);
    this.#ignoresMissing = options.missingLimits === "ignore";
    this.#onRefunded = (leg) => options.announcer.refunded(leg);
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
    const outcome = buckets.tryNow(plain, resolver.cache.generation, ignoresMissing);
    if (outcome === undefined) return undefined;
    resolver.cache.countHits(CONFIG_LEVELS.length);
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
    const consumed = this.#consume(request, request.signal, deadline);
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
    const { legs } = await this.#legsOf(target, deadline, false);
    return { legs, balancesMilli: await this.buckets.read(legs, { deadline }) };
  }

  /** Applies `onUnavailable`: returns an uncounted lease, or throws. */
  unavailable(request: LeaseTarget, cause: RateLimiterUnavailable): Decided {
    this.#passOrThrow(request, cause);
    return { granted: true, lease: new DegradedLease() };
  }

  /** Returns the end of a call that begins now. */
  deadline(): Deadline {
    return new Deadline(this.#internals.timer, this.#internals.timeoutMs);
  }

  #consume(
    target: ConsumeTarget,
    signal?: AbortSignal,
    deadline: Deadline = this.deadline(),
  ): Refused | Promise<Granted | Refused> {
    const legs = this.#legs.now(target);
    if (isMissing(legs)) return this.#consumeInRounds(target, signal, deadline, undefined);
    const round = this.#begin(legs, signal, deadline);
    const { result } = round;
    const isRefused = !(result instanceof Promise) && result.outcome === "refused";
    if (isRefused && !(result.withoutBucket ?? []).some(isCascading)) {
      return refused(round.legs, result);
    }
    return this.#consumeInRounds(target, signal, deadline, round);
  }

  /** Repeats the consume while limits or links were outdated; the first round may have begun. */
  async #consumeInRounds(
    target: ConsumeTarget,
    signal: AbortSignal | undefined,
    deadline: Deadline,
    begun: Round | undefined,
  ): Promise<Granted | Refused> {
    let round = begun;
    let isOutdated = false;
    for (let rounds = 0; rounds < ROUNDS_MAX; rounds += 1) {
      round ??= this.#begin(await this.#legsOf(target, deadline, isOutdated), signal, deadline);
      const { legs } = round;
      const result = await round.result;
      round = undefined;
      if (result.outcome === "granted") {
        const { legs: outcomes } = result;
        this.#see(legs, (at) => (outcomes[at] as LegOutcome).link, true);
        return { legs, outcomes };
      }
      if (result.outcome === "refused") {
        const unsure = (result.withoutBucket ?? []).filter(isCascading);
        if (await this.#legs.haveMoved(unsure, deadline)) continue;
        return refused(legs, result);
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

  #begin(call: CallLegs, signal: AbortSignal | undefined, deadline: Deadline): Round {
    const { legs } = call;
    const result = this.buckets.consume(legs, {
      deadline,
      signal,
      speculative: this.#options.speculativeWrites !== false,
      onRefunded: this.#onRefunded,
      known: call.untilMs > 0 ? call : undefined,
    });
    return { legs, result };
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
    const { announcer } = this.#options;
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
      const target = { entityId, resource, limits, missingLimits, amounts };
      call?.attempt();
      const deadline = this.deadline();
      const consumed =
        (await this.#options.refusedByOthers(target, deadline)) ??
        (await this.#consume(target, undefined, deadline));
      if (!("granted" in consumed)) return consumed;
      const refusal = consumed instanceof Refusal ? consumed : new Refusal(consumed);
      call?.refused(refusal, isLocal(refusal));
      throw new RateLimitExceeded(refusal.statuses);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      call?.unanswered(error);
      this.#passOrThrow(lease, error);
      return undefined;
    }
  }

  get hasListeners(): boolean {
    return this.#options.announcer.hasListeners;
  }

  get isAwaited(): boolean {
    return this.#options.isAwaited();
  }

  emit(event: LimiterEvent): void {
    this.#options.announcer.emit(event);
  }

  refunded(bucket: BucketName, tokens: AmountsByName): void {
    this.#options.refunded(bucket, tokens);
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
    this.#options.announcer.warn(warning);
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

/** Returns the lease target; the other fields of the request apply to its lease too. */
function leaseTargetOf(request: AcquireRequest, outcome: Outcome): LeaseTarget {
  const { limits, onUnavailable, missingLimits } = request;
  if ((limits ?? onUnavailable ?? missingLimits) === undefined) return outcome;
  const { entityId, resource } = outcome;
  // `isPlain` lets only checked lists of limits pass.
  const given = limits as readonly Limit[] | undefined;
  return { entityId, resource, limits: given, onUnavailable, missingLimits };
}

/** Whether an entity cascades by a link that may have changed. */
function isCascading({ link, linkIsFresh }: Leg): boolean {
  return link.cascade && !linkIsFresh;
}

function refused(
  legs: readonly Leg[],
  { balancesMilli, local, shownAtMs }: Extract<ConsumeResult, { outcome: "refused" }>,
): Refused {
  return { granted: false, legs, balancesMilli, local, shownAtMs };
}
