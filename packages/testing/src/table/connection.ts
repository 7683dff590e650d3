/**
 * The connection of a process: requests take time, get lost, fail, and are repeated where that is
 * harmless, by the rules of the adapter for DynamoDB.
 */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { CallListeners, freeCall } from "@zae-limiter/limiter/storage/call-listeners.ts";
import { backoffMs } from "@zae-limiter/limiter/storage/dynamodb/transport/backoff.ts";
import type { VirtualTime } from "../time/virtual-time.ts";
import type { Outcome, TableCall } from "./call.ts";
import { type Failure, failureOf, unavailable } from "./failure.ts";
import { drawLatencyMs, type Latency } from "./latency.ts";
import type { Server } from "./server.ts";
import type { MutableUsage } from "./usage.ts";

/** Whether a request may be sent again after an attempt with unknown outcome. */
export type Repetition = "read" | "repeatable" | "once";

interface ConnectionOptions {
  readonly process: number;
  readonly time: VirtualTime;
  readonly clock: () => number;
  readonly server: Server;
  readonly latency: Latency;
  readonly random: Random;
  readonly usage: MutableUsage;
}

export interface RequestOptions {
  readonly repetition: Repetition;
  readonly timeoutMs: number;
  readonly token?: string | undefined;
  /** A throttled key is reported at once: the caller can use another one. */
  readonly raiseHotKey: boolean;
}

/** A call that is under way. */
interface Pending<T> {
  readonly call: TableCall;
  readonly options: RequestOptions;
  readonly endsAtMs: number;
  readonly serve: (call: TableCall) => Promise<Outcome<T>>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
  attempts: number;
  /** The last failure after which the request may still be executed. */
  unknown: Failure | undefined;
}

/** As in the adapter: half of the time for one attempt, and no attempt in the last moments. */
const ATTEMPT_MS_MIN = 250;
const LAST_ATTEMPT_MS_MIN = 100;
/** A request is late by up to this many times of what its client waits. */
const LATE_MOST = 3;

export class Connection {
  readonly #options: ConnectionOptions;
  #broken = false;
  /** Nothing arrives, in either direction. */
  isCut = false;
  readonly listeners = new CallListeners();

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** Ends the connection of a crashed process: requests may still arrive, answers never. */
  break(): void {
    this.#broken = true;
  }

  request<T>(
    operation: string,
    options: RequestOptions,
    serve: (call: TableCall) => Promise<Outcome<T>>,
  ): Promise<T> {
    const { process, time, clock } = this.#options;
    const { token } = options;
    const call: TableCall = { process, operation, plannedMs: clock(), token, landings: [] };
    const endsAtMs = time.nowMs + options.timeoutMs;
    const pending = { call, options, endsAtMs, serve, attempts: 0, unknown: undefined };
    return new Promise((resolve, reject) => this.#attempt({ ...pending, resolve, reject }));
  }

  #attempt<T>(pending: Pending<T>): void {
    if (this.#broken) return;
    const { time, server, latency, random, usage } = this.#options;
    const { faults } = server;
    pending.attempts += 1;
    const leftMs = pending.endsAtMs - time.nowMs;
    const long = pending.options.repetition !== "once" && leftMs > 2 * ATTEMPT_MS_MIN;
    const attemptEndsMs = time.nowMs + (long ? leftMs / 2 : Math.max(1, leftMs));
    const roundTripMs = drawLatencyMs(latency, random);
    const outMs = roundTripMs * (0.3 + 0.4 * random());
    if (happens(faults.refusedConnections, random)) {
      time.after(outMs, () => this.#failed(pending, failureOf("refused")));
      return;
    }
    usage.calls += 1;
    if (pending.options.repetition === "read") usage.reads += 1;
    if (this.isCut || happens(faults.lostRequests, random)) {
      this.#timeOut(pending, attemptEndsMs);
      return;
    }
    if (happens(faults.lateRequests, random)) {
      const lateMs = (attemptEndsMs - time.nowMs) * (1 + LATE_MOST * random());
      time.after(lateMs, () => void pending.serve(pending.call));
      this.#timeOut(pending, attemptEndsMs);
      return;
    }
    time.after(outMs, () => {
      if (happens(faults.throttledTable, random)) {
        usage.throttled += 1;
        return this.#back(pending, failed("throttledTable"), roundTripMs - outMs, attemptEndsMs);
      }
      const fails = happens(faults.serverErrors, random);
      if (fails && random() < 0.5) {
        return this.#back(pending, failed("server"), roundTripMs - outMs, attemptEndsMs);
      }
      const lost = happens(faults.lostResponses, random);
      void pending.serve(pending.call).then((outcome) => {
        if (lost) return this.#timeOut(pending, attemptEndsMs);
        const answer = fails ? failed("server") : outcome;
        return this.#back(pending, answer, roundTripMs - outMs, attemptEndsMs);
      });
    });
  }

  /** Sends the answer back; the process may have stopped waiting when it arrives. */
  #back<T>(pending: Pending<T>, outcome: Outcome<T>, ms: number, attemptEndsMs: number): void {
    const { time } = this.#options;
    if (this.isCut || time.nowMs + ms > attemptEndsMs) this.#timeOut(pending, attemptEndsMs);
    else time.after(ms, () => this.#receive(pending, outcome));
  }

  #timeOut<T>(pending: Pending<T>, attemptEndsMs: number): void {
    const { time } = this.#options;
    time.after(attemptEndsMs - time.nowMs, () => this.#failed(pending, failureOf("timeout")));
  }

  #receive<T>(pending: Pending<T>, outcome: Outcome<T>): void {
    const { server } = this.#options;
    if (this.#broken) return;
    if (outcome.kind === "failed") {
      this.#failed(pending, outcome.failure);
      return;
    }
    if (!this.listeners.isEmpty) {
      this.listeners.tell({ ...freeCall(pending.call.operation), estimated: true });
    }
    const { unknown } = pending;
    if (outcome.kind === "done" && unknown !== undefined && isRefused(outcome.value)) {
      // An earlier attempt may still arrive, and its condition may hold by then.
      server.observer.unanswered?.(pending.call);
      pending.reject(unavailable(unknown, pending.call.operation, false));
    } else if (outcome.kind === "done") {
      server.observer.answered?.(pending.call);
      pending.resolve(outcome.value);
    } else {
      server.observer.refused?.(pending.call, outcome.error);
      pending.reject(outcome.error);
    }
  }

  #failed<T>(pending: Pending<T>, failure: Failure): void {
    if (this.#broken) return;
    const { time, random, server } = this.#options;
    const { repetition, timeoutMs, raiseHotKey } = pending.options;
    if (!failure.nothingWritten && repetition !== "read") pending.unknown = failure;
    const harmless = failure.nothingWritten || repetition !== "once";
    const leftMs = pending.endsAtMs - time.nowMs;
    const pauseMs = backoffMs(pending.attempts - 1, random, leftMs);
    const again = leftMs - pauseMs >= Math.min(LAST_ATTEMPT_MS_MIN, timeoutMs / 4);
    if (harmless && again && !(failure.keyRange && raiseHotKey)) {
      time.after(pauseMs, () => this.#attempt(pending));
      return;
    }
    server.observer.unanswered?.(pending.call);
    const nothingWritten = pending.unknown === undefined;
    pending.reject(unavailable(failure, pending.call.operation, nothingWritten));
  }
}

/** Whether a condition has refused a write. */
function isRefused(value: unknown): boolean {
  return typeof value === "object" && value !== null && "ok" in value && value.ok === false;
}

function happens(share: number | undefined, random: Random): boolean {
  return share !== undefined && share > 0 && random() < share;
}

function failed(kind: "server" | "throttledTable"): Outcome<never> {
  return { kind: "failed", failure: failureOf(kind) };
}
