/**
 * Fair waiting. Calls for one entity and resource stand in one line per process: the first one
 * asks the store when the bucket should have enough, the others make no calls until it is their
 * turn. A large request is therefore not starved by small ones behind it.
 */

import type { BucketStore } from "../buckets/bucket-store.ts";
import type { Clock } from "../domain/clock.ts";
import { InfrastructureError } from "../domain/errors.ts";
import type { Timer } from "../domain/timer.ts";
import { onAbort } from "./aborts.ts";
import type { Amounts, CheckedRequest } from "./acquire-request.ts";
import type { Refusal } from "./decision.ts";
import { isTooLate, type Waiter, WaitingLine } from "./waiting-line.ts";

/** Timers take no more than 2^31 milliseconds; whoever sleeps longer looks around in between. */
const SLEEP_MS_MAX = 86_400_000;
/** As long as limits are remembered: what other processes change is noticed by then. */
const ASK_MS_MAX = 60_000;

type Attempt<G> = () => Promise<G | Refusal>;

/** One set of lines per bucket store, whichever limiter a call comes through. */
const linesOfStores = new WeakMap<BucketStore, WaitingLines>();

export class WaitingLines {
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #lines = new Map<string, WaitingLine>();

  constructor(clock: Clock, timer: Timer) {
    this.#clock = clock;
    this.#timer = timer;
  }

  /** The lines for the buckets of a store: two limiters on it are two doors to one room. */
  static of(buckets: BucketStore, clock: Clock, timer: Timer): WaitingLines {
    const lines = linesOfStores.get(buckets) ?? new WaitingLines(clock, timer);
    linesOfStores.set(buckets, lines);
    return lines;
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  /** Makes those look up whose limiter was closed. */
  wakeAll(): void {
    for (const line of this.#lines.values()) line.wakeAll();
  }

  /**
   * The refusal of a call that does not wait, when what is there belongs to those who do: it may
   * pass only where there is enough for everybody.
   */
  async refusal(request: CheckedRequest): Promise<Refusal | undefined> {
    const known = await this.#behindAll(request, ({ violations }) => violations.length > 0);
    return known === undefined || known.violations.length === 0 ? undefined : known;
  }

  /** This process has given something back to a bucket. */
  giveBack(bucket: { readonly entityId: string; readonly resource: string }, back: Amounts): void {
    this.#lines.get(idOf(bucket))?.giveBack(back, this.#clock());
  }

  /**
   * Asks until it is granted, or until it is clear that waiting longer than `maxWaitMs` would be
   * needed: then the refusal is handed out at once. Throws the reason of an aborted signal.
   */
  async wait<G extends { readonly granted: true }>(
    request: CheckedRequest,
    attempt: Attempt<G>,
    isClosed: () => boolean,
  ): Promise<G | Refusal> {
    const until = this.#timer.nowMs() + request.maxWaitMs;
    const isInVain = (refusal: Refusal) => isTooLate(refusal, this.#timer.nowMs(), until);
    const known = this.#lines.has(idOf(request))
      ? await this.#behindAll(request, isInVain)
      : undefined;
    if (known !== undefined && isInVain(known)) return known;
    if (needsNoWait(request, known)) {
      const decision = await attempt();
      if (decision.granted) return decision;
    }
    const judged = known !== undefined;
    const waiter: Waiter = {
      request,
      isClosed,
      until,
      refusal: undefined,
      judged,
      wake: () => {},
    };
    return this.#standInLine(idOf(request), waiter, attempt);
  }

  /**
   * What the line tells a newcomer. Before it refuses one by what is old, the first in line asks
   * again, for all that come meanwhile.
   */
  async #behindAll(
    request: CheckedRequest,
    refuses: (known: Refusal) => boolean,
  ): Promise<Refusal | undefined> {
    const behindAll = () => this.#lines.get(idOf(request))?.behindAll(request, this.#clock());
    const known = behindAll();
    const line = this.#lines.get(idOf(request));
    if (known === undefined || !refuses(known) || line?.isStale(this.#clock()) !== true) {
      return known;
    }
    await line.heardAgain();
    return behindAll();
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
    const end = signal && onAbort(signal, () => waiter.wake());
    try {
      return (await this.#turn(line, waiter)) ?? (await this.#ask(line, waiter, attempt));
    } finally {
      end?.();
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
      line.ask();
      const decision = await attempt();
      if (decision.granted) return decision;
      line.learn(decision, waiter.request, this.#clock(), this.#timer.nowMs());
      const again = line.isWorthAsking(waiter, this.#clock());
      if (!again && isTooLate(decision, this.#timer.nowMs(), waiter.until)) return decision;
      const waitMs = again ? 0 : Math.min(decision.retryAfterSeconds * 1000, ASK_MS_MAX);
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

  #refuseEnded({ request, isClosed }: Waiter): void {
    request.signal?.throwIfAborted();
    if (isClosed()) throw new InfrastructureError("The limiter was closed while a call waited");
  }
}

function idOf({ entityId, resource }: Pick<CheckedRequest, "entityId" | "resource">): string {
  return `${entityId}#${resource}`;
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
