/**
 * The queue of calls that wait for one entity and resource, first come, first served.
 *
 * The head asks the store, and its answer is shared with the queue. Waiters that fit by that answer
 * are started and ask concurrently; the others make no calls. A waiter that consumes another limit
 * than those ahead of it wait for goes before them.
 */

import type { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import type { LimitStatus } from "../../domain/limit-status.ts";
import type { AmountsByName } from "../acquire-request.ts";
import { type Refusal, shownAtMsOf } from "../decision.ts";
import type { QueueLine } from "./queue-line.ts";
import { oldestFresh, QueueState } from "./queue-state.ts";
import { addAmounts, byTicket, WaiterLanes } from "./waiter-lanes.ts";

export interface Waiter {
  readonly request: QueueLine;
  /** Whether the limiter that it came through, or its store, was closed. */
  readonly isClosed: () => boolean;
  /** Time of the timer at which the wait ends. */
  readonly until: number;
  /** Its place in the order of arrival. */
  readonly ticket: number;
  /** Set when its turn would come too late. */
  refusal: Refusal | undefined;
  /** Set when the store could not answer the waiter that asked. */
  failure: RateLimiterUnavailable | undefined;
  /** Whether the queue has checked that its turn can come in time. */
  judged: boolean;
  /** Set when it was refused as a head: the time at which the bucket should have enough. */
  restsUntilMs: number | undefined;
  /** All refunds up to the time at which it began to ask. */
  givenBefore: AmountsByName;
  /** Ends the sleep of this waiter, if it sleeps. */
  wake: () => void;
}

const NO_AMOUNTS: AmountsByName = new Map();

export class WaitingQueue {
  readonly #waiters = new WaiterLanes<Waiter>();
  /** Waiters that are asking the store. */
  readonly #asking = new Set<Waiter>();
  /** Tokens that the asking waiters need, by limit. */
  readonly #asked = new Map<string, number>();
  readonly #state = new QueueState();
  #unjudged = 0;
  /** Called with the next answer of the store. */
  #listeners: ((failure: RateLimiterUnavailable | undefined) => void)[] = [];

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** How many requests wait, including those that are asking the store. */
  get size(): number {
    return this.#waiters.size + this.#asking.size;
  }

  /** Names of the buckets its requests consume from: of the entity and of its ancestors. */
  get heardOf(): ReadonlySet<string> {
    return this.#state.heardOf;
  }

  isFirst(waiter: Waiter): boolean {
    return this.#waiters.first === waiter;
  }

  /** Returns whether all that came before consume other limits. */
  isHead(waiter: Waiter): boolean {
    return this.#waiters.isHead(waiter);
  }

  /** Returns whether the waiter is to ask the store. */
  isCalled(waiter: Waiter): boolean {
    return this.#asking.has(waiter);
  }

  join(waiter: Waiter): void {
    if (!waiter.judged) this.#unjudged += 1;
    this.#waiters.add(waiter);
    if (this.#asking.size === 0 && this.isFirst(waiter)) this.call(waiter);
  }

  /** Starts a waiter: it asks the store next. */
  call(waiter: Waiter): void {
    if (this.#asking.has(waiter)) return;
    waiter.restsUntilMs = undefined;
    waiter.givenBefore = this.#state.given();
    this.#waiters.delete(waiter);
    this.#asking.add(waiter);
    addAmounts(this.#asked, waiter.request.amounts, 1);
    waiter.wake();
    this.#wakeHeads();
  }

  /** Returns a refused waiter to its place. */
  sendBack(waiter: Waiter): void {
    this.#stopAsking(waiter);
    this.#waiters.add(waiter);
    if (!this.isFirst(waiter)) this.#next();
  }

  leave(waiter: Waiter): void {
    if (this.#asking.has(waiter)) this.#stopAsking(waiter);
    else this.#waiters.delete(waiter);
    if (!waiter.judged) this.#unjudged -= 1;
    this.#next();
    this.#wakeHeads();
    this.#tell(undefined);
  }

  /** Returns whether the cached state is too old to refuse a request. */
  isStale(nowMs: number): boolean {
    return this.#state.isStale(nowMs);
  }

  /** Makes the head ask again; resolves with the next answer, with the error if it fails. */
  heardAgain(): Promise<RateLimiterUnavailable | undefined> {
    return new Promise((resolve) => {
      this.#listeners.push(resolve);
      const { first } = this.#waiters;
      if (this.#asking.size === 0 && first !== undefined) this.call(first);
    });
  }

  /** Records a refund to one of its buckets and starts the waiters that now fit. */
  refund(bucketName: string, amounts: AmountsByName, nowMs: number, timerMs: number): void {
    this.#state.refund(bucketName, amounts);
    this.#callFitting(nowMs);
    // Together with what accrues until then, the refund may suffice sooner than was known.
    for (const head of this.#waiters.heads) this.#restLess(head, nowMs, timerMs);
  }

  /** Lets a refused waiter rest until the bucket should have enough, by refunds since it asked. */
  rest(waiter: Waiter, untilMs: number, nowMs: number, timerMs: number): void {
    waiter.restsUntilMs = untilMs;
    if (this.#state.givenSince(waiter.givenBefore).size === 0) return;
    this.#restLess(waiter, nowMs, timerMs);
  }

  wakeAll(): void {
    for (const { wake } of [...this.#waiters.all, ...this.#asking]) wake();
  }

  /** Returns the answer for a new request; `undefined` without a cached state. */
  behindAll(request: QueueLine, nowMs: number): Refusal | undefined {
    const ahead = new Map(this.#asked);
    addAmounts(ahead, this.#waiters.needed, 1);
    return this.#state.behind(request, ahead, nowMs);
  }

  /** Returns the answer for a waiter behind those ahead of it. */
  behindOthers(waiter: Waiter, nowMs: number): Refusal | undefined {
    const ahead = new Map(this.#asked);
    this.#waiters.addAhead(ahead, waiter);
    return this.#state.behind(waiter.request, ahead, nowMs);
  }

  /**
   * Returns how long a waiter sleeps that others are ahead of. The first of its lane asks as soon
   * as there should be enough for it and for those ahead; it waits for no other limits.
   */
  sleepMs(waiter: Waiter, nowMs: number): number {
    if (!this.isHead(waiter) || this.isFirst(waiter)) return Number.POSITIVE_INFINITY;
    const refusal = this.behindOthers(waiter, nowMs);
    return refusal === undefined ? Number.POSITIVE_INFINITY : refusal.retryAfterSeconds * 1000;
  }

  /**
   * Records a refusal. Waiters that joined before any answer are judged now, once: those that
   * cannot succeed in time are refused, and those that do not need the exceeded limit are started.
   * The answer may not include refunds that were made while it was under way. Returns what the
   * waiter does next: it leaves, asks again at once, or rests. `statuses`: those of this queue.
   */
  learn(
    refusal: Refusal,
    statuses: readonly LimitStatus[],
    waiter: Waiter,
    nowMs: number,
    timerMs: number,
    isElsewhere: boolean,
  ): "leave" | "ask" | "rest" {
    const { request, givenBefore } = waiter;
    const shownMs = Math.max(shownAtMsOf(refusal) ?? nowMs, oldestFresh(nowMs));
    this.#state.know(statuses, request, givenBefore, nowMs, shownMs);
    const again = this.#isWorthAsking(waiter, nowMs);
    const leaves = isElsewhere || (!again && isTooLate(refusal, timerMs, waiter.until));
    if (this.#unjudged > 0) this.#judgeAll(nowMs, timerMs, leaves ? waiter : undefined);
    this.#wakeHeads();
    this.#tell(undefined);
    if (leaves) return "leave";
    return again ? "ask" : "rest";
  }

  /**
   * Records what a grant has left, and starts the waiters that fit. Balances of shards that it did
   * not touch are as last seen, which may be too old to refuse a request.
   */
  learnLeft(
    statuses: readonly LimitStatus[],
    waiter: Waiter,
    nowMs: number,
    shownMs: number = nowMs,
  ): void {
    if (this.#waiters.size === 0 || statuses.length === 0) return;
    this.#state.know(statuses, waiter.request, waiter.givenBefore, nowMs, shownMs);
    this.#callFitting(nowMs);
    this.#tell(undefined);
  }

  /** Fails all waiters with one error of the store, instead of one call each. */
  fail(failure: RateLimiterUnavailable): void {
    for (const waiter of this.#waiters.all) {
      waiter.failure = failure;
      waiter.wake();
    }
    this.#tell(failure);
  }

  /** Returns whether refunds since it asked may suffice, so that it should ask again at once. */
  #isWorthAsking({ request, givenBefore }: Waiter, nowMs: number): boolean {
    if (this.#state.givenSince(givenBefore).size === 0) return false;
    return this.#state.behind(request, NO_AMOUNTS, nowMs)?.violations.length === 0;
  }

  #restLess(waiter: Waiter, nowMs: number, timerMs: number): void {
    if (waiter.restsUntilMs === undefined) return;
    const refusal = this.behindOthers(waiter, nowMs);
    if (refusal === undefined) return;
    const untilMs = timerMs + refusal.retryAfterSeconds * 1000;
    if (untilMs >= waiter.restsUntilMs) return;
    waiter.restsUntilMs = untilMs;
    waiter.wake();
  }

  /** Starts the head if no waiter is asking, unless it sleeps until a known time. */
  #next(): void {
    const { first } = this.#waiters;
    if (this.#asking.size > 0 || first === undefined || first.restsUntilMs !== undefined) return;
    this.call(first);
  }

  #stopAsking(waiter: Waiter): void {
    this.#asking.delete(waiter);
    addAmounts(this.#asked, waiter.request.amounts, -1);
  }

  #tell(failure: RateLimiterUnavailable | undefined): void {
    for (const resolve of this.#listeners.splice(0)) resolve(failure);
  }

  /** Starts waiters, lane by lane, while the state suffices for them and for those ahead. */
  #callFitting(nowMs: number): void {
    for (const head of this.#waiters.heads) {
      let next: Waiter | undefined = head;
      while (next !== undefined && this.behindOthers(next, nowMs)?.violations.length === 0) {
        this.call(next);
        next = this.#waiters.nextOf(head);
      }
    }
    this.#wakeHeads();
  }

  /** Lets the first of each lane see how long it sleeps by what is known now. */
  #wakeHeads(): void {
    if (this.#waiters.lanes === 1) return;
    for (const head of this.#waiters.heads) if (!this.isFirst(head)) head.wake();
  }

  /** Judges the waiters in order; `leaving` will consume nothing, so it delays none behind it. */
  #judgeAll(nowMs: number, timerMs: number, leaving: Waiter | undefined): void {
    const ahead = this.#askedInTime(nowMs, timerMs);
    for (const waiter of this.#waiters.all) {
      if (waiter === leaving) continue;
      if (!waiter.judged) this.#judge(waiter, ahead, nowMs, timerMs);
      if (waiter.refusal === undefined) addAmounts(ahead, waiter.request.amounts, 1);
    }
  }

  /** Returns the tokens that the asking waiters need, except those that cannot fit in time. */
  #askedInTime(nowMs: number, timerMs: number): Map<string, number> {
    const ahead = new Map<string, number>();
    for (const { request, until } of [...this.#asking].sort(byTicket)) {
      const refusal = this.#state.behind(request, ahead, nowMs);
      const isRefused = refusal !== undefined && refusal.violations.length > 0;
      if (isRefused && isTooLate(refusal, timerMs, until)) continue;
      addAmounts(ahead, request.amounts, 1);
    }
    return ahead;
  }

  #judge(waiter: Waiter, ahead: AmountsByName, nowMs: number, timerMs: number): void {
    waiter.judged = true;
    this.#unjudged -= 1;
    // The head has its own answer from the store.
    if (this.isFirst(waiter)) return;
    const refusal = this.#state.behind(waiter.request, ahead, nowMs);
    if (refusal === undefined) return;
    if (refusal.violations.length === 0) {
      this.call(waiter);
    } else if (isTooLate(refusal, timerMs, waiter.until)) {
      waiter.refusal = refusal;
      waiter.wake();
    }
  }
}

/** Returns whether waiting cannot help: a request that never fits is always too late. */
export function isTooLate(refusal: Refusal, nowMs: number, until: number): boolean {
  return refusal.violations.some(({ retryAfterSeconds, estimated }) => {
    // An estimate refuses no call: a slot may come back at any time.
    if (estimated === true && Number.isFinite(retryAfterSeconds)) return nowMs >= until;
    return !Number.isFinite(retryAfterSeconds) || nowMs + retryAfterSeconds * 1000 > until;
  });
}
