/**
 * Fair waiting. Calls for one entity and resource stand in one line per process: the first one
 * asks the store when the bucket should have enough, the others make no calls until it is their
 * turn. A large request is therefore not starved by small ones behind it.
 */

import { retryAfterMs } from "../core/bucket.ts";
import { floorDiv } from "../core/integers.ts";
import type { Clock } from "../domain/clock.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import type { Timer } from "../domain/timer.ts";
import type { Amounts, CheckedRequest } from "./acquire-request.ts";
import { Refusal } from "./decision.ts";

interface Waiter {
  readonly amounts: Amounts;
  /** Called when this waiter has become the first. */
  turn: () => void;
}

/** What is known of a line: who stands in it, and what the last refusal showed. */
interface Line {
  readonly waiters: Waiter[];
  statuses: readonly LimitStatus[];
  seenAtMs: number;
}

export class WaitingLines {
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #lines = new Map<string, Line>();

  constructor(clock: Clock, timer: Timer) {
    this.#clock = clock;
    this.#timer = timer;
  }

  /** How many calls wait. */
  get size(): number {
    let size = 0;
    for (const line of this.#lines.values()) size += line.waiters.length;
    return size;
  }

  /**
   * Asks until it is granted, or until it is clear that waiting longer than `maxWaitMs` would be
   * needed: then the refusal is handed out at once. Throws the reason of an aborted signal.
   */
  async wait<G extends { readonly granted: true }>(
    request: CheckedRequest,
    attempt: () => Promise<G | Refusal>,
  ): Promise<G | Refusal> {
    const { maxWaitMs, signal, amounts } = request;
    const id = `${request.entityId}#${request.resource}`;
    const until = this.#timer.nowMs() + maxWaitMs;
    const line = this.#lineOf(id);
    const hopeless = this.#hopeless(line, amounts, maxWaitMs);
    if (hopeless !== undefined) return hopeless;
    const waiter: Waiter = { amounts, turn: () => {} };
    line.waiters.push(waiter);
    try {
      if (line.waiters[0] !== waiter) {
        const came = await this.#turn(waiter, until, signal);
        signal?.throwIfAborted();
        if (!came) return refusalBehind(line, amounts, this.#aheadOf(line, waiter), this.#clock());
      }
      for (;;) {
        signal?.throwIfAborted();
        const decision = await attempt();
        if (decision.granted) return decision;
        line.statuses = decision.statuses;
        line.seenAtMs = this.#clock();
        const waitMs = decision.retryAfterSeconds * 1000;
        if (this.#timer.nowMs() + waitMs > until) return decision;
        await this.#timer.sleep(waitMs, signal);
      }
    } finally {
      this.#leave(id, line, waiter);
    }
  }

  #lineOf(id: string): Line {
    const known = this.#lines.get(id);
    if (known !== undefined) return known;
    const line: Line = { waiters: [], statuses: [], seenAtMs: 0 };
    this.#lines.set(id, line);
    return line;
  }

  #leave(id: string, line: Line, waiter: Waiter): void {
    const at = line.waiters.indexOf(waiter);
    line.waiters.splice(at, 1);
    if (line.waiters.length === 0) this.#lines.delete(id);
    else if (at === 0) line.waiters[0]?.turn();
  }

  /** Resolves with whether the turn came before the time was over. */
  async #turn(waiter: Waiter, until: number, signal: AbortSignal | undefined): Promise<boolean> {
    const given = new AbortController();
    const ended = signal === undefined ? given.signal : AbortSignal.any([given.signal, signal]);
    let came = false;
    waiter.turn = () => {
      came = true;
      given.abort();
    };
    await this.#timer.sleep(Math.max(0, until - this.#timer.nowMs()), ended);
    return came;
  }

  /** The refusal of a call that would still stand in line when its time is over. */
  #hopeless(line: Line, amounts: Amounts, maxWaitMs: number): Refusal | undefined {
    if (line.waiters.length === 0 || line.statuses.length === 0) return undefined;
    const refusal = refusalBehind(line, amounts, sumOf(line.waiters), this.#clock());
    return refusal.retryAfterSeconds * 1000 > maxWaitMs ? refusal : undefined;
  }

  #aheadOf(line: Line, waiter: Waiter): Map<string, number> {
    return sumOf(line.waiters.slice(0, line.waiters.indexOf(waiter)));
  }
}

function sumOf(waiters: readonly Waiter[]): Map<string, number> {
  const sum = new Map<string, number>();
  for (const { amounts } of waiters) {
    for (const [name, amount] of amounts) sum.set(name, (sum.get(name) ?? 0) + amount);
  }
  return sum;
}

/** What the last refusal of the line means for somebody who stands behind others. */
function refusalBehind(
  line: Line,
  amounts: Amounts,
  ahead: ReadonlyMap<string, number>,
  nowMs: number,
): Refusal {
  const elapsedMs = Math.max(0, nowMs - line.seenAtMs);
  return new Refusal(
    line.statuses.map((status) => {
      const { limit, limitName } = status;
      const requested = amounts.get(limitName) ?? 0;
      const accrued = floorDiv(elapsedMs * limit.refillAmount, limit.refillPeriodSeconds * 1000);
      const available = Math.min(limit.capacity, status.available + accrued);
      const missing = (ahead.get(limitName) ?? 0) + requested - available;
      const exceeded = requested > 0 && missing > 0;
      const waitMs =
        requested > limit.capacity
          ? Number.POSITIVE_INFINITY
          : retryAfterMs(missing * 1000, limit.rate);
      return {
        ...status,
        available,
        requested,
        exceeded,
        retryAfterSeconds: exceeded ? waitMs / 1000 : 0,
        deficit: Math.max(0, requested - available),
      };
    }),
  );
}
