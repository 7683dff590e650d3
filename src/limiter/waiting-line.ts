/**
 * One line of calls that wait for the same entity and resource, first come, first served.
 *
 * The first one asks the store, for itself and for what everybody wants to know. Whoever should fit
 * by what it has heard is called, and asks at the same time; the others make no calls.
 */

import type { RateLimiterUnavailable } from "../domain/errors.ts";
import type { Limit } from "../domain/limit.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import type { CheckedRequest } from "./acquire-request.ts";
import type { AmountsByName } from "./amounts.ts";
import { Refusal } from "./decision.ts";
import { statusBehind } from "./status-behind.ts";
import { WaiterQueue } from "./waiter-queue.ts";

/** What a line needs to know of a call. */
export type LineRequest = Pick<CheckedRequest, "entityId" | "resource" | "limits" | "amounts">;

export interface Waiter {
  readonly request: CheckedRequest;
  /** Whether the limiter that it came through, or its store, was closed. */
  readonly isClosed: () => boolean;
  /** By the timer. */
  readonly until: number;
  /** Its place among all that have come. */
  ticket: number;
  /** Set when its turn would come too late. */
  refusal: Refusal | undefined;
  /** Set when the store could not answer the one who asked. */
  failure: RateLimiterUnavailable | undefined;
  /** Whether it was checked that its turn may come in time. */
  judged: boolean;
  /** It was refused as the first one: then there should be enough. */
  restsUntilMs: number | undefined;
  /** What had been given back when it began to ask. */
  givenBefore: AmountsByName;
  /** Ends the sleep of this waiter, if it sleeps. */
  wake: () => void;
}

/** What the store has last said. */
interface Knowledge {
  readonly statuses: readonly LimitStatus[];
  readonly limits: readonly Limit[] | undefined;
  readonly seenAtMs: number;
  /** What this process has given back since, by bucket and limit. */
  readonly givenBack: Map<string, number>;
}

/** As long as a refusal may be repeated without asking the store. */
const KNOWN_MS = 1000;
const NOBODY: AmountsByName = new Map();

export class WaitingLine {
  /** The names of the buckets that it has to do with: of the entity itself, and of its parents. */
  readonly heardOf = new Set<string>();
  /** Those who wait for their turn, by their tickets. */
  readonly #queue = new WaiterQueue<Waiter>();
  /** Those who ask the store. */
  readonly #asking = new Set<Waiter>();
  readonly #queued = new Map<string, number>();
  readonly #asked = new Map<string, number>();
  #tickets = 0;
  #knowledge: Knowledge | undefined;
  #unjudged = 0;
  /** What was given back, ever. */
  readonly #given = new Map<string, number>();
  /** Those who wait for what is heard next. */
  #curious: ((failure: RateLimiterUnavailable | undefined) => void)[] = [];

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** How many requests wait, those that ask the store at this time included. */
  get size(): number {
    return this.#queue.size + this.#asking.size;
  }

  isFirst(waiter: Waiter): boolean {
    return this.#queue.first === waiter;
  }

  /** Whether it is to ask the store. */
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

  /** It is its turn. */
  call(waiter: Waiter): void {
    if (this.#asking.has(waiter)) return;
    waiter.restsUntilMs = undefined;
    waiter.givenBefore = new Map(this.#given);
    this.#dequeue(waiter);
    this.#asking.add(waiter);
    add(this.#asked, waiter.request.amounts, 1);
    waiter.wake();
  }

  /** It has asked in vain, and waits in its old place. */
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

  /** Whether what is known is too old to refuse anybody by it. */
  isStale(nowMs: number): boolean {
    if (this.#knowledge === undefined) return false;
    const ageMs = nowMs - this.#knowledge.seenAtMs;
    return ageMs < 0 || ageMs >= KNOWN_MS;
  }

  /** Makes the first one ask again; resolves when something was heard, with a failure if that was it. */
  heardAgain(): Promise<RateLimiterUnavailable | undefined> {
    return new Promise((resolve) => {
      this.#curious.push(resolve);
      const { first } = this.#queue;
      if (this.#asking.size === 0 && first !== undefined) this.call(first);
    });
  }

  /** Something was given back to a bucket it has heard of. Those for whom that is enough are called. */
  giveBack(bucketName: string, amounts: AmountsByName, nowMs: number): void {
    addAt(this.#given, bucketName, amounts);
    if (this.#knowledge === undefined) return;
    addAt(this.#knowledge.givenBack, bucketName, amounts);
    this.#callFitting(nowMs);
  }

  wakeAll(): void {
    for (const { wake } of [...this.#queue, ...this.#asking]) wake();
  }

  /** What is known tells a newcomer this; `undefined` when nothing is known. */
  behindAll(request: LineRequest, nowMs: number): Refusal | undefined {
    const ahead = new Map(this.#asked);
    add(ahead, this.#queued, 1);
    return this.#behind(request, ahead, nowMs);
  }

  /** The same for one who stands in line. */
  behindOthers(waiter: Waiter, nowMs: number): Refusal | undefined {
    const ahead = new Map(this.#asked);
    for (const other of this.#queue) {
      if (other === waiter) break;
      add(ahead, other.request.amounts, 1);
    }
    return this.#behind(waiter.request, ahead, nowMs);
  }

  /** Whether so much was given back since it has asked that it should ask again at once. */
  isWorthAsking(waiter: Waiter, nowMs: number): boolean {
    if (this.#givenSince(waiter).size === 0) return false;
    return this.#behind(waiter.request, NOBODY, nowMs)?.violations.length === 0;
  }

  /**
   * Somebody was refused. Whoever lined up before anything was known is judged now, once: those who
   * would wait in vain are sent away, and those who do not ask for what is missing are called. The
   * answer may not count what was given back while it was on its way.
   */
  learn(refusal: Refusal, waiter: Waiter, nowMs: number, timerMs: number): void {
    this.#know(refusal.statuses, waiter, nowMs);
    if (this.#unjudged > 0) this.#judgeAll(nowMs, timerMs);
    this.#tell(undefined);
  }

  /** Somebody was granted, and this is left. */
  learnLeft(statuses: readonly LimitStatus[], waiter: Waiter, nowMs: number): void {
    if (this.#queue.size === 0 || statuses.length === 0) return;
    this.#know(statuses, waiter, nowMs);
    this.#callFitting(nowMs);
    this.#tell(undefined);
  }

  /** The store could not answer. Nobody waits for it to fail once more, one after the other. */
  fail(failure: RateLimiterUnavailable): void {
    for (const waiter of this.#queue) {
      waiter.failure = failure;
      waiter.wake();
    }
    this.#tell(failure);
  }

  /** When nobody asks any more, it is the turn of the first one, unless it knows better. */
  #next(): void {
    const { first } = this.#queue;
    if (this.#asking.size > 0 || first === undefined || first.restsUntilMs !== undefined) return;
    this.call(first);
  }

  #enqueue(waiter: Waiter): void {
    this.#queue.add(waiter);
    add(this.#queued, waiter.request.amounts, 1);
  }

  #dequeue(waiter: Waiter): void {
    this.#queue.delete(waiter);
    add(this.#queued, waiter.request.amounts, -1);
  }

  #stopAsking(waiter: Waiter): void {
    this.#asking.delete(waiter);
    add(this.#asked, waiter.request.amounts, -1);
  }

  #know(statuses: readonly LimitStatus[], waiter: Waiter, nowMs: number): void {
    const { limits } = waiter.request;
    const givenBack = this.#givenSince(waiter);
    this.#knowledge = { statuses, limits, seenAtMs: nowMs, givenBack };
    for (const status of statuses) this.heardOf.add(bucketNameOf(status));
  }

  /** Since it has begun to ask. */
  #givenSince({ givenBefore }: Waiter): Map<string, number> {
    const since = new Map<string, number>();
    for (const [at, amount] of this.#given) {
      const more = amount - (givenBefore.get(at) ?? 0);
      if (more > 0) since.set(at, more);
    }
    return since;
  }

  #tell(failure: RateLimiterUnavailable | undefined): void {
    for (const resolve of this.#curious.splice(0)) resolve(failure);
  }

  /** In their order, as far as what is known suffices for all of them. */
  #callFitting(nowMs: number): void {
    for (let { first } = this.#queue; first !== undefined; { first } = this.#queue) {
      if (this.#behind(first.request, this.#asked, nowMs)?.violations.length !== 0) return;
      this.call(first);
    }
  }

  #judgeAll(nowMs: number, timerMs: number): void {
    const ahead = new Map(this.#asked);
    for (const waiter of [...this.#queue]) {
      if (!waiter.judged) this.#judge(waiter, ahead, nowMs, timerMs);
      if (waiter.refusal === undefined) add(ahead, waiter.request.amounts, 1);
    }
  }

  #judge(waiter: Waiter, ahead: AmountsByName, nowMs: number, timerMs: number): void {
    waiter.judged = true;
    this.#unjudged -= 1;
    // The first one has its answer from the store.
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

  /** Limits that came with a call tell nothing about calls with others. */
  #behind(request: LineRequest, ahead: AmountsByName, nowMs: number): Refusal | undefined {
    const known = this.#knowledge;
    if (known === undefined || !sameLimits(known.limits, request.limits)) return undefined;
    const elapsedMs = Math.max(0, nowMs - known.seenAtMs);
    return new Refusal(
      known.statuses.map((status) =>
        statusBehind(status, {
          requested: request.amounts.get(status.limitName) ?? 0,
          ahead: ahead.get(status.limitName) ?? 0,
          elapsedMs,
          givenBack: known.givenBack.get(`${bucketNameOf(status)} ${status.limitName}`) ?? 0,
        }),
      ),
    );
  }
}

/** Whether waiting is in vain. What never fits is too late for those who would wait for ever. */
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
