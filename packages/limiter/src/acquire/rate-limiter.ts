/// <reference lib="esnext.disposable" preserve="true" />

/** The limiter: the one way from a request to its decision, and what users call. */

import { checkFields, show } from "../domain/check.ts";
import {
  InfrastructureError,
  RateLimiterUnavailable,
  ValidationError,
} from "../domain/errors/errors.ts";
import { answers } from "../domain/errors/in-time.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import { INTERNALS } from "../repository/internals.ts";
import type { DynamoOptions, PostgresOptions, RedisOptions } from "../repository/options.ts";
import { Repository } from "../repository/repository.ts";
import {
  type AcquireRequest,
  type AmountRecord,
  type Amounts,
  type CheckedRequest,
  checkAcquireRequest,
  checkAmounts,
  checkTarget,
  type StatusRequest,
} from "./acquire-request.ts";
import { Acquirer, type Decided } from "./acquirer.ts";
import { Announcer } from "./announcer.ts";
import {
  type Decision,
  errorOf,
  isUndecided,
  leaseOf,
  type NamedDecision,
  type Seen,
  smallestOf,
  statusesOf,
} from "./decision.ts";
import { listen } from "./events.ts";
import { LATE, LIMIT_NAMES, TOTALS, TRY_NOW } from "./internal-names.ts";
import { keepTrying, LateStore, timerOf } from "./late-store.ts";
import type { Lease } from "./lease/lease.ts";
import { LEASE_HOST, type LeaseHost } from "./lease/lease-host.ts";
import { checkedOptions, type RateLimiterOptions, splitOptions } from "./limiter-options.ts";
import type { ObservedCall } from "./observed-call.ts";
import { runWork } from "./run-work.ts";
import { inTurn } from "./waiting/in-turn.ts";
import { WaitingQueues } from "./waiting/waiting-queues.ts";

const PING_TIMEOUT_MS = 1000;

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
  readonly #options: RateLimiterOptions;
  readonly #totals: boolean | undefined;
  /** The store, as long as it has not answered; all fields below are set once it has. */
  #late: LateStore | undefined;
  #repository!: Repository;
  #acquirer!: Acquirer;
  readonly #announcer: Announcer;
  #queues!: WaitingQueues;
  #leave: () => void = () => {};
  #closed = false;

  constructor(repository: Repository, options?: RateLimiterOptions);
  /** @internal */
  constructor(store: Repository | LateStore, options?: RateLimiterOptions);
  constructor(store: Repository | LateStore, options: RateLimiterOptions = {}) {
    if (!(store instanceof Repository || store instanceof LateStore)) {
      const reason = `expected a Repository, got ${show(store)}; RateLimiter.open takes an address`;
      throw new ValidationError("repository", store, reason);
    }
    this.#options = checkedOptions(options);
    this.#totals = options.totals;
    const { events, onWarning } = this.#options;
    const { random } = store instanceof LateStore ? store : store[INTERNALS].records;
    const { timer } = store instanceof LateStore ? store : store[INTERNALS];
    this.#announcer = new Announcer({ limiter: this, timer, random, events, onWarning });
    if (store instanceof LateStore) this.#late = store;
    else this.#begin(store);
  }

  /**
   * Opens a store by its address and makes a limiter on it; see `Repository.open`. With
   * `onUnavailable`, a store that cannot be reached is no error: calls pass degraded (`allow`) or
   * are refused (`block`), each of them tries again, and from the first answer on they are limited.
   */
  static async open<Names extends string = string>(
    url?: string,
    options: DynamoOptions & PostgresOptions & RedisOptions & RateLimiterOptions = {},
  ): Promise<RateLimiter<Names>> {
    const { own, store } = splitOptions(options);
    const open = () => Repository.open(url, store);
    try {
      return new RateLimiter(await open(), own);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      const limiter = new RateLimiter<Names>(new LateStore(open, store, error), own);
      if (own.onUnavailable !== undefined) return limiter;
      keepTrying(error, limiter as unknown as RateLimiter);
      throw error;
    }
  }

  /** Begins to limit: from here on the limiter is as if its store had answered at once. */
  #begin(repository: Repository): void {
    const internals = repository[INTERNALS];
    const { timer, records, buckets, clock } = internals;
    const { events, onWarning } = this.#options;
    this.#repository = repository;
    this.#leave = listen(internals, events, onWarning);
    this.#announcer.reached(records.namespaceId);
    this.#queues = WaitingQueues.of(buckets, clock, timer, records.random);
    this.#acquirer = new Acquirer(internals, this.#options, this.#announcer, this.#queues);
    const late = this.#late;
    this.#late = undefined;
    late?.reached();
  }

  /**
   * The records of the store: entities, limits, namespaces, audit log, buckets, usage. Throws
   * `RateLimiterUnavailable` as long as the store could not be reached since `open`.
   */
  get repository(): Repository {
    if (this.#late !== undefined) throw this.#late.unreached();
    return this.#repository;
  }

  /** Consumes, or throws `RateLimitExceeded`. End the lease by `commit` or `rollback`. */
  acquire(request: AcquireRequest<Names>): Promise<Lease<Names>> {
    // Not `async`: a decision that is made at once needs a promise, and nothing to be resumed.
    const decision = this[TRY_NOW](request);
    if (isUndecided(decision)) return decision.then(leaseOf<Names>);
    return decision.granted ? Promise.resolve(decision.lease) : Promise.reject(errorOf(decision));
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
      return runWork(
        isUndecided(decision) ? await decision : decision,
        request,
        work,
        this.#acquirer,
      );
    }
    const call = this.#announcer.begin(request as AcquireRequest);
    const decision = await this.#observe(request as AcquireRequest, call);
    return call.run(() => runWork(decision as NamedDecision<Names>, request, work, this.#acquirer));
  }

  /** Returns the limits as they are: own entity, then the parents it cascades to. */
  async status(request: StatusRequest): Promise<LimitStatus[]> {
    const seen = await this.#read(request);
    return statusesOf(seen.legs, seen);
  }

  /** Returns the most an acquire could consume now, per limit, of own entity and ancestors. */
  async available(request: StatusRequest): Promise<AmountRecord<Names>> {
    const { legs, balancesMilli } = await this.#read(request);
    return smallestOf(request.entityId, legs, balancesMilli) as AmountRecord<Names>;
  }

  /** Returns the seconds until `needed` would be granted; `Infinity` when it never fits. */
  async timeUntilAvailable(
    request: StatusRequest & { readonly needed: Amounts<Names> },
  ): Promise<number> {
    checkFields("request", request, ["entityId", "resource", "limits", "totals", "needed"]);
    const { needed, ...target } = request;
    const amounts = checkAmounts("needed", needed as Amounts);
    const seen = await this.#read(target, amounts);
    return Math.max(0, ...statusesOf(seen.legs, seen).map((status) => status.retryAfterSeconds));
  }

  /** Whether the store answers in time. A store that fails is `false`, never an error. */
  async isAvailable(options: { timeoutMs?: number } = {}): Promise<boolean> {
    checkFields("options", options ?? {}, ["timeoutMs"]);
    const timeoutMs = options?.timeoutMs ?? PING_TIMEOUT_MS;
    if (this.#closed || !(timeoutMs > 0)) return false;
    return answers(timerOf(this), timeoutMs, async () => {
      await this.#reach();
      await this.repository[INTERNALS].ping(timeoutMs);
    });
  }

  /**
   * Closes the repository, for all its users; on a scoped repository, closes only this limiter.
   * Calls that wait are refused, and so are later calls.
   */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#late !== undefined) return this.#late.close();
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
  async [LIMIT_NAMES](request: StatusRequest): Promise<readonly string[]> {
    const target = checkTarget(request, this.#totals === true);
    await this.#reach();
    return this.#acquirer.limitNames({ ...target, amounts: new Map() });
  }

  /** @internal */
  get [TOTALS](): boolean | undefined {
    return this.#totals;
  }

  /** @internal */
  get [LEASE_HOST](): LeaseHost {
    if (this.#late !== undefined) throw this.#late.unreached();
    return this.#acquirer;
  }

  /** @internal */
  get [LATE](): LateStore | undefined {
    return this.#late;
  }

  get #isClosed(): boolean {
    return this.#closed || this.#repository[INTERNALS].buckets.closed.aborted;
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
    if (this.#late !== undefined) return this.#decideReached(this.#late, request, call);
    try {
      const mayDecide = !this.#closed && this.#queues.isEmpty;
      const now = mayDecide ? this.#acquirer.tryNow(request, call?.acquireId) : undefined;
      if (now === undefined) return this.#decideChecked(request, call);
      return isUndecided(now) ? this.#decideLater(now, request, call) : now;
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  /** Decides once the store answers, or by `onUnavailable` when it still does not. */
  async #decideReached(late: LateStore, request: AcquireRequest, call?: ObservedCall) {
    const checked = checkAcquireRequest(request, this.#totals === true);
    checked.signal?.throwIfAborted();
    const mode = checked.onUnavailable ?? this.#options.onUnavailable;
    const passed = await late.passOrReach(() => this.#reach(), mode, checked, call);
    return passed ?? this.#decide(request, call);
  }

  /** Opens a store that has not answered so far; does nothing once it has. */
  async #reach(): Promise<void> {
    this.#refuseClosed();
    if (this.#late === undefined) return;
    const repository = await this.#late.reach((warning) => this.#announcer.warn(warning));
    this.#refuseClosed();
    if (this.#late !== undefined) this.#begin(repository);
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
    const checked = checkAcquireRequest(request, this.#totals === true);
    checked.signal?.throwIfAborted();
    this.#refuseClosed();
    const queues = this.#queues;
    const decision = inTurn(queues, this.#acquirer, checked, () => this.#isClosed, call);
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

  async #read(
    request: StatusRequest,
    needed: ReadonlyMap<string, number> = new Map(),
  ): Promise<Seen> {
    const target = checkTarget(request, this.#totals === true);
    await this.#reach();
    return this.#acquirer.read({ ...target, amounts: needed, field: "needed" });
  }

  /** Refuses after `close`; stores differ in what they do then, the limiter does not. */
  #refuseClosed(): void {
    if (this.#closed) throw new InfrastructureError("This limiter is closed");
  }
}
