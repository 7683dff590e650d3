/**
 * Fair waiting. Calls for one entity and resource stand in one line per process: the first one
 * asks the store when the bucket should have enough, the others make no calls until it is their
 * turn. A large request is therefore not starved by small ones behind it.
 */

import type { Clock } from "../domain/clock.ts";
import { InfrastructureError } from "../domain/errors.ts";
import type { Timer } from "../domain/timer.ts";
import type { CheckedRequest } from "./acquire-request.ts";
import type { Refusal } from "./decision.ts";
import { type Waiter, WaitingLine } from "./waiting-line.ts";

/** Timers take no more than 2^31 milliseconds; whoever sleeps longer looks around in between. */
const SLEEP_MS_MAX = 86_400_000;

type Attempt<G> = () => Promise<G | Refusal>;

export class WaitingLines {
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #lines = new Map<string, WaitingLine>();
  #closed = false;

  constructor(clock: Clock, timer: Timer) {
    this.#clock = clock;
    this.#timer = timer;
  }

  /** Sends everybody away. */
  close(): void {
    this.#closed = true;
    for (const line of this.#lines.values()) line.wakeAll();
  }

  /**
   * Asks until it is granted, or until it is clear that waiting longer than `maxWaitMs` would be
   * needed: then the refusal is handed out at once. Throws the reason of an aborted signal.
   */
  async wait<G extends { readonly granted: true }>(
    request: CheckedRequest,
    attempt: Attempt<G>,
  ): Promise<G | Refusal> {
    const until = this.#timer.nowMs() + request.maxWaitMs;
    const id = `${request.entityId}#${request.resource}`;
    const known = this.#lines.get(id)?.behindAll(request, this.#clock());
    if (known !== undefined && known.retryAfterSeconds * 1000 > request.maxWaitMs) return known;
    if (needsNoWait(request, known)) {
      const decision = await attempt();
      if (decision.granted) return decision;
    }
    const judged = known !== undefined;
    const waiter: Waiter = { request, until, refusal: undefined, judged, wake: () => {} };
    return this.#standInLine(id, waiter, attempt);
  }

  async #standInLine<G extends { readonly granted: true }>(
    id: string,
    waiter: Waiter,
    attempt: Attempt<G>,
  ): Promise<G | Refusal> {
    const { signal } = waiter.request;
    const line = this.#lines.get(id) ?? new WaitingLine();
    this.#lines.set(id, line);
    line.join(waiter);
    const onAbort = () => waiter.wake();
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      return (await this.#turn(line, waiter)) ?? (await this.#ask(line, waiter, attempt));
    } finally {
      signal?.removeEventListener("abort", onAbort);
      line.leave(waiter);
      if (line.length === 0) this.#lines.delete(id);
    }
  }

  /**
   * Sleeps until this waiter is the first, or hands out why it will not be in time. When its time
   * is over and the line knows of no reason, the store itself has to be asked.
   */
  async #turn(line: WaitingLine, waiter: Waiter): Promise<Refusal | undefined> {
    while (!line.isFirst(waiter)) {
      if (waiter.refusal !== undefined) return waiter.refusal;
      const leftMs = waiter.until - this.#timer.nowMs();
      if (leftMs <= 0) {
        const refusal = line.behindOthers(waiter, this.#clock());
        return refusal === undefined || refusal.violations.length === 0 ? undefined : refusal;
      }
      await this.#sleep(waiter, leftMs);
    }
    return undefined;
  }

  /** Asks the store until it grants, or until the next time would be too late. */
  async #ask<G extends { readonly granted: true }>(
    line: WaitingLine,
    waiter: Waiter,
    attempt: Attempt<G>,
  ): Promise<G | Refusal> {
    for (;;) {
      const decision = await attempt();
      if (decision.granted) return decision;
      line.learn(decision, waiter.request, this.#clock(), this.#timer.nowMs());
      const waitMs = decision.retryAfterSeconds * 1000;
      if (this.#timer.nowMs() + waitMs > waiter.until) return decision;
      await this.#sleep(waiter, waitMs);
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

  #refuseEnded({ request }: Waiter): void {
    request.signal?.throwIfAborted();
    if (this.#closed) throw new InfrastructureError("The limiter was closed while a call waited");
  }
}

/**
 * Who asks for nothing need not line up, nor where there is enough for everybody ahead as well:
 * those ahead then wait for a limit that is not asked for.
 */
function needsNoWait({ amounts }: CheckedRequest, known: Refusal | undefined): boolean {
  if (known !== undefined && known.violations.length === 0) return true;
  for (const amount of amounts.values()) if (amount > 0) return false;
  return true;
}
