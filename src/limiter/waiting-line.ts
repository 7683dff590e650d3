/** One line of calls that wait for the same entity and resource, first come, first served. */

import type { Limit } from "../domain/limit.ts";
import type { Amounts, CheckedRequest } from "./acquire-request.ts";
import { Refusal } from "./decision.ts";
import { statusBehind } from "./status-behind.ts";

export interface Waiter {
  readonly request: CheckedRequest;
  /** Whether the limiter that it came through was closed. */
  readonly isClosed: () => boolean;
  /** By the timer. */
  readonly until: number;
  /** Set when its turn would come too late. */
  refusal: Refusal | undefined;
  /** Whether it was checked that its turn may come in time. */
  judged: boolean;
  /** Ends the sleep of this waiter, if it sleeps. */
  wake: () => void;
}

/** The last refusal that the first in line was given. */
interface Knowledge {
  readonly refusal: Refusal;
  readonly limits: readonly Limit[] | undefined;
  readonly seenAtMs: number;
  /** What this process has given back since. */
  readonly givenBack: Map<string, number>;
}

/** As long as a refusal may be repeated without asking the store. */
const KNOWN_MS = 1000;
const NOBODY: Amounts = new Map();

export class WaitingLine {
  readonly #waiters: Waiter[] = [];
  /** What all of them ask for. */
  readonly #asked = new Map<string, number>();
  #knowledge: Knowledge | undefined;
  #unjudged = 0;
  /** What was given back since the first one has begun to ask. */
  #meanwhile = new Map<string, number>();
  /** Those who wait for what the first one hears next. */
  #curious: (() => void)[] = [];

  get length(): number {
    return this.#waiters.length;
  }

  isFirst(waiter: Waiter): boolean {
    return this.#waiters[0] === waiter;
  }

  join(waiter: Waiter): void {
    this.#waiters.push(waiter);
    if (!waiter.judged) this.#unjudged += 1;
    add(this.#asked, waiter.request.amounts, 1);
  }

  /** The next one is woken when the first one leaves. */
  leave(waiter: Waiter): void {
    const at = this.#waiters.indexOf(waiter);
    this.#waiters.splice(at, 1);
    if (!waiter.judged) this.#unjudged -= 1;
    add(this.#asked, waiter.request.amounts, -1);
    if (at === 0) this.#waiters[0]?.wake();
    this.#tell();
  }

  /** Whether what is known is too old to refuse anybody by it. */
  isStale(nowMs: number): boolean {
    if (this.#knowledge === undefined) return false;
    const ageMs = nowMs - this.#knowledge.seenAtMs;
    return ageMs < 0 || ageMs >= KNOWN_MS;
  }

  /** Makes the first one ask again; resolves when it has heard, or has left. */
  heardAgain(): Promise<void> {
    return new Promise((resolve) => {
      this.#curious.push(resolve);
      this.#waiters[0]?.wake();
    });
  }

  /** The first one is woken when that should be enough. */
  giveBack(amounts: Amounts, nowMs: number): void {
    add(this.#meanwhile, amounts, 1);
    const [first] = this.#waiters;
    if (this.#knowledge === undefined || first === undefined) return;
    add(this.#knowledge.givenBack, amounts, 1);
    const still = this.#behind(first.request, NOBODY, nowMs);
    if (still === undefined || still.violations.length === 0) first.wake();
  }

  wakeAll(): void {
    for (const { wake } of this.#waiters) wake();
  }

  /** What is known tells a newcomer this; `undefined` when nothing is known. */
  behindAll(request: CheckedRequest, nowMs: number): Refusal | undefined {
    return this.#behind(request, this.#asked, nowMs);
  }

  /** The same for one who stands in line. */
  behindOthers(waiter: Waiter, nowMs: number): Refusal | undefined {
    const ahead = new Map<string, number>();
    for (const other of this.#waiters) {
      if (other === waiter) break;
      add(ahead, other.request.amounts, 1);
    }
    return this.#behind(waiter.request, ahead, nowMs);
  }

  /** The first in line asks the store. */
  ask(): void {
    this.#meanwhile = new Map();
  }

  /** Whether so much was given back since it has asked that it should ask again at once. */
  isWorthAsking({ request }: Waiter, nowMs: number): boolean {
    if (this.#meanwhile.size === 0) return false;
    return this.#behind(request, NOBODY, nowMs)?.violations.length === 0;
  }

  /**
   * The first in line was refused. Whoever lined up before anything was known is judged now, once:
   * those who would wait in vain are sent away. The answer may not count what was given back while
   * it was on its way.
   */
  learn(refusal: Refusal, { limits }: CheckedRequest, nowMs: number, timerMs: number): void {
    const givenBack = new Map(this.#meanwhile);
    this.#knowledge = { refusal, limits, seenAtMs: nowMs, givenBack };
    if (this.#unjudged > 0) this.#judgeAll(nowMs, timerMs);
    this.#tell();
  }

  #tell(): void {
    for (const resolve of this.#curious.splice(0)) resolve();
  }

  #judgeAll(nowMs: number, timerMs: number): void {
    const ahead = new Map<string, number>();
    for (const waiter of this.#waiters) {
      if (!waiter.judged) this.#judge(waiter, ahead, nowMs, timerMs);
      if (waiter.refusal === undefined) add(ahead, waiter.request.amounts, 1);
    }
  }

  #judge(waiter: Waiter, ahead: Amounts, nowMs: number, timerMs: number): void {
    waiter.judged = true;
    this.#unjudged -= 1;
    // The first one has its answer from the store.
    if (this.isFirst(waiter)) return;
    const refusal = this.#behind(waiter.request, ahead, nowMs);
    if (refusal === undefined || !isTooLate(refusal, timerMs, waiter.until)) return;
    waiter.refusal = refusal;
    waiter.wake();
  }

  /** Limits that came with a call tell nothing about calls with others. */
  #behind(request: CheckedRequest, ahead: Amounts, nowMs: number): Refusal | undefined {
    const known = this.#knowledge;
    if (known === undefined || !sameLimits(known.limits, request.limits)) return undefined;
    const elapsedMs = Math.max(0, nowMs - known.seenAtMs);
    return new Refusal(
      known.refusal.statuses.map((status) =>
        statusBehind(status, {
          requested: request.amounts.get(status.limitName) ?? 0,
          ahead: ahead.get(status.limitName) ?? 0,
          elapsedMs,
          givenBack: known.givenBack.get(status.limitName) ?? 0,
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

function add(sums: Map<string, number>, amounts: Amounts, sign: 1 | -1): void {
  for (const [name, amount] of amounts) sums.set(name, (sums.get(name) ?? 0) + sign * amount);
}

function sameLimits(
  left: readonly Limit[] | undefined,
  right: readonly Limit[] | undefined,
): boolean {
  if (left === undefined || right === undefined) return left === right;
  return left.length === right.length && left.every((one, at) => right[at]?.equals(one) === true);
}
