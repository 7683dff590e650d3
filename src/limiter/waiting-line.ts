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
}

export class WaitingLine {
  readonly #waiters: Waiter[] = [];
  /** What all of them ask for. */
  readonly #asked = new Map<string, number>();
  #knowledge: Knowledge | undefined;
  #unjudged = 0;

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

  /**
   * The first in line was refused. Whoever lined up before anything was known is judged now, once:
   * those who would wait in vain are sent away.
   */
  learn(refusal: Refusal, { limits }: CheckedRequest, nowMs: number, timerMs: number): void {
    this.#knowledge = { refusal, limits, seenAtMs: nowMs };
    if (this.#unjudged === 0) return;
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
    if (refusal === undefined || timerMs + refusal.retryAfterSeconds * 1000 <= waiter.until) return;
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
        }),
      ),
    );
  }
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
