/** Acquires: decides calls, hands out leases and tells what has happened. */

import type { Deadline } from "../base/time.ts";
import type { BucketStore } from "../buckets/bucket-store.ts";
import type { FastOutcome } from "../buckets/fast-path.ts";
import type { Leg } from "../buckets/leg.ts";
import type { RateLimiterUnavailable } from "../domain/errors/errors.ts";
import type { OnUnavailable } from "../domain/errors/unavailability.ts";
import type { BucketName } from "../records/keys.ts";
import type { RepositoryInternals } from "../repository/internals.ts";
import type { AcquireRequest, CheckedRequest, MissingLimits } from "./acquire-request.ts";
import type { AmountsByName } from "./amounts.ts";
import type { Announcer } from "./announcer.ts";
import { consumeMore, type MoreParts } from "./consume-more.ts";
import { ConsumeRounds, type Refused } from "./consume-rounds.ts";
import { isUndecided, type NamedDecision, Refusal, type Seen } from "./decision.ts";
import type { LeaseWarning, LimiterEvent, LimiterWarning } from "./events.ts";
import { FastAcquire, leaseTargetOf } from "./fast-acquire.ts";
import { ActiveLease } from "./lease/active-lease.ts";
import { DegradedLease } from "./lease/degraded-lease.ts";
import type { Granted } from "./lease/holding.ts";
import type { LeaseHost, LeaseTarget } from "./lease/lease-host.ts";
import type { ConsumeTarget, Legs } from "./legs.ts";
import { Outage } from "./outage.ts";
import type { QueueRequest } from "./waiting/queue-state.ts";
import { Warnings } from "./warnings.ts";

export type Decided = NamedDecision<string>;

export interface AcquirerOptions {
  readonly onUnavailable: OnUnavailable | undefined;
  readonly speculativeWrites: boolean | undefined;
  readonly announcer: Announcer;
  readonly onWarning: ((warning: LimiterWarning) => void) | undefined;
  readonly missingLimits: MissingLimits | undefined;
  /** Called with what leases refund, so that waiters learn of it. */
  readonly refunded: LeaseHost["refunded"];
  readonly isAwaited: () => boolean;
  /** Refuses a call that does not wait when the tokens left belong to the queue. */
  readonly refusedByOthers: (
    target: QueueRequest,
    deadline: Deadline,
  ) => Promise<Refusal | undefined>;
}

export class Acquirer implements LeaseHost {
  readonly #internals: RepositoryInternals;
  readonly #options: AcquirerOptions;
  readonly #rounds: ConsumeRounds;
  /** Only buckets in this process have a fast path. */
  readonly #fastAcquire: FastAcquire | undefined;
  readonly #outage: Outage;
  readonly #warnings: Warnings;
  readonly #more: MoreParts;
  /** Refusals for which the store was asked. */
  readonly #asked = new WeakSet<Refusal>();

  constructor(internals: RepositoryInternals, options: AcquirerOptions) {
    this.#internals = internals;
    this.#options = options;
    if (internals.buckets.embedded) {
      this.#fastAcquire = new FastAcquire(internals, options.missingLimits);
    }
    this.#outage = new Outage(internals, options);
    this.#warnings = new Warnings(options.onWarning, options.announcer);
    const onRefunded = (leg: Leg) => options.announcer.refunded(leg);
    this.#rounds = new ConsumeRounds(internals, { ...options, onRefunded });
    this.#more = {
      ...options,
      outage: this.#outage,
      deadline: () => this.deadline(),
      consume: async (target, deadline) => {
        const taken = await this.#rounds.consume(target, undefined, deadline);
        return "granted" in taken ? this.#refusal(taken, taken.local) : taken;
      },
      isLocal: (refusal) => this.isLocal(refusal),
      leaseOf: (target, taken) =>
        taken === undefined ? new DegradedLease() : new ActiveLease(this, target, taken),
    };
  }

  get buckets(): BucketStore {
    return this.#internals.buckets;
  }

  /** Decides on the fast path; `undefined`, with nothing done: use the slow path. */
  attemptNow(
    request: AcquireRequest,
    acquireId?: string,
  ): Decided | Promise<Decided | undefined> | undefined {
    const outcome = this.#fastAcquire?.consume(request);
    if (outcome === undefined) return undefined;
    return isUndecided(outcome)
      ? this.#decidedLater(outcome, request, acquireId)
      : this.#decidedNow(outcome, request, acquireId);
  }

  /** A function of its own: one within `attemptNow` would cost every acquire an allocation. */
  #decidedLater(
    outcome: Promise<FastOutcome | undefined>,
    request: AcquireRequest,
    acquireId?: string,
  ): Promise<Decided | undefined> {
    return outcome.then((later) => later && this.#decidedNow(later, request, acquireId));
  }

  #decidedNow(outcome: FastOutcome, request: AcquireRequest, acquireId?: string): Decided {
    if (!outcome.granted) return this.#refusal(outcome, false);
    const lease = new ActiveLease(this, leaseTargetOf(request, outcome), outcome, acquireId);
    return { granted: true, lease };
  }

  /** Decides, or throws `RateLimiterUnavailable` within the time the store is given. */
  attempt(
    request: CheckedRequest,
    acquireId?: string,
    deadline?: Deadline,
  ): Decided | Promise<Decided> {
    const taken = this.#rounds.consume(request, request.signal, deadline);
    if (!(taken instanceof Promise)) return this.#refusal(taken, taken.local);
    return taken.then((later) => this.#decided(later, request, acquireId));
  }

  #decided(taken: Granted | Refused, request: CheckedRequest, acquireId?: string): Decided {
    if ("granted" in taken) return this.#refusal(taken, taken.local);
    this.#fastAcquire?.remember(taken);
    return { granted: true, lease: new ActiveLease(this, request, taken, acquireId) };
  }

  /** Applies `onUnavailable`: returns an uncounted lease, or throws. */
  unavailable(request: LeaseTarget, cause: RateLimiterUnavailable): Decided {
    this.#outage.pass(request, cause);
    return { granted: true, lease: new DegradedLease() };
  }

  /** Whether cached states refused a call. Known while something listens. */
  isLocal(refusal: Refusal): boolean {
    return !this.#asked.has(refusal);
  }

  /** Returns the end of a call that begins now. */
  deadline(): Deadline {
    return this.#rounds.deadline();
  }

  /** The legs of a call and their balances, without consuming anything. */
  look(target: ConsumeTarget): Promise<Seen> {
    return this.#rounds.look(target);
  }

  consumeMore(
    target: LeaseTarget,
    amounts: AmountsByName,
    acquireId: string | undefined,
  ): Promise<Granted | undefined> {
    return consumeMore(this.#more, target, amounts, acquireId);
  }

  #refusal(seen: Seen, local: boolean): Refusal {
    const refusal = new Refusal(seen);
    if (!local && this.#options.announcer.isHeard) this.#asked.add(refusal);
    return refusal;
  }

  get isHeard(): boolean {
    return this.#options.announcer.isHeard;
  }

  get isAwaited(): boolean {
    return this.#options.isAwaited();
  }

  tell(event: LimiterEvent): void {
    this.#options.announcer.tell(event);
  }

  refunded(bucket: { entityId: string; resource: string }, tokens: AmountsByName): void {
    this.#options.refunded(bucket, tokens);
  }

  /** With `allow` a failed adjustment is a warning instead of an error of the call. */
  adjustmentFailed(request: LeaseTarget, cause: unknown): boolean {
    if (this.#outage.blocks(request)) return false;
    this.warnNotAdjusted(request, cause);
    return true;
  }

  warnNotAdjusted({ entityId, resource }: BucketName, cause: unknown): void {
    this.warn({ kind: "adjustment_failed", entityId, resource, cause });
  }

  warn(warning: LeaseWarning): void {
    this.#warnings.tell(warning);
  }

  checkNames(...names: Parameters<Legs["checkNames"]>): void {
    this.#rounds.legs.checkNames(...names);
  }
}
