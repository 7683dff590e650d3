/** The limiter as one task sees it: every acquire is recorded. */

import type { AcquireRequest } from "@zae-limiter/limiter/acquire/acquire-request.ts";
import type { Decision } from "@zae-limiter/limiter/acquire/decision.ts";
import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { Random } from "@zae-limiter/limiter/base/random.ts";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { RateLimitExceeded } from "@zae-limiter/limiter/domain/errors/rate-limit-exceeded.ts";
import type { LoadSession } from "./load.ts";
import type { Slice } from "./slice.ts";
import type { Outcome, Tally } from "./tally.ts";

/** The common part of the sessions of one worker. */
export interface SessionHost {
  readonly limiter: RateLimiter;
  readonly timer: Timer;
  readonly random: Random;
  readonly signal: AbortSignal;
  readonly worker: number;
  /** Collects what happens now. */
  slice(): Slice;
}

/** A lease that knows whether it has ended, as those of the limiter do. */
type EndableLease = Lease & { readonly isEnded?: boolean };

export class Session implements LoadSession {
  readonly userId: string;
  readonly userClass: string;
  readonly #host: SessionHost;
  #leases: Lease[] = [];
  /** When the task should have started; the first acquire counts its latency from then. */
  #intendedMs: number | undefined;
  /** The last error that was counted as a failed acquire. */
  #counted: unknown;

  #isAbandoned = false;

  /** `intendedMs`: when the task should have started, if it has a schedule. */
  constructor(host: SessionHost, userClass: string, userId: string, intendedMs?: number) {
    this.#host = host;
    this.userClass = userClass;
    this.userId = userId;
    this.#intendedMs = intendedMs;
  }

  get limiter(): RateLimiter {
    return this.#host.limiter;
  }

  get random(): Random {
    return this.#host.random;
  }

  get signal(): AbortSignal {
    return this.#host.signal;
  }

  get worker(): number {
    return this.#host.worker;
  }

  sleep(ms: number): Promise<void> {
    return this.#host.timer.sleep(ms, this.#host.signal);
  }

  async acquire(request: AcquireRequest): Promise<Lease> {
    const decision = await this.tryAcquire(request);
    if (decision.granted) return decision.lease;
    throw new RateLimitExceeded(decision.statuses);
  }

  async tryAcquire(request: AcquireRequest): Promise<Decision> {
    const { timer, limiter, signal } = this.#host;
    const startedMs = this.#intendedMs ?? timer.nowMs();
    this.#intendedMs = undefined;
    let decision: Decision;
    try {
      // A call that waits for tokens must not outlive the run.
      const mayWait = request.maxWaitSeconds !== undefined && request.signal === undefined;
      decision = await limiter.tryAcquire(mayWait ? { ...request, signal } : request);
    } catch (error) {
      this.#counted = error;
      if (!(signal.aborted && error === signal.reason)) {
        this.#count("failed", startedMs);
        this.#tally.fail(error);
      }
      throw error;
    }
    if (!decision.granted) {
      this.#count("refused", startedMs);
      return decision;
    }
    this.#count(decision.lease.degraded ? "degraded" : "granted", startedMs);
    this.#leases.push(decision.lease);
    return decision;
  }

  async run<T>(request: AcquireRequest, work: (lease: Lease) => T | Promise<T>): Promise<T> {
    const lease: EndableLease = await this.acquire(request);
    let result: T;
    try {
      result = await work(lease);
    } catch (error) {
      if (lease.isEnded !== true) await lease.rollback();
      throw error;
    }
    if (lease.isEnded !== true) await lease.commit();
    return result;
  }

  /** Runs the task to its end. Never throws: what goes wrong is recorded. */
  async perform(task: (session: LoadSession) => unknown): Promise<void> {
    try {
      await task(this);
    } catch (error) {
      this.broken(error);
    }
    if (this.#isAbandoned) return;
    this.#tally.tasks += 1;
    await this.#endLeases("commit");
  }

  /** Refunds the leases of a task that does not end. */
  async abandon(): Promise<void> {
    this.#isAbandoned = true;
    this.#tally.brokenTasks += 1;
    this.#tally.fail("the task did not end in time after the end of the run");
    await this.#endLeases("rollback");
  }

  async #endLeases(how: "commit" | "rollback"): Promise<void> {
    const leases = this.#leases;
    this.#leases = [];
    for (const lease of leases as EndableLease[]) {
      try {
        if (lease.isEnded !== true) await lease[how]();
      } catch (error) {
        this.broken(error);
      }
      this.#tally.consume(lease.consumed);
    }
  }

  /** Records an error of the task that is no refusal and no failed acquire. */
  broken(error: unknown): void {
    if (error === this.#counted || error instanceof RateLimitExceeded) return;
    this.#tally.brokenTasks += 1;
    this.#tally.fail(error);
  }

  get #tally(): Tally {
    return this.#host.slice().tally(this.userClass);
  }

  #count(outcome: Outcome, startedMs: number): void {
    this.#tally.count(outcome, this.#host.timer.nowMs() - startedMs);
  }
}
