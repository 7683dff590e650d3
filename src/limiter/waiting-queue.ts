/**
 * The queue of calls that wait for one entity and resource, first come, first served.
 *
 * The head asks the store, and its answer is shared with the queue. Waiters that fit by that answer
 * are started and ask concurrently; the others make no calls.
 */

import type { RateLimiterUnavailable } from "../domain/errors.ts";
import type { Limit } from "../domain/limit.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import type { CheckedRequest } from "./acquire-request.ts";
import type { AmountsByName } from "./amounts.ts";
import { Refusal, shownAtMsOf } from "./decision.ts";
import { statusBehind } from "./status-behind.ts";
import { WaiterQueue } from "./waiter-queue.ts";

/** The parts of a call that a queue needs. */
export type QueueRequest = Pick<CheckedRequest, "entityId" | "resource" | "limits" | "amounts">;

export interface Waiter {
  readonly request: CheckedRequest;
  /** Whether the limiter that it came through, or its store, was closed. */
  readonly isClosed: () => boolean;
  /** Time of the timer at which the wait ends. */
  readonly until: number;
  /** Its place in the order of arrival. */
  ticket: number;
  /** Set when its turn would come too late. */
  refusal: Refusal | undefined;
  /** Set when the store could not answer the waiter that asked. */
  failure: RateLimiterUnavailable | undefined;
  /** Whether the queue has checked that its turn can come in time. */
  judged: boolean;
  /** Set when it was refused as the head: the time at which the bucket should have enough. */
  restsUntilMs: number | undefined;
  /** What had been refunded when it began to ask. */
  givenBefore: AmountsByName;
  /** Ends the sleep of this waiter, if it sleeps. */
  wake: () => void;
}

/** The last answer of the store. */
interface CachedState {
  readonly statuses: readonly LimitStatus[];
  readonly limits: readonly Limit[] | undefined;
  /** When the answer came: balances are those of that time. */
  readonly seenAtMs: number;
  /** When the store showed the oldest state that the answer goes by. */
  readonly shownAtMs: number;
  /** What this process has refunded since, by bucket and limit. */
  readonly refunded: Map<string, number>;
}

/** How long a cached state may refuse requests, in milliseconds. */
const KNOWN_MS = 1000;
const NO_AMOUNTS: AmountsByName = new Map();

export class WaitingQueue {
  /** Names of the buckets its requests consume from: of the entity and of its ancestors. */
  readonly heardOf = new Set<string>();
  /** Waiters in the order of their tickets. */
  readonly #waiters = new WaiterQueue<Waiter>();
  /** Waiters that are asking the store. */
  readonly #asking = new Set<Waiter>();
  /** What the waiters want, by limit. */
  readonly #queued = new Map<string, number>();
  /** What those want that are asking, by limit. */
  readonly #asked = new Map<string, number>();
  #tickets = 0;
  #cached: CachedState | undefined;
  #unjudged = 0;
  /** All refunds so far, by bucket and limit. */
  readonly #given = new Map<string, number>();
  /** Called with the next answer of the store. */
  #listeners: ((failure: RateLimiterUnavailable | undefined) => void)[] = [];

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** How many requests wait, including those that are asking the store. */
  get size(): number {
    return this.#waiters.size + this.#asking.size;
  }

  isFirst(waiter: Waiter): boolean {
    return this.#waiters.first === waiter;
  }

  /** Returns whether the waiter is to ask the store. */
  isCalled(waiter: Waiter): boolean {
    return this.#asking.has(waiter);
  }

  join(waiter: Waiter): void {
    this.#tickets += 1;
    waiter.ticket = this.#tickets;
    if (!waiter.judged) this.#unjudged += 1;
    this.#enqueue(waiter);
    if (this.#asking.size === 0 && this.isFirst(waiter)) this.call(waiter);
  }

  /** Starts a waiter: it asks the store next. */
  call(waiter: Waiter): void {
    if (this.#asking.has(waiter)) return;
    waiter.restsUntilMs = undefined;
    waiter.givenBefore = new Map(this.#given);
    this.#dequeue(waiter);
    this.#asking.add(waiter);
    add(this.#asked, waiter.request.amounts, 1);
    waiter.wake();
  }

  /** Returns a refused waiter to its place. */
  sendBack(waiter: Waiter): void {
    this.#stopAsking(waiter);
    this.#enqueue(waiter);
    if (!this.isFirst(waiter)) this.#next();
  }

  leave(waiter: Waiter): void {
    if (this.#asking.has(waiter)) this.#stopAsking(waiter);
    else this.#dequeue(waiter);
    if (!waiter.judged) this.#unjudged -= 1;
    this.#next();
    this.#tell(undefined);
  }

  /** Returns whether the cached state is too old to refuse a request. */
  isStale(nowMs: number): boolean {
    if (this.#cached === undefined) return false;
    const ageMs = nowMs - this.#cached.shownAtMs;
    return ageMs < 0 || ageMs >= KNOWN_MS;
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
  refund(bucketName: string, amounts: AmountsByName, nowMs: number): void {
    addAt(this.#given, bucketName, amounts);
    if (this.#cached === undefined) return;
    addAt(this.#cached.refunded, bucketName, amounts);
    this.#callFitting(nowMs);
  }

  wakeAll(): void {
    for (const { wake } of [...this.#waiters, ...this.#asking]) wake();
  }

  /** Returns the answer for a new request; `undefined` without a cached state. */
  behindAll(request: QueueRequest, nowMs: number): Refusal | undefined {
    const ahead = new Map(this.#asked);
    add(ahead, this.#queued, 1);
    return this.#behind(request, ahead, nowMs);
  }

  /** Returns the answer for a waiter behind those ahead of it. */
  behindOthers(waiter: Waiter, nowMs: number): Refusal | undefined {
    const ahead = new Map(this.#asked);
    for (const other of this.#waiters) {
      if (other === waiter) break;
      add(ahead, other.request.amounts, 1);
    }
    return this.#behind(waiter.request, ahead, nowMs);
  }

  /** Returns whether refunds since it asked may suffice, so that it should ask again at once. */
  #isWorthAsking(waiter: Waiter, nowMs: number): boolean {
    if (this.#givenSince(waiter).size === 0) return false;
    return this.#behind(waiter.request, NO_AMOUNTS, nowMs)?.violations.length === 0;
  }

  /**
   * Records a refusal. Waiters that joined before any answer are judged now, once: those that
   * cannot succeed in time are refused, and those that do not need the exceeded limit are started.
   * The answer may not include refunds that were made while it was under way. Returns what the
   * waiter does next: it leaves, asks again at once, or rests.
   */
  learn(
    refusal: Refusal,
    waiter: Waiter,
    nowMs: number,
    timerMs: number,
    isElsewhere: boolean,
  ): "leave" | "ask" | "rest" {
    this.#know(refusal.statuses, waiter, nowMs, shownAtMsOf(refusal));
    const again = this.#isWorthAsking(waiter, nowMs);
    const leaves = isElsewhere || (!again && isTooLate(refusal, timerMs, waiter.until));
    if (this.#unjudged > 0) this.#judgeAll(nowMs, timerMs, leaves ? waiter : undefined);
    this.#tell(undefined);
    if (leaves) return "leave";
    return again ? "ask" : "rest";
  }

  /** Records what a grant has left, and starts the waiters that fit. */
  learnLeft(statuses: readonly LimitStatus[], waiter: Waiter, nowMs: number): void {
    if (this.#waiters.size === 0 || statuses.length === 0) return;
    this.#know(statuses, waiter, nowMs);
    this.#callFitting(nowMs);
    this.#tell(undefined);
  }

  /** Fails all waiters with one error of the store, instead of one call each. */
  fail(failure: RateLimiterUnavailable): void {
    for (const waiter of this.#waiters) {
      waiter.failure = failure;
      waiter.wake();
    }
    this.#tell(failure);
  }

  /** If no waiter is asking, starts the head, unless it sleeps until a known time. */
  #next(): void {
    const { first } = this.#waiters;
    if (this.#asking.size > 0 || first === undefined || first.restsUntilMs !== undefined) return;
    this.call(first);
  }

  #enqueue(waiter: Waiter): void {
    this.#waiters.add(waiter);
    add(this.#queued, waiter.request.amounts, 1);
  }

  #dequeue(waiter: Waiter): void {
    this.#waiters.delete(waiter);
    add(this.#queued, waiter.request.amounts, -1);
  }

  #stopAsking(waiter: Waiter): void {
    this.#asking.delete(waiter);
    add(this.#asked, waiter.request.amounts, -1);
  }

  /** A call for several resources tells the queue about the one that it is for. */
  #know(all: readonly LimitStatus[], waiter: Waiter, nowMs: number, shownMs: number = nowMs): void {
    const { limits, also, resource } = waiter.request;
    const isOwn = (status: LimitStatus) => status.resource === resource;
    const statuses = also.length === 0 ? all : all.filter(isOwn);
    const refunded = this.#givenSince(waiter);
    // An answer that has just come is not stale yet, whatever it goes by.
    const shownAtMs = Math.min(nowMs, Math.max(shownMs, nowMs - KNOWN_MS + 1));
    this.#cached = { statuses, limits, seenAtMs: nowMs, shownAtMs, refunded };
    for (const status of statuses) this.heardOf.add(bucketNameOf(status));
  }

  /** Returns the refunds since the waiter began to ask. */
  #givenSince({ givenBefore }: Waiter): Map<string, number> {
    const since = new Map<string, number>();
    for (const [at, amount] of this.#given) {
      const more = amount - (givenBefore.get(at) ?? 0);
      if (more > 0) since.set(at, more);
    }
    return since;
  }

  #tell(failure: RateLimiterUnavailable | undefined): void {
    for (const resolve of this.#listeners.splice(0)) resolve(failure);
  }

  /** Starts waiters in order while the cached state suffices for all that were started. */
  #callFitting(nowMs: number): void {
    for (let { first } = this.#waiters; first !== undefined; { first } = this.#waiters) {
      if (this.#behind(first.request, this.#asked, nowMs)?.violations.length !== 0) return;
      this.call(first);
    }
  }

  /** `leaving`: a waiter that takes nothing from those behind it. */
  #judgeAll(nowMs: number, timerMs: number, leaving: Waiter | undefined): void {
    const ahead = new Map(this.#asked);
    for (const waiter of [...this.#waiters]) {
      if (waiter === leaving) continue;
      if (!waiter.judged) this.#judge(waiter, ahead, nowMs, timerMs);
      if (waiter.refusal === undefined) add(ahead, waiter.request.amounts, 1);
    }
  }

  #judge(waiter: Waiter, ahead: AmountsByName, nowMs: number, timerMs: number): void {
    waiter.judged = true;
    this.#unjudged -= 1;
    // The head has its own answer from the store.
    if (this.isFirst(waiter)) return;
    const refusal = this.#behind(waiter.request, ahead, nowMs);
    if (refusal === undefined) return;
    if (refusal.violations.length === 0) {
      this.call(waiter);
    } else if (isTooLate(refusal, timerMs, waiter.until)) {
      waiter.refusal = refusal;
      waiter.wake();
    }
  }

  /** Limits given with a call say nothing about calls with other limits. */
  #behind(request: QueueRequest, ahead: AmountsByName, nowMs: number): Refusal | undefined {
    const known = this.#cached;
    if (known === undefined || !sameLimits(known.limits, request.limits)) return undefined;
    const elapsedMs = Math.max(0, nowMs - known.seenAtMs);
    return new Refusal(
      known.statuses.map((status) =>
        statusBehind(status, {
          requested: request.amounts.get(status.limitName) ?? 0,
          ahead: ahead.get(status.limitName) ?? 0,
          elapsedMs,
          refunded: known.refunded.get(`${bucketNameOf(status)} ${status.limitName}`) ?? 0,
        }),
      ),
    );
  }
}

/** Returns whether waiting cannot help: a request that never fits is always too late. */
export function isTooLate(refusal: Refusal, nowMs: number, until: number): boolean {
  const { retryAfterSeconds } = refusal;
  return !Number.isFinite(retryAfterSeconds) || nowMs + retryAfterSeconds * 1000 > until;
}

export function bucketNameOf(bucket: { entityId: string; resource: string }): string {
  return `${bucket.entityId}#${bucket.resource}`;
}

function add(sums: Map<string, number>, amounts: AmountsByName, sign: 1 | -1): void {
  for (const [name, amount] of amounts) sums.set(name, (sums.get(name) ?? 0) + sign * amount);
}

function addAt(sums: Map<string, number>, bucketName: string, amounts: AmountsByName): void {
  for (const [name, amount] of amounts) {
    const at = `${bucketName} ${name}`;
    sums.set(at, (sums.get(at) ?? 0) + amount);
  }
}

function sameLimits(
  left: readonly Limit[] | undefined,
  right: readonly Limit[] | undefined,
): boolean {
  if (left === undefined || right === undefined) return left === right;
  return left.length === right.length && left.every((one, at) => right[at]?.equals(one) === true);
}
