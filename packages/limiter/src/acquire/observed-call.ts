/** One acquire with a listener: its id, its times and its outcome. */

import type { Timer } from "../base/time.ts";
import { RateLimiterUnavailable } from "../domain/errors/errors.ts";
import { longestWait } from "../domain/errors/rate-limit-exceeded.ts";
import type { AcquireRequest } from "./acquire-request.ts";
import { isLocal, type NamedDecision, type Refusal } from "./decision.ts";
import type { AcquireEvent, LimiterEvent, RejectedEvent } from "./events.ts";
import type { Lease } from "./lease/lease.ts";

type Decided = NamedDecision<string>;

/** Receives the outcome of a call. */
interface Ends {
  emit(event: LimiterEvent): void;
  end(call: ObservedCall): void;
}

export class ObservedCall {
  readonly limiter: object;
  readonly acquireId: string;
  readonly request: AcquireRequest;
  /** Set by a subscriber: runs the acquire, and the work of `run`, in a context of its own. */
  within: (<T>(work: () => T) => T) | undefined;
  /** The outcome of the acquire; `undefined` where it failed without a decision. */
  event: AcquireEvent | undefined;
  error: unknown;
  /** Number of attempts at the store, or at the state in this process. */
  attempts = 0;
  readonly #ends: Ends;
  readonly #timer: Timer;
  readonly #startedMs: number;
  #attemptMs: number | undefined;
  #outage: unknown;

  constructor(
    ends: Ends,
    limiter: object,
    acquireId: string,
    request: AcquireRequest,
    timer: Timer,
  ) {
    this.#ends = ends;
    this.#timer = timer;
    this.limiter = limiter;
    this.acquireId = acquireId;
    this.request = request;
    this.#startedMs = timer.nowMs();
  }

  /** Runs work in the context of the subscriber, if it has one. */
  run<T>(work: () => T): T {
    return this.within === undefined ? work() : this.within(work);
  }

  /** Runs the acquire itself in that context; an error that is no decision ends it too. */
  watch<T>(work: () => T | Promise<T>): T | Promise<T> {
    const result = this.run(work);
    if (!(result instanceof Promise)) return result;
    return result.catch((error: unknown) => {
      if (this.event === undefined) this.failed(error);
      throw error;
    });
  }

  /** Reports a decision, and returns it. */
  decided(decision: Decided): Decided {
    // A decision that was made at once is an attempt too.
    if (this.attempts === 0) this.attempt();
    if (decision.granted) this.granted(decision.lease);
    else this.refused(decision, isLocal(decision));
    return decision;
  }

  /** Records that an attempt starts; the time until the last attempt is the wait. */
  attempt(): void {
    this.attempts += 1;
    if (this.#mayWait) this.#attemptMs = this.#timer.nowMs();
  }

  /** Records that the store could not answer the last attempt. */
  unanswered(cause: unknown): void {
    this.#outage = cause;
  }

  granted(lease: Pick<Lease, "degraded" | "consumed" | "statuses">): void {
    const common = this.#common();
    if (lease.degraded) {
      this.#end({ type: "degraded", ...common, cause: this.#outage });
      return;
    }
    const { acquireId, entityId, resource, durationMs, waitedMs } = common;
    const { consumed, statuses } = lease;
    // Written out, because a copy of `common` would be made by a slow path of the engine.
    this.#end({
      type: "acquired",
      acquireId,
      entityId,
      resource,
      durationMs,
      waitedMs,
      consumed,
      statuses,
    });
  }

  /** Reports a refusal. `local`: decided by states that earlier requests had shown. */
  refused(refusal: Refusal, local: boolean): void {
    this.#end(rejected(refusal, local, this.#common()));
  }

  failed(error: unknown): void {
    this.error = error;
    if (error instanceof RateLimiterUnavailable) {
      this.#end({ type: "unavailable", ...this.#common(), cause: error });
    } else this.#ends.end(this);
  }

  #end(event: AcquireEvent): void {
    this.event = event;
    this.#ends.emit(event);
    this.#ends.end(this);
  }

  get #mayWait(): boolean {
    return (this.request.maxWaitSeconds ?? 0) > 0;
  }

  #common(): AcquireTimes {
    const { entityId, resource } = this.request;
    const { acquireId } = this;
    const nowMs = this.#timer.nowMs();
    const waitedMs = this.#mayWait ? (this.#attemptMs ?? nowMs) - this.#startedMs : 0;
    return { acquireId, entityId, resource, durationMs: nowMs - this.#startedMs, waitedMs };
  }
}

type AcquireTimes = Pick<
  AcquireEvent,
  "acquireId" | "entityId" | "resource" | "durationMs" | "waitedMs"
>;

/** Returns the event of a refusal, with the limit that makes the caller wait longest. */
function rejected(refusal: Refusal, local: boolean, common: AcquireTimes): RejectedEvent {
  const { statuses, retryAfterSeconds } = refusal;
  const primary = longestWait(refusal.violations) ?? statuses[0];
  const entities = [...new Set(statuses.map((status) => status.entityId))];
  return {
    type: "rejected",
    ...common,
    local,
    retryAfterSeconds,
    refusedBy: {
      entityId: primary?.entityId ?? common.entityId,
      limitName: primary?.limitName ?? "",
      level: Math.max(0, entities.indexOf(primary?.entityId ?? common.entityId)),
    },
    statuses,
  };
}
