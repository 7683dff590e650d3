/**
 * Fair waiting. Calls for one entity and resource share one queue per process: the head asks the
 * store when the bucket should have enough, and the others make no calls until the bucket should
 * have enough for them too. Small requests therefore cannot starve a large one ahead of them.
 */

import { type Random, systemRandom } from "../../base/random.ts";
import type { Clock, Deadline, Timer } from "../../base/time.ts";
import { onAdded } from "../../buckets/added-tokens.ts";
import type { BucketStore } from "../../buckets/bucket-store.ts";
import { InfrastructureError, RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import { inTime } from "../../domain/errors/in-time.ts";
import type { LimitStatus } from "../../domain/limit-status.ts";
import { bucketId } from "../../records/keys.ts";
import type { AmountsByName } from "../acquire-request.ts";
import { partsOf, type Refusal } from "../decision.ts";
import { type ActiveLease, PARTS_OF, SHOWN_AT_MS } from "../lease/active-lease.ts";
import type { Lease } from "../lease/lease.ts";
import { onAbort, untilAborted } from "./aborts.ts";
import { linesOf, type QueuedCall, type QueueLine, scarcestOf, statusesOn } from "./queue-line.ts";
import { isTooLate, type Waiter, WaitingQueue } from "./waiting-queue.ts";

/** Timers take at most 2^31 milliseconds; a longer sleep is split. */
const SLEEP_MS_MAX = 86_400_000;
/** As long as limits are cached, so changes by other processes are noticed. */
const ASK_MS_MAX = 60_000;
/** Milliseconds within which processes that wait for the same edge ask, instead of all at once. */
const EDGE_JITTER_MS = 100;
/** The head asks for a slot within this time, and not more often. */
const SLOT_MS_MAX = 1000;
const SLOT_MS_MIN = 50;
/** Requests that wait at a time, in all queues of a store; a waiter takes some 6 KB. */
const WAITERS_MAX = 10_000;

type Grant = {
  readonly granted: true;
  readonly lease: Pick<Lease, "statuses"> &
    Partial<Pick<ActiveLease, typeof SHOWN_AT_MS | typeof PARTS_OF>>;
};
/** Throws `RateLimiterUnavailable` where the store cannot answer; then the queue fails with it. */
type Attempt<G> = () => Promise<G | Refusal>;

/** One set of queues per bucket store, shared by all its limiters. */
const queuesOfStores = new WeakMap<BucketStore, WaitingQueues>();

export class WaitingQueues {
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #random: Random;
  readonly #queues = new Map<string, WaitingQueue>();
  /** Queues whose requests consume from a bucket, by its name. */
  readonly #heardOf = new Map<string, Set<WaitingQueue>>();
  #size = 0;
  #tickets = 0;

  constructor(clock: Clock, timer: Timer, random: Random = systemRandom) {
    this.#clock = clock;
    this.#timer = timer;
    this.#random = random;
  }

  /** Returns the queues of a store; all limiters on it share them. */
  static of(
    buckets: BucketStore,
    clock: Clock,
    timer: Timer,
    random: Random = systemRandom,
  ): WaitingQueues {
    const known = queuesOfStores.get(buckets);
    if (known !== undefined) return known;
    const queues = new WaitingQueues(clock, timer, random);
    queuesOfStores.set(buckets, queues);
    onAdded(buckets, (bucket, tokens) => queues.refund(bucket, tokens));
    buckets.closed.addEventListener("abort", () => queues.wakeAll(), { once: true });
    return queues;
  }

  get isEmpty(): boolean {
    return this.#queues.size === 0;
  }

  /** How many requests wait, in all queues. */
  get size(): number {
    return this.#size;
  }

  /** Wakes all waiters, so that those of a closed limiter or store end. */
  wakeAll(): void {
    for (const queue of this.#queues.values()) queue.wakeAll();
  }

  /** Returns whether requests wait in one of the queues of a call. */
  areAhead(lines: readonly QueueLine[]): boolean {
    return lines.some((line) => this.#queues.has(bucketId(line)));
  }

  /**
   * Refuses a call that does not wait when the tokens left belong to one of its queues: it is
   * granted only where the balance covers all waiters too.
   */
  async refusal(call: QueuedCall, deadline: Deadline): Promise<Refusal | undefined> {
    if (this.isEmpty) return undefined;
    const isShort = ({ violations }: Refusal) => violations.length > 0;
    for (const line of linesOf(call)) {
      const known = await this.#behindAll(line, isShort, call.signal, deadline);
      if (known !== undefined && isShort(known)) return known;
    }
    return undefined;
  }

  /** Notifies the queues of a bucket that this process has refunded tokens to it. */
  refund(
    bucket: { readonly entityId: string; readonly resource: string },
    back: AmountsByName,
  ): void {
    const name = bucketId(bucket);
    const [nowMs, timerMs] = [this.#clock(), this.#timer.nowMs()];
    const own = this.#queues.get(name);
    own?.refund(name, back, nowMs, timerMs);
    for (const queue of this.#heardOf.get(name) ?? []) {
      if (queue !== own) queue.refund(name, back, nowMs, timerMs);
    }
  }

  /**
   * Asks until the request is granted. Returns the refusal at once when the wait would exceed
   * `maxWaitMs`, when too many requests wait already, or when another queue of the call is the
   * longer wait. Throws the reason of an aborted signal.
   */
  async wait<G extends Grant>(
    request: QueueLine,
    maxWaitMs: number,
    attempt: Attempt<G>,
    isClosed: () => boolean,
  ): Promise<G | Refusal> {
    const until = this.#timer.nowMs() + maxWaitMs;
    // Calls that come while this one asks the store are behind it.
    this.#tickets += 1;
    const ticket = this.#tickets;
    const isInVain = (refusal: Refusal) => isTooLate(refusal, this.#timer.nowMs(), until);
    const known = await this.#behindAll(request, isInVain, request.call.signal);
    if (known !== undefined && isInVain(known)) return known;
    if (needsNoWait(request, known)) {
      const decision = await attempt();
      if (decision.granted) return decision;
    }
    if (this.#size >= WAITERS_MAX) return known ?? attempt();
    const waiter: Waiter = {
      request,
      isClosed,
      until,
      ticket,
      refusal: undefined,
      failure: undefined,
      judged: known !== undefined,
      restsUntilMs: undefined,
      givenBefore: new Map(),
      wake: () => {},
    };
    return this.#standInLine(bucketId(request), waiter, attempt);
  }

  /**
   * Returns the queue's answer for a new request. A stale answer does not refuse: the head asks
   * again, once for all requests that arrive meanwhile; if the store fails, they fail with it.
   */
  async #behindAll(
    request: QueueLine,
    refuses: (known: Refusal) => boolean,
    signal: AbortSignal | undefined,
    deadline?: Deadline,
  ): Promise<Refusal | undefined> {
    for (;;) {
      const queue = this.#queues.get(bucketId(request));
      const known = queue?.behindAll(request, this.#clock());
      if (queue === undefined || known === undefined) return undefined;
      if (!refuses(known) || !queue.isStale(this.#clock())) return known;
      // A head that was refused for another reason leaves without an answer: the next one asks.
      const failure = await untilAborted(signal, () => {
        const heard = queue.heardAgain();
        return deadline === undefined ? heard : inTime(this.#timer, deadline, heard);
      });
      if (failure !== undefined) throw failure;
    }
  }

  async #standInLine<G extends Grant>(
    name: string,
    waiter: Waiter,
    attempt: Attempt<G>,
  ): Promise<G | Refusal> {
    const { signal } = waiter.request.call;
    const queue = this.#queues.get(name) ?? new WaitingQueue();
    this.#queues.set(name, queue);
    queue.join(waiter);
    this.#size += 1;
    const end = signal && onAbort(signal, () => waiter.wake());
    try {
      for (;;) {
        const ended = await this.#turn(queue, waiter);
        if (ended !== undefined) return ended;
        const decision = await this.#ask(queue, waiter, attempt);
        if (decision !== undefined) return decision;
      }
    } finally {
      end?.();
      queue.leave(waiter);
      this.#size -= 1;
      if (queue.isEmpty) this.#remove(name, queue);
    }
  }

  /** Sleeps until this waiter is to ask; returns the refusal when its turn comes too late. */
  async #turn(queue: WaitingQueue, waiter: Waiter): Promise<Refusal | undefined> {
    for (;;) {
      if (waiter.failure !== undefined) throw waiter.failure;
      if (waiter.refusal !== undefined) return waiter.refusal;
      if (queue.isCalled(waiter)) return undefined;
      const nowMs = this.#timer.nowMs();
      const sleepMs =
        waiter.restsUntilMs === undefined
          ? Math.min(waiter.until - nowMs, queue.sleepMs(waiter, this.#clock()))
          : waiter.restsUntilMs - nowMs;
      if (sleepMs > 0) await this.#sleep(waiter, sleepMs);
      else this.#wakeUp(queue, waiter);
    }
  }

  /**
   * Handles the end of a sleep: the bucket should have enough, or the time of the waiter is over.
   * In the second case the waiter asks the store, unless the queue has a refusal for it.
   */
  #wakeUp(queue: WaitingQueue, waiter: Waiter): void {
    if (waiter.restsUntilMs !== undefined) {
      waiter.restsUntilMs = undefined;
      if (queue.isFirst(waiter)) queue.call(waiter);
      return;
    }
    const refusal = queue.behindOthers(waiter, this.#clock());
    if (refusal === undefined || refusal.violations.length === 0) queue.call(waiter);
    else if (this.#timer.nowMs() >= waiter.until) waiter.refusal = refusal;
  }

  /** Asks the store; `undefined` when the waiter has to ask again later. */
  async #ask<G extends Grant>(
    queue: WaitingQueue,
    waiter: Waiter,
    attempt: Attempt<G>,
  ): Promise<G | Refusal | undefined> {
    const decision = await this.#answer(queue, attempt);
    if (decision.granted) {
      const { lease } = decision;
      const left = statusesOn(waiter.request, lease.statuses, (bucket) =>
        lease[PARTS_OF] === undefined ? [0] : lease[PARTS_OF](bucket),
      );
      queue.learnLeft(left, waiter, this.#clock(), lease[SHOWN_AT_MS]);
      return decision;
    }
    queue.sendBack(waiter);
    const isElsewhere = isOfAnother(decision, waiter.request);
    const nowMs = this.#timer.nowMs();
    const seen = statusesOn(waiter.request, decision.statuses, (at) => partsOf(decision, at));
    const next = queue.learn(decision, seen, waiter, this.#clock(), nowMs, isElsewhere);
    this.#watch(queue);
    if (next === "leave") return decision;
    if (queue.isHead(waiter)) {
      const waitMs = next === "ask" ? 0 : this.#restOf(decision, waiter, nowMs);
      queue.rest(waiter, nowMs + waitMs, this.#clock(), nowMs);
    }
    return undefined;
  }

  /** Returns how long the head rests; until a reset and some more, but not beyond its own time. */
  #restOf({ violations }: Refusal, { until }: Waiter, nowMs: number): number {
    const leftMs = until - nowMs;
    let waitMs = 0;
    for (const status of violations) {
      const { estimated, retryAfterSeconds } = status;
      const restMs = estimated ? Math.min(slotMs(status), leftMs) : retryAfterSeconds * 1000;
      waitMs = Math.max(waitMs, restMs);
    }
    if (waitMs > ASK_MS_MAX) return ASK_MS_MAX;
    if (!violations.some(({ resetsAtMs }) => resetsAtMs !== undefined)) return waitMs;
    const jitterMs = Math.floor(this.#random() * EDGE_JITTER_MS);
    return Math.max(waitMs, Math.min(waitMs + jitterMs, leftMs));
  }

  async #answer<G extends Grant>(queue: WaitingQueue, attempt: Attempt<G>): Promise<G | Refusal> {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof RateLimiterUnavailable) queue.fail(error);
      throw error;
    }
  }

  /** Lets the queue learn of refunds to the buckets of its ancestors. */
  #watch(queue: WaitingQueue): void {
    for (const bucket of queue.heardOf) {
      this.#heardOf.set(bucket, (this.#heardOf.get(bucket) ?? new Set()).add(queue));
    }
  }

  #remove(name: string, queue: WaitingQueue): void {
    this.#queues.delete(name);
    for (const bucket of queue.heardOf) {
      const queues = this.#heardOf.get(bucket);
      queues?.delete(queue);
      if (queues?.size === 0) this.#heardOf.delete(bucket);
    }
  }

  async #sleep(waiter: Waiter, ms: number): Promise<void> {
    this.#refuseEnded(waiter);
    const woken = new AbortController();
    waiter.wake = () => woken.abort();
    await this.#timer.sleep(Math.min(ms, SLEEP_MS_MAX), woken.signal);
    waiter.wake = () => {};
    this.#refuseEnded(waiter);
  }

  #refuseEnded({ request, isClosed }: Waiter): void {
    request.call.signal?.throwIfAborted();
    if (isClosed()) throw new InfrastructureError("The limiter was closed while a call waited");
  }
}

/**
 * Returns how long the head rests for a slot of another process: as long as one of all slots is
 * held on average. Those of this process wake it.
 */
function slotMs({ retryAfterSeconds, limit }: LimitStatus): number {
  const eachMs = Math.ceil((retryAfterSeconds * 1000) / limit.capacity);
  return Math.min(SLOT_MS_MAX, Math.max(SLOT_MS_MIN, eachMs));
}

/**
 * Returns whether a request skips the queue: it asks for zero tokens, or the balance covers all
 * requests ahead too, which then wait for another limit.
 */
function needsNoWait({ amounts }: QueueLine, known: Refusal | undefined): boolean {
  if (known !== undefined && known.violations.length === 0) return true;
  for (const amount of amounts.values()) if (amount > 0) return false;
  return true;
}

/** Whether a call with several lines must wait longer for another one than for this queue's. */
function isOfAnother(refusal: Refusal, { entityId, resource, call }: QueueLine): boolean {
  if ((call.also ?? []).length === 0 && !call.totals) return false;
  const line = scarcestOf(refusal, call);
  return line?.entityId !== entityId || line.resource !== resource;
}
