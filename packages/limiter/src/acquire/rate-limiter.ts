/// <reference lib="esnext.disposable" preserve="true" />

/** The limiter: the one way from a request to its decision, and what users call. */

import { unbreakable } from "../base/listener.ts";
import type { Deadline } from "../base/time.ts";
import { checkFields, show } from "../domain/check.ts";
import {
  InfrastructureError,
  RateLimiterUnavailable,
  ValidationError,
} from "../domain/errors/errors.ts";
import { RateLimitExceeded } from "../domain/errors/rate-limit-exceeded.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import { INTERNALS } from "../repository/internals.ts";
import type { DynamoOptions } from "../repository/options.ts";
import { Repository } from "../repository/repository.ts";
import {
  type AcquireRequest,
  type AmountRecord,
  type Amounts,
  type CheckedRequest,
  checkAcquireRequest,
  checkAmounts,
  checkTarget,
  endAfter,
  type StatusRequest,
} from "./acquire-request.ts";
import { Acquirer, type Decided } from "./acquirer.ts";
import { Announcer } from "./announcer.ts";
import {
  type Decision,
  isUndecided,
  leaseOf,
  type NamedDecision,
  type Seen,
  smallestOf,
  statusesOf,
} from "./decision.ts";
import { listen } from "./events.ts";
import { answers } from "./in-time.ts";
import type { Lease } from "./lease/lease.ts";
import { LEASE_HOST, type LeaseHost } from "./lease/lease-host.ts";
import { checkLimiterOptions, type RateLimiterOptions, splitOptions } from "./limiter-options.ts";
import type { ObservedCall } from "./observed-call.ts";
import { waitForSeveral } from "./waiting/waiting-for-several.ts";
import { WaitingQueues } from "./waiting/waiting-queues.ts";

const PING_TIMEOUT_MS = 1000;

/** Names the method of a limiter that only this package calls. */
export const TRY_NOW = Symbol("zae-limiter.tryNow");

/**
 * Limits calls: several limits at once, with costs that may become known later.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:');
 * await limiter.repository.limits.setSystem(['rpm:100', 'tpd:10000/day']);
 * const answer = await limiter.run(
 *   { entityId: 'key-1', resource: 'gpt-4', consume: { rpm: 1, tpd: 500 } },
 *   async (lease) => {
 *     const used = 320; // what the call really cost
 *     lease.adjust({ tpd: used - 500 });
 *     return 'hello';
 *   },
 * );
 * const left = await limiter.available({ entityId: 'key-1', resource: 'gpt-4' });
 * console.log(answer, left['rpm'], left['tpd']); // hello 99 9680
 * await limiter.close();
 * ```
 *
 * Names of limits may be any text. Where they are given, the compiler checks them.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * const limiter = await RateLimiter.open<'rpm' | 'tpm'>('memory:');
 * await limiter.repository.limits.setSystem(['rpm:100', 'tpm:10000']);
 * const lease = await limiter.acquire({
 *   entityId: 'key-1', resource: 'gpt-4', consume: { rpm: 1, tpm: 500 }, // not rmp
 * });
 * await lease.commit();
 * await limiter.close();
 * ```
 */
export class RateLimiter<Names extends string = string> {
  /** The records of the store: entities, limits, namespaces, audit log, buckets, usage. */
  readonly repository: Repository;
  readonly #acquirer: Acquirer;
  readonly #announcer: Announcer;
  readonly #queues: WaitingQueues;
  readonly #leave: () => void;
  #closed = false;

  constructor(repository: Repository, options: RateLimiterOptions = {}) {
    if (!(repository instanceof Repository)) {
      throw new ValidationError(
        "repository",
        repository,
        `expected a Repository, got ${show(repository)}; RateLimiter.open takes an address`,
      );
    }
    checkLimiterOptions(options);
    this.repository = repository;
    const internals = repository[INTERNALS];
    const { onUnavailable, speculativeWrites, missingLimits } = options;
    const events = options.events && unbreakable("events", options.events);
    const onWarning = options.onWarning && unbreakable("onWarning", options.onWarning);
    this.#leave = listen(internals, events, onWarning);
    const queues = WaitingQueues.of(internals.buckets, internals.clock, internals.timer);
    this.#queues = queues;
    const { timer, records } = internals;
    const { namespaceId, random } = records;
    const reported = { limiter: this, namespaceId, timer, random, events, onWarning };
    const announcer = new Announcer(reported);
    this.#announcer = announcer;
    this.#acquirer = new Acquirer(internals, {
      onUnavailable,
      speculativeWrites,
      missingLimits,
      announcer,
      refunded: (bucket, tokens) => queues.refund(bucket, tokens),
      isAwaited: () => !queues.isEmpty,
      refusedByOthers: (target, deadline) => queues.refusal(target, deadline),
    });
  }

  /** Opens a store by its address and makes a limiter on it; see `Repository.open`. */
  static async open<Names extends string = string>(
    url?: string,
    options: DynamoOptions & RateLimiterOptions = {},
  ): Promise<RateLimiter<Names>> {
    const { own, store } = splitOptions(options);
    return new RateLimiter(await Repository.open(url, store), own);
  }

  /** Consumes, or throws `RateLimitExceeded`. End the lease by `commit` or `rollback`. */
  acquire(request: AcquireRequest<Names>): Promise<Lease<Names>> {
    // Not `async`: a decision that is made at once needs a promise, and nothing to be resumed.
    const decision = this[TRY_NOW](request);
    if (isUndecided(decision)) return decision.then(leaseOf<Names>);
    return decision.granted
      ? Promise.resolve(decision.lease)
      : Promise.reject(new RateLimitExceeded(decision.statuses));
  }

  /** Consumes, or returns why it was refused, without an error. */
  async tryAcquire(request: AcquireRequest<Names>): Promise<Decision<Names>> {
    return this[TRY_NOW](request);
  }

  /**
   * Decides for other parts of this package: without a promise where nothing is waited for. Never
   * throws: an error is a rejected promise.
   *
   * @internal
   */
  [TRY_NOW](request: AcquireRequest<Names>): NamedDecision<Names> | Promise<NamedDecision<Names>> {
    const decision = this.#announcer.hasListeners
      ? this.#observe(request as AcquireRequest)
      : this.#decide(request as AcquireRequest);
    return decision as NamedDecision<Names> | Promise<NamedDecision<Names>>;
  }

  /**
   * Consumes, runs the work, and ends the lease: adjustments are written when the work succeeds.
   * When it throws, `onError` decides, and the error is rethrown; by default everything is
   * refunded. A signal ends the wait for tokens only. Work that was granted runs to its end, and
   * the value it returns is returned, with a warning where its adjustments cannot be written.
   */
  async run<T>(
    request: AcquireRequest<Names>,
    work: (lease: Lease<Names>) => T | Promise<T>,
  ): Promise<T> {
    if (typeof work !== "function") {
      throw new ValidationError("work", work, `expected a function, got ${show(work)}`);
    }
    if (!this.#announcer.hasListeners) {
      const decision = this[TRY_NOW](request);
      return this.#work(isUndecided(decision) ? await decision : decision, request, work);
    }
    const call = this.#announcer.begin(request as AcquireRequest);
    const decision = await this.#observe(request as AcquireRequest, call);
    return call.run(() => this.#work(decision as NamedDecision<Names>, request, work));
  }

  async #work<T>(
    decision: NamedDecision<Names>,
    request: AcquireRequest<Names>,
    work: (lease: Lease<Names>) => T | Promise<T>,
  ): Promise<T> {
    if (!decision.granted) throw new RateLimitExceeded(decision.statuses);
    const { lease } = decision;
    let result: T;
    try {
      result = await work(lease);
    } catch (error) {
      if (!lease.isEnded) await this.#end(lease, request, error);
      throw error;
    }
    try {
      if (!lease.isEnded) await lease.commit();
    } catch (cause) {
      this.#acquirer.warnNotAdjusted(request, cause);
    }
    return result;
  }

  /** Returns the limits as they are: own entity, then the parents it cascades to. */
  async status(request: StatusRequest): Promise<LimitStatus[]> {
    const { legs, balancesMilli } = await this.#read(request);
    return statusesOf(legs, balancesMilli);
  }

  /** Returns the most an acquire could consume now, per limit, of own entity and ancestors. */
  async available(request: StatusRequest): Promise<AmountRecord<Names>> {
    const { legs, balancesMilli } = await this.#read(request);
    return smallestOf(legs, balancesMilli) as AmountRecord<Names>;
  }

  /** Returns the seconds until `needed` would be granted; `Infinity` when it never fits. */
  async timeUntilAvailable(
    request: StatusRequest & { readonly needed: Amounts<Names> },
  ): Promise<number> {
    checkFields("request", request, ["entityId", "resource", "limits", "needed"]);
    const { needed, ...target } = request;
    const amounts = checkAmounts("needed", needed as Amounts, 0);
    const { legs, balancesMilli } = await this.#read(target, amounts);
    return Math.max(
      0,
      ...statusesOf(legs, balancesMilli).map((status) => status.retryAfterSeconds),
    );
  }

  /** Whether the store answers in time. Never throws. */
  async isAvailable(options: { timeoutMs?: number } = {}): Promise<boolean> {
    const timeoutMs = options?.timeoutMs ?? PING_TIMEOUT_MS;
    return !this.#closed && timeoutMs > 0 && answers(this.repository[INTERNALS], timeoutMs);
  }

  /**
   * Closes the repository, for all its users; on a scoped repository, closes only this limiter.
   * Calls that wait are refused, and so are later calls.
   */
  async close(): Promise<void> {
    this.#closed = true;
    this.#queues.wakeAll();
    try {
      await this.repository.close();
    } finally {
      this.#leave();
    }
  }

  /** Closes the limiter at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal */
  get [LEASE_HOST](): LeaseHost {
    return this.#acquirer;
  }

  get #isClosed(): boolean {
    return this.#closed || this.repository[INTERNALS].buckets.closed.aborted;
  }

  /** Ends the lease of work that threw. A failed write must not hide the error of the work. */
  async #end(lease: Lease<Names>, request: AcquireRequest<Names>, error: unknown): Promise<void> {
    if (endAfter(request.onError, error) === "rollback") return lease.rollback();
    await lease.commit().catch((cause) => this.#acquirer.warnNotAdjusted(request, cause));
  }

  /** Decides, and reports the outcome to listeners. */
  #observe(
    request: AcquireRequest,
    call = this.#announcer.begin(request),
  ): Decided | Promise<Decided> {
    return call.watch(() => {
      const decision = this.#decide(request, call);
      return isUndecided(decision)
        ? decision.then((later) => call.decided(later))
        : call.decided(decision);
    });
  }

  /** Decides a request: at once where it is an ordinary call and no other call waits. */
  #decide(request: AcquireRequest, call?: ObservedCall): Decided | Promise<Decided> {
    try {
      const mayDecide = !this.#closed && this.#queues.isEmpty;
      const now = mayDecide ? this.#acquirer.tryNow(request, call?.acquireId) : undefined;
      if (now === undefined) return this.#decideChecked(request, call);
      return isUndecided(now) ? this.#decideLater(now, request, call) : now;
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  async #decideLater(
    now: Promise<Decided | undefined>,
    request: AcquireRequest,
    call: ObservedCall | undefined,
  ): Promise<Decided> {
    return (await now) ?? this.#decideChecked(request, call);
  }

  /** Decides on the slow path, by all that a request may say. */
  #decideChecked(request: AcquireRequest, call?: ObservedCall): Decided | Promise<Decided> {
    const checked = checkAcquireRequest(request);
    checked.signal?.throwIfAborted();
    this.#refuseClosed();
    const decision = this.#inTurn(checked, call);
    return isUndecided(decision) ? this.#answerOf(decision, checked, call) : decision;
  }

  /** Applies `onUnavailable` when the store fails; refunds when the caller has aborted by then. */
  async #answerOf(
    attempt: Promise<Decided>,
    checked: CheckedRequest,
    call?: ObservedCall,
  ): Promise<Decided> {
    const { signal } = checked;
    let decision: Decided;
    try {
      decision = await attempt;
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      call?.unanswered(error);
      decision = this.#acquirer.unavailable(checked, error);
    }
    if (decision.granted && signal?.aborted === true) {
      call?.granted(decision.lease);
      await decision.lease.rollback();
      throw signal.reason;
    }
    return decision;
  }

  /** Attempts an acquire behind the calls that wait already, and waits as long as it may. */
  #inTurn(checked: CheckedRequest, call?: ObservedCall): Decided | Promise<Decided> {
    const queues = this.#queues;
    if (checked.maxWaitMs === 0 && queues.isEmpty) {
      call?.attempt();
      return this.#acquirer.attempt(checked, call?.acquireId);
    }
    const attempt = async (deadline?: Deadline) => {
      call?.attempt();
      return this.#acquirer.attempt(checked, call?.acquireId, deadline);
    };
    const wait = (part: CheckedRequest) => queues.wait(part, attempt, () => this.#isClosed);
    if (checked.maxWaitMs > 0 && checked.also.length === 0) return wait(checked);
    const behindOthers = async () => {
      if (queues.isEmpty) return attempt();
      const deadline = this.#acquirer.deadline();
      return (await queues.refusalOfAny(checked, deadline)) ?? attempt(deadline);
    };
    if (checked.maxWaitMs === 0) return behindOthers();
    return waitForSeveral(this.repository[INTERNALS].timer, checked, behindOthers, wait);
  }

  async #read(
    request: StatusRequest,
    needed: ReadonlyMap<string, number> = new Map(),
  ): Promise<Seen> {
    const target = checkTarget(request);
    this.#refuseClosed();
    return this.#acquirer.read({ ...target, amounts: needed, field: "needed" });
  }

  /** Refuses after `close`; stores differ in what they do then, the limiter does not. */
  #refuseClosed(): void {
    if (this.#closed) throw new InfrastructureError("This limiter is closed");
  }
}
