/**
 * Requests that end in time and are repeated only where that is harmless.
 *
 * An answer that proves that nothing was written (throttling, a conflict, a connection that never
 * was) may be followed by another attempt. A write whose outcome is unknown (a timeout, a reset, a
 * server error) is never repeated, because it may have happened. Reads, and transactions with a
 * token, may always be repeated; but when such a transaction is refused by a condition after an
 * attempt of unknown outcome, that attempt may still be under way, and the outcome stays unknown.
 */

import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "../../../base/random.ts";
import { Deadline, systemTimer } from "../../../base/time.ts";
import { InfrastructureError, RateLimiterUnavailable } from "../../../domain/errors/errors.ts";
import type { CallListeners } from "../../call-listeners.ts";
import type { CallOptions, CallOutcome, StoreCall } from "../../item-store.ts";
import { type ConditionFailures, judge, type Verdict } from "../errors.ts";
import { backoffMs } from "./backoff.ts";
import { estimated, reported, unreported } from "./capacity.ts";
import { EmptyAnswer, isComplete } from "./exchange.ts";
import { CAPACITY_KIND, type OperationName, type Output } from "./operations.ts";
import { type Outgoing, Prepared, SendError, type Transport } from "./transport.ts";

interface CallsOptions {
  readonly table: string;
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  readonly random: Random;
  /** Without any, requests do not ask for the consumed capacity. */
  readonly listeners: CallListeners;
}

/**
 * A refused connection is repeated for this long: a server that restarts is back by then, and one
 * that is not there is reported while its user still watches.
 */
const REFUSED_MS_MAX = 300;

/** Attempts shorter than this are not worth it: the rest goes to one last attempt. */
const ATTEMPT_MS_MIN = 250;

/** A write that starts with less time than this would most likely end with unknown outcome. */
const LAST_ATTEMPT_MS_MIN = 100;

/** How one request is sent. */
interface SendOptions extends CallOptions {
  /** The end of the work that the request is part of; its own time starts now when absent. */
  readonly deadline?: Deadline;
}

type Failed = Extract<Verdict, { kind: "failed" }>;

/** Whether a request may be sent again after an attempt with unknown outcome. */
type Repetition = "read" | "repeatable" | "once";

/** When a request is sent again. */
interface RepeatRule {
  readonly repetition: Repetition;
  readonly hotKey: CallOptions["hotKey"] | undefined;
}

export type Written<Name extends OperationName> =
  | { readonly ok: true; readonly output: Output<Name> }
  | { readonly ok: false; readonly failures: ConditionFailures };

export class Calls {
  readonly #transport: Transport;
  readonly #options: CallsOptions;
  #closed = false;

  constructor(transport: Transport, options: CallsOptions) {
    this.#transport = transport;
    this.#options = options;
  }

  get table(): string {
    return this.#options.table;
  }

  /** Server's time in its last answer, in epoch milliseconds, whole seconds. */
  get serverDateMs(): number | undefined {
    return this.#transport.serverDateMs;
  }

  /** Starts the time of work in several requests, once the code for them is loaded. */
  async start(operation: OperationName, options: CallOptions = {}): Promise<Deadline> {
    await this.#transport.load(operation);
    return this.deadline(options);
  }

  /** Returns the end of a call that begins now: in real time, since sockets know no other. */
  deadline({ timeoutMs = this.#options.timeoutMs }: CallOptions = {}): Deadline {
    return new Deadline(systemTimer, timeoutMs);
  }

  /** Sends a request that may always be repeated. */
  async read<Name extends OperationName>(
    operation: Name,
    request: Outgoing<Name>,
    options: SendOptions = {},
  ): Promise<Output<Name>> {
    const result = await this.write(operation, request, options, "read");
    if (result.ok) return result.output;
    throw new InfrastructureError(`DynamoDB refused ${operation}: a read has no condition`);
  }

  /** Sends a write, which is not repeated once its outcome is unknown. */
  write<Name extends OperationName>(
    operation: Name,
    request: Outgoing<Name>,
    options: SendOptions,
    repetition: Repetition = "once",
  ): Promise<Written<Name>> {
    if (this.#closed) return Promise.reject(new InfrastructureError("This store is closed"));
    const run = () => {
      const deadline = options.deadline ?? this.deadline(options);
      return this.#run(operation, request, deadline, { repetition, hotKey: options.hotKey });
    };
    // The time of a call starts when its code is loaded, which the first call of a process does.
    return this.#transport.load(operation)?.then(run) ?? run();
  }

  /** Waits before unprocessed items are requested again; throws when there is no time left. */
  async backOff(attempt: number, deadline: Deadline, operation: OperationName): Promise<void> {
    const pauseMs = backoffMs(attempt, this.#options.random, deadline.leftMs);
    if (!allowsAnother(deadline, pauseMs)) {
      throw new RateLimiterUnavailable(sentence("throttled", operation, deadline), {
        reason: "throttled",
        nothingWritten: true,
        stackName: this.table,
      });
    }
    await pause(pauseMs);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#transport.close();
  }

  async #run<Name extends OperationName>(
    operation: Name,
    bare: Outgoing<Name>,
    deadline: Deadline,
    rule: RepeatRule,
  ): Promise<Written<Name>> {
    const request = this.#withCapacity(operation, bare);
    let unknown: Failed | undefined;
    for (let attempt = 1; ; attempt += 1) {
      const timeoutMs = attemptMs(deadline, rule.repetition !== "once");
      const sending = this.#options.listeners.isEmpty ? undefined : new Sending(attempt, deadline);
      let verdict: Verdict;
      let cause: unknown;
      try {
        const output = await this.#transport.send(operation, request, timeoutMs);
        if (!isComplete(operation, output)) {
          throw new SendError(new EmptyAnswer(operation), "sent");
        }
        this.#tell(sending, "ok", () => reported(operation, output));
        return { ok: true, output };
      } catch (error) {
        verdict = this.#judged(operation, error, sending);
        cause = (error as SendError).cause;
      }
      if (verdict.kind !== "failed") {
        const failures = this.#refused(operation, verdict, deadline, unknown, cause);
        return { ok: false, failures };
      }
      if (!verdict.nothingWritten && rule.repetition !== "read") unknown = verdict;
      const pauseMs = this.#pauseMs(attempt, verdict, rule, deadline);
      if (pauseMs === undefined) {
        throw this.#unavailable(operation, deadline, verdict, unknown === undefined, cause);
      }
      await pause(pauseMs);
    }
  }

  /** Returns the conditions that failed; throws where an earlier attempt may still be done. */
  #refused(
    operation: OperationName,
    verdict: Exclude<Verdict, Failed>,
    deadline: Deadline,
    earlier: Failed | undefined,
    cause: unknown,
  ): ConditionFailures {
    if (verdict.kind === "refused") throw verdict.error;
    if (earlier === undefined) return verdict.failures;
    throw this.#unavailable(operation, deadline, earlier, false, cause);
  }

  #unavailable(
    operation: OperationName,
    deadline: Deadline,
    { reason, keyRange }: Failed,
    nothingWritten: boolean,
    cause: unknown,
  ): RateLimiterUnavailable {
    const details = { cause, reason, nothingWritten, keyRange, stackName: this.table };
    return new RateLimiterUnavailable(sentence(reason, operation, deadline), details);
  }

  /** Returns the pause before another attempt; `undefined` when there will be none. */
  #pauseMs(
    attempt: number,
    { nothingWritten, keyRange, connectionRefused }: Failed,
    { repetition, hotKey }: RepeatRule,
    deadline: Deadline,
  ): number | undefined {
    const { random, maxAttempts } = this.#options;
    const harmless = nothingWritten || repetition !== "once";
    const leaves = keyRange && hotKey === "raise";
    if (!harmless || leaves || attempt >= maxAttempts) return undefined;
    const pauseMs = backoffMs(attempt - 1, random, deadline.leftMs);
    if (connectionRefused && deadline.passedMs + pauseMs > REFUSED_MS_MAX) return undefined;
    return allowsAnother(deadline, pauseMs) ? pauseMs : undefined;
  }

  /** Asks for the consumed capacity, which prepared requests do already. */
  #withCapacity<Name extends OperationName>(
    operation: Name,
    request: Outgoing<Name>,
  ): Outgoing<Name> {
    if (this.#options.listeners.isEmpty || !CAPACITY_KIND.has(operation)) return request;
    return request instanceof Prepared
      ? request
      : { ...request, ReturnConsumedCapacity: "INDEXES" };
  }

  /** Judges the failure of a request and reports its cost; throws any other error. */
  #judged(operation: OperationName, error: unknown, sending: Sending | undefined): Verdict {
    if (!(error instanceof SendError)) throw error;
    const verdict = judge(error.cause, operation, this.table, error.progress);
    if (verdict.kind === "condition") {
      this.#tell(sending, "condition", () => estimated(operation, verdict.failures));
    } else if (verdict.sent) {
      const outcome = verdict.kind === "failed" ? verdict.reason : "refused";
      this.#tell(sending, outcome, () => unreported(operation));
    }
    return verdict;
  }

  #tell(sending: Sending | undefined, outcome: CallOutcome, price: () => StoreCall): void {
    const { listeners } = this.#options;
    if (listeners.isEmpty) return;
    const cost = price();
    listeners.tell(sending === undefined ? { ...cost, outcome } : sending.ended(cost, outcome));
  }
}

/** Returns whether another attempt is worth it after a pause. */
function allowsAnother({ leftMs, spanMs }: Deadline, pauseMs: number): boolean {
  return leftMs - pauseMs >= Math.min(LAST_ATTEMPT_MS_MIN, spanMs / 4);
}

/** Returns the time of one attempt: half of what is left, where another could follow. */
function attemptMs({ leftMs }: Deadline, isRepeatable: boolean): number {
  return Math.max(0, isRepeatable && leftMs > 2 * ATTEMPT_MS_MIN ? leftMs / 2 : leftMs);
}

/** Measures one attempt, for the listeners of requests. */
class Sending {
  readonly #attempt: number;
  readonly #deadline: Deadline;
  readonly #startedMs: number;

  constructor(attempt: number, deadline: Deadline) {
    this.#attempt = attempt;
    this.#deadline = deadline;
    this.#startedMs = deadline.passedMs;
  }

  /** Returns the call, which has just ended. A spread would cost more than all the rest. */
  ended(cost: StoreCall, outcome: CallOutcome): StoreCall {
    return {
      operation: cost.operation,
      readUnits: cost.readUnits,
      writeUnits: cost.writeUnits,
      indexUnits: cost.indexUnits,
      estimated: cost.estimated,
      outcome,
      attempt: this.#attempt,
      durationMs: this.#deadline.passedMs - this.#startedMs,
    };
  }
}

function sentence(
  reason: NonNullable<RateLimiterUnavailable["reason"]>,
  operation: OperationName,
  deadline: Deadline,
): string {
  switch (reason) {
    case "throttled":
      return `DynamoDB throttled ${operation}`;
    case "timeout":
      // A millisecond is what a request gets when earlier steps of the call have used all the time.
      if (deadline.spanMs <= 1) return `No time was left for ${operation} of DynamoDB`;
      return `DynamoDB did not answer ${operation} within ${Math.round(deadline.spanMs)} ms`;
    case "network":
      return `DynamoDB could not be reached for ${operation}`;
    case "server":
      return `DynamoDB failed to answer ${operation}`;
  }
}
