/**
 * The decision about one request, the same for every framework: which entity consumes what, and
 * what the response says about it. Adapters pass a request to it, carry out its decision, and end
 * the passage when the response has ended.
 */

import type { AcquireRequest, Amounts } from "../acquire/acquire-request.ts";
import { type Decision, isUndecided, type Refusal } from "../acquire/decision.ts";
import { LIMIT_NAMES, TOTALS, TRY_NOW } from "../acquire/internal-names.ts";
import { timerOf, triesOn } from "../acquire/late-store.ts";
import type { Lease } from "../acquire/lease/lease.ts";
import { RateLimiter } from "../acquire/rate-limiter.ts";
import { show } from "../domain/check.ts";
import {
  RateLimiterUnavailable,
  ResourceDisabled,
  ValidationError,
} from "../domain/errors/errors.ts";
import { INTERNALS } from "../repository/internals.ts";
import {
  type Answer,
  anonymousAnswer,
  disabledAnswer,
  refusedAnswer,
  replacedAnswer,
  unavailableAnswer,
} from "./answer.ts";
import { Clients, type Reading } from "./clients.ts";
import { type HttpEvent, Reporter } from "./events.ts";
import { type Header, headersOf, ownStatuses, TELLS_TIME } from "./headers.ts";
import type { CheckedOptions } from "./options.ts";
import { addPassage, Passage, type PassageRules, type Target, turnBackAll } from "./passage.ts";

/** Call the handler, set the headers, and end the passage (if any) with the response. */
export interface Passed {
  readonly kind: "passed";
  readonly headers: readonly Header[];
  readonly passage?: Passage;
}

/** The way that a request takes. */
export type Entry =
  | Passed
  /** Send this instead of calling the handler. */
  | { readonly kind: "answered"; readonly answer: Answer }
  /** The client went away while it waited: there is no one to answer. */
  | { readonly kind: "gone" };

/** Returns whether the request may continue at once. A field is read faster than prototypes. */
export function isPassed(entry: Entry | Promise<Entry>): entry is Passed {
  return (entry as Partial<Passed>).kind === "passed";
}

const NO_HEADERS: readonly Header[] = [];
const PASSED: Entry = { kind: "passed", headers: NO_HEADERS };
const DEGRADED: Header = { name: "x-ratelimit-degraded", value: "1" };
const OBSERVED: Header = { name: "x-ratelimit-observed", value: "refused" };

export class Gate<R extends object, C = undefined> {
  readonly #options: CheckedOptions<R>;
  readonly #clients: Clients<R, C>;
  readonly #reporter: Reporter;
  readonly #opening: Promise<RateLimiter>;
  /** Whether a request may wait for tokens. */
  readonly #waits: boolean;
  /** Whether a request passes without a call to a function of the options, and without waiting. */
  readonly #asksNothing: boolean;
  /** Whether requests say nothing beyond what they consume. */
  readonly #isPlain: boolean;
  /** Whether a header needs the time, which is not free. */
  readonly #tellsTime: boolean;
  #limiter: RateLimiter | undefined;
  #rules: PassageRules | undefined;

  constructor(options: CheckedOptions<R>, reading: Reading<R, C>) {
    this.#options = options;
    this.#clients = new Clients(options, reading);
    this.#reporter = new Reporter(options.events);
    this.#waits = options.maxWaitSeconds > 0 && !options.observes;
    this.#tellsTime = options.headers.some((style) => TELLS_TIME.includes(style));
    this.#isPlain =
      !this.#waits &&
      !options.observes &&
      options.missingLimits === undefined &&
      options.onUnavailable === undefined;
    this.#asksNothing =
      !this.#waits &&
      options.skip === undefined &&
      options.entityId === undefined &&
      typeof options.resource === "string" &&
      typeof options.consume === "object";
    this.#opening = this.#opened(options.limiter ?? RateLimiter.open("memory:"));
    // Each request reports it; until the first one comes it must not end the process.
    this.#opening.catch(() => undefined);
  }

  /** Waits for the limiter. One whose store cannot be reached yet is used all the same. */
  async #opened(opening: RateLimiter | Promise<RateLimiter>): Promise<RateLimiter> {
    let limiter: RateLimiter;
    try {
      limiter = await opening;
    } catch (error) {
      const late = triesOn(error);
      if (late === undefined) throw error;
      limiter = late;
    }
    if (!(limiter instanceof RateLimiter)) {
      throw new ValidationError("limiter", limiter, `expected a RateLimiter, got ${show(limiter)}`);
    }
    this.#limiter = limiter;
    return limiter;
  }

  /**
   * Decides about a request, at once where nothing is waited for. What it throws belongs to the
   * framework's error handling; earlier middlewares have then refunded what they consumed.
   */
  enter(request: R, connection: C): Entry | Promise<Entry> {
    const limiter = this.#limiter;
    if (limiter === undefined || !this.#asksNothing) return this.#asked(request, connection);
    const { resource, consume } = this.#options;
    let target: Target;
    let decision: Decision | Promise<Decision>;
    try {
      target = {
        entityId: this.#clients.addressOf(request, connection),
        resource: resource as string,
      };
      decision = limiter[TRY_NOW](this.#request(limiter, target, consume as Amounts));
    } catch {
      // It fails on the slow path too, which reports it.
      return this.#asked(request, connection);
    }
    return isUndecided(decision) || !decision.granted
      ? this.#entered(request, this.#decided(request, limiter, target, decision))
      : this.#grant(request, limiter, target, decision.lease);
  }

  #asked(request: R, connection: C): Promise<Entry> {
    return this.#entered(request, this.#ask(request, connection));
  }

  async #entered(request: R, entry: Promise<Entry>): Promise<Entry> {
    try {
      return await entry;
    } catch (error) {
      await turnBackAll(request);
      throw error;
    }
  }

  async #ask(request: R, connection: C): Promise<Entry> {
    if (this.#clients.isGone(request, connection)) return this.#gone(request);
    const { consume, resource, skip } = this.#options;
    if (skip !== undefined && (await skip(request))) return PASSED;
    const entityId = await this.#clients.entityOf(request, connection);
    if (entityId === undefined) return this.#refuse(request, {}, anonymousAnswer());
    const resourceName = typeof resource === "function" ? await resource(request) : resource;
    const target = { entityId, resource: resourceName };
    let limiter: RateLimiter;
    try {
      limiter = this.#limiter ?? (await this.#opening);
    } catch (error) {
      return this.#failed(request, target, error);
    }
    const amounts =
      typeof consume === "object" ? consume : await this.#amountsOf(request, limiter, target);
    const signal = this.#waits ? this.#clients.goneSignal(request, connection) : undefined;
    const decision = limiter.tryAcquire(this.#request(limiter, target, amounts, signal));
    return this.#decided(request, limiter, target, decision, signal);
  }

  /** Returns the request to the limiter. A limiter reads each field, so most requests have few. */
  #request(
    limiter: RateLimiter,
    { entityId, resource }: Target,
    consume: Amounts,
    signal?: AbortSignal,
  ): AcquireRequest {
    const { limits, missingLimits, observes } = this.#options;
    const totals = limiter[TOTALS] ?? true;
    if (this.#isPlain) return { entityId, resource, consume, limits, totals };
    const maxWaitSeconds = this.#waits ? this.#options.maxWaitSeconds : undefined;
    // A middleware that only observes must not block a request during an outage.
    const onUnavailable = observes ? "allow" : this.#options.onUnavailable;
    return {
      entityId,
      resource,
      consume,
      limits,
      maxWaitSeconds,
      signal,
      missingLimits,
      onUnavailable,
      totals,
    };
  }

  async #decided(
    request: R,
    limiter: RateLimiter,
    target: Target,
    decided: Decision | Promise<Decision>,
    signal?: AbortSignal,
  ): Promise<Entry> {
    try {
      const decision = await decided;
      return decision.granted
        ? this.#grant(request, limiter, target, decision.lease)
        : await this.#refused(request, limiter, target, decision);
    } catch (error) {
      if (signal?.aborted === true && error === signal.reason) {
        return this.#gone(request);
      }
      return this.#failed(request, target, error);
    }
  }

  #grant(request: R, limiter: RateLimiter, target: Target, lease: Lease): Entry {
    const passage = new Passage(lease, target, this.#rulesOf(limiter));
    addPassage(request, passage);
    this.#reporter.emit(lease.degraded ? "degraded" : "granted", target);
    const headers = lease.degraded ? [DEGRADED] : this.#headers(limiter, target, lease);
    return { kind: "passed", headers, passage };
  }

  #rulesOf(limiter: RateLimiter): PassageRules {
    const { refundWhen, refundsErrors } = this.#options;
    this.#rules ??= {
      timer: timerOf(limiter),
      refundWhen,
      refundsErrors,
      endFailed: (target, cause) => this.#reporter.emit("commit_failed", { ...target, cause }),
    };
    return this.#rules;
  }

  async #refused(
    request: R,
    limiter: RateLimiter,
    target: Target,
    refusal: Refusal,
  ): Promise<Entry> {
    const { exposeParents, observes, refused } = this.#options;
    const { retryAfterSeconds } = refusal;
    const headers = this.#headers(limiter, target, refusal);
    const answer = refusedAnswer(refusal, exposeParents, headers);
    const replaced =
      refused === undefined || observes
        ? answer
        : replacedAnswer(answer, await refused(refusal, request));
    return this.#refuse(request, { ...target, retryAfterSeconds }, replaced, headers);
  }

  /** Answers for an error that has a status of its own; the framework gets all others. */
  async #failed(request: R, target: Target, error: unknown): Promise<Entry> {
    const { observes, onUnavailable } = this.#options;
    if (error instanceof RateLimiterUnavailable && (observes || onUnavailable === "allow")) {
      this.#reporter.emit("degraded", { ...target, cause: error });
      return { kind: "passed", headers: [DEGRADED] };
    }
    if (error instanceof RateLimiterUnavailable) {
      this.#reporter.emit("unavailable", { ...target, status: 503, cause: error });
      await turnBackAll(request);
      return { kind: "answered", answer: unavailableAnswer() };
    }
    if (error instanceof ResourceDisabled) {
      return this.#refuse(request, target, disabledAnswer());
    }
    throw error;
  }

  /**
   * Answers instead of the handler and refunds what earlier middlewares consumed. A middleware that
   * only observes reports it, and passes the request.
   */
  async #refuse(
    request: R,
    details: Omit<HttpEvent, "type">,
    answer: Answer,
    headers: readonly Header[] = [],
  ): Promise<Entry> {
    const { observes } = this.#options;
    this.#reporter.emit(observes ? "observed" : "refused", { ...details, status: answer.status });
    if (observes) return { kind: "passed", headers: [...headers, OBSERVED] };
    await turnBackAll(request);
    return { kind: "answered", answer };
  }

  async #gone(request: R): Promise<Entry> {
    await turnBackAll(request);
    return { kind: "gone" };
  }

  async #amountsOf(request: R, limiter: RateLimiter, target: Target): Promise<Amounts> {
    const { consume } = this.#options;
    if (typeof consume === "function") return consume(request);
    try {
      const { limits } = this.#options;
      const totals = limiter[TOTALS] ?? true;
      const names = await limiter[LIMIT_NAMES]({ ...target, limits, totals });
      return Object.fromEntries(names.map((name) => [name, 1]));
    } catch (error) {
      // The acquire fails the same way, and applies `onUnavailable`.
      if (error instanceof RateLimiterUnavailable || error instanceof ResourceDisabled) return {};
      throw error;
    }
  }

  #headers(
    limiter: RateLimiter,
    { entityId }: Target,
    { statuses }: Pick<Lease, "statuses">,
  ): readonly Header[] {
    const { exposeParents, headers } = this.#options;
    if (headers.length === 0) return NO_HEADERS;
    const shown = exposeParents ? statuses : ownStatuses(statuses, entityId);
    const { clock } = limiter.repository[INTERNALS];
    const nowMs = this.#tellsTime ? clock() : 0;
    return headersOf(headers, { statuses: shown, entityId, nowMs });
  }
}
