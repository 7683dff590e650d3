/**
 * The decision about one request, the same for every framework: which entity consumes what, and
 * what the response says about it. Adapters tell it of a request, carry out what it says, and end
 * the passage when the response has ended.
 */

import { show } from "../domain/check.ts";
import { RateLimiterUnavailable, ResourceDisabled, ValidationError } from "../domain/errors.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import type { AcquireRequest } from "../limiter/acquire-request.ts";
import type { Amounts } from "../limiter/amounts.ts";
import type { Decision, Refusal } from "../limiter/decision.ts";
import type { Lease } from "../limiter/lease.ts";
import { RateLimiter, TRY_NOW } from "../limiter/rate-limiter.ts";
import { INTERNALS } from "../repository/internals.ts";
import {
  type Answer,
  anonymousAnswer,
  disabledAnswer,
  refusedAnswer,
  replacedAnswer,
  unavailableAnswer,
} from "./answer.ts";
import { addressId } from "./client-address.ts";
import { entityIdOf } from "./entity-ids.ts";
import type { HttpEvent } from "./events.ts";
import { type Header, headersOf } from "./headers.ts";
import type { CheckedOptions } from "./options.ts";
import { addPassage, Passage, type PassageRules, type Target, turnBackAll } from "./passage.ts";

/** A request, as an adapter presents it. */
export interface Arrival<R> {
  /** What the user's functions are called with. */
  readonly request: R;
  /** The object that handlers pass to `leaseOf`. */
  readonly identity: object;
  /** The client's address as the framework reports it. */
  readonly address: () => string | undefined;
  /** Aborts when the client goes away. Asked for only where a request waits for tokens. */
  readonly signal: () => AbortSignal | undefined;
}

/** Call the handler, set the headers, and end the passage (if any) with the response. */
export interface Passed {
  readonly kind: "passed";
  readonly headers: readonly Header[];
  readonly passage?: Passage;
}

/** What to do with the request. */
export type Entry =
  | Passed
  /** Send this instead of calling the handler. */
  | { readonly kind: "answered"; readonly answer: Answer }
  /** The client went away while it waited: there is no one to answer. */
  | { readonly kind: "gone" };

const PASSED: Entry = { kind: "passed", headers: [] };
const DEGRADED: Header = { name: "x-ratelimit-degraded", value: "1" };
const OBSERVED: Header = { name: "x-ratelimit-observed", value: "refused" };

export class Gate<R> {
  readonly #options: CheckedOptions<R>;
  readonly #opening: Promise<RateLimiter>;
  /** Whether a request may wait for tokens. */
  readonly #waits: boolean;
  /** Whether a request passes without a call to a function of the options, and without waiting. */
  readonly #asksNothing: boolean;
  #limiter: RateLimiter | undefined;
  #rules: PassageRules | undefined;
  /** The process is warned once: it would be with every request. */
  #eventsFailed = false;

  constructor(options: CheckedOptions<R>) {
    this.#options = options;
    this.#waits = options.maxWaitSeconds > 0 && !options.observes;
    this.#asksNothing =
      !this.#waits &&
      options.skip === undefined &&
      options.entityId === undefined &&
      typeof options.resource === "string" &&
      typeof options.consume === "object";
    this.#opening = Promise.resolve(options.limiter ?? RateLimiter.open("memory:")).then(
      (opened) => {
        if (!(opened instanceof RateLimiter)) {
          throw new ValidationError(
            "limiter",
            opened,
            `expected a RateLimiter, got ${show(opened)}`,
          );
        }
        this.#limiter = opened;
        return opened;
      },
    );
    // Each request reports it; until the first one comes it must not end the process.
    this.#opening.catch(() => undefined);
  }

  /**
   * Decides about a request, at once where nothing is waited for. What it throws belongs to the
   * framework's error handling; earlier middlewares have then refunded what they consumed.
   */
  enter(arrival: Arrival<R>): Entry | Promise<Entry> {
    const limiter = this.#limiter;
    const now = limiter === undefined ? undefined : this.#decideNow(arrival, limiter);
    if (limiter === undefined || now === undefined) {
      return this.#entered(arrival, this.#ask(arrival));
    }
    const { target, decision } = now;
    return decision instanceof Promise || !decision.granted
      ? this.#entered(arrival, this.#decided(arrival, limiter, target, decision))
      : this.#grant(arrival, limiter, target, decision.lease);
  }

  /** Asks the limiter, where nothing else has to be asked before. */
  #decideNow(arrival: Arrival<R>, limiter: RateLimiter) {
    const { resource, consume } = this.#options;
    if (!this.#asksNothing) return undefined;
    try {
      const target = { entityId: this.#addressOf(arrival), resource: resource as string };
      return { target, decision: limiter[TRY_NOW](this.#request(target, consume as Amounts)) };
    } catch {
      // It fails on the slow path too, which reports it.
      return undefined;
    }
  }

  async #entered(arrival: Arrival<R>, entry: Promise<Entry>): Promise<Entry> {
    try {
      return await entry;
    } catch (error) {
      await turnBackAll(arrival.identity);
      throw error;
    }
  }

  async #ask(arrival: Arrival<R>): Promise<Entry> {
    const { request } = arrival;
    if (this.#isGone(arrival)) return this.#gone(arrival);
    const { consume, entityId: keyOf, resource, skip } = this.#options;
    if (skip !== undefined && (await skip(request))) return PASSED;
    const entityId =
      keyOf === undefined ? this.#addressOf(arrival) : this.#checkKey(await keyOf(request));
    if (entityId === undefined) return this.#refuse(arrival, {}, anonymousAnswer());
    const resourceName = typeof resource === "function" ? await resource(request) : resource;
    const target = { entityId, resource: resourceName };
    let limiter: RateLimiter;
    try {
      limiter = this.#limiter ?? (await this.#opening);
    } catch (error) {
      return this.#failed(arrival, target, error);
    }
    const amounts =
      typeof consume === "object" ? consume : await this.#amountsOf(request, limiter, target);
    const signal = this.#waits ? arrival.signal() : undefined;
    const decision = limiter.tryAcquire(this.#request(target, amounts, signal));
    return this.#decided(arrival, limiter, target, decision, signal);
  }

  /** What the limiter is asked for. It has the same fields each time, which engines are good at. */
  #request({ entityId, resource }: Target, consume: Amounts, signal?: AbortSignal): AcquireRequest {
    const { limits, missingLimits, observes } = this.#options;
    const maxWaitSeconds = this.#waits ? this.#options.maxWaitSeconds : undefined;
    // A middleware that only observes must not stand in the way of a request during an outage.
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
    };
  }

  async #decided(
    arrival: Arrival<R>,
    limiter: RateLimiter,
    target: Target,
    decided: Decision | Promise<Decision>,
    signal?: AbortSignal,
  ): Promise<Entry> {
    try {
      const decision = await decided;
      return decision.granted
        ? this.#grant(arrival, limiter, target, decision.lease)
        : await this.#refused(arrival, limiter, target, decision);
    } catch (error) {
      if (signal?.aborted === true && error === signal.reason) {
        return this.#gone(arrival);
      }
      return this.#failed(arrival, target, error);
    }
  }

  #grant(arrival: Arrival<R>, limiter: RateLimiter, target: Target, lease: Lease): Entry {
    const passage = new Passage(lease, target, this.#rulesOf(limiter));
    addPassage(arrival.identity, passage);
    this.#tell(lease.degraded ? "degraded" : "granted", target);
    const headers = lease.degraded ? [DEGRADED] : this.#headers(limiter, lease.statuses);
    return { kind: "passed", headers, passage };
  }

  #rulesOf(limiter: RateLimiter): PassageRules {
    const { refundWhen, refundsErrors } = this.#options;
    this.#rules ??= {
      timer: limiter.repository[INTERNALS].timer,
      refundWhen,
      refundsErrors,
      endFailed: (target, cause) => this.#tell("commit_failed", { ...target, cause }),
    };
    return this.#rules;
  }

  async #refused(
    arrival: Arrival<R>,
    limiter: RateLimiter,
    target: Target,
    refusal: Refusal,
  ): Promise<Entry> {
    const { exposeParents, observes, refused } = this.#options;
    const { retryAfterSeconds } = refusal;
    const headers = this.#headers(limiter, refusal.statuses);
    const answer = refusedAnswer(refusal, exposeParents, headers);
    const replaced =
      refused === undefined || observes
        ? answer
        : replacedAnswer(answer, await refused(refusal, arrival.request));
    return this.#refuse(arrival, { ...target, retryAfterSeconds }, replaced, headers);
  }

  /** Answers for an error that has a status of its own; the framework gets all others. */
  async #failed(arrival: Arrival<R>, target: Target, error: unknown): Promise<Entry> {
    const { observes, onUnavailable } = this.#options;
    if (error instanceof RateLimiterUnavailable && (observes || onUnavailable === "allow")) {
      this.#tell("degraded", { ...target, cause: error });
      return { kind: "passed", headers: [DEGRADED] };
    }
    if (error instanceof RateLimiterUnavailable) {
      this.#tell("unavailable", { ...target, status: 503, cause: error });
      await turnBackAll(arrival.identity);
      return { kind: "answered", answer: unavailableAnswer() };
    }
    if (error instanceof ResourceDisabled) {
      return this.#refuse(arrival, target, disabledAnswer("This resource is switched off."));
    }
    throw error;
  }

  /**
   * Answers instead of the handler and refunds what earlier middlewares consumed. A middleware that
   * only observes reports it, and passes the request.
   */
  async #refuse(
    arrival: Arrival<R>,
    told: Omit<HttpEvent, "type">,
    answer: Answer,
    headers: readonly Header[] = [],
  ): Promise<Entry> {
    const { observes } = this.#options;
    this.#tell(observes ? "observed" : "refused", { ...told, status: answer.status });
    if (observes) return { kind: "passed", headers: [...headers, OBSERVED] };
    await turnBackAll(arrival.identity);
    return { kind: "answered", answer };
  }

  /** A socket that was closed has no address any more. */
  #isGone(arrival: Arrival<R>): boolean {
    if (this.#options.entityId !== undefined || arrival.address() !== undefined) return false;
    return arrival.signal()?.aborted === true;
  }

  async #gone(arrival: Arrival<R>): Promise<Entry> {
    await turnBackAll(arrival.identity);
    return { kind: "gone" };
  }

  #addressOf(arrival: Arrival<R>): string {
    const { anonymous, ipv6Subnet } = this.#options;
    const address = arrival.address();
    if (address !== undefined) return addressId(address, ipv6Subnet);
    if (anonymous !== undefined) return anonymous;
    throw new ValidationError(
      "entityId",
      undefined,
      "the client's address is not known here; pass `entityId` to name the entity of a request",
    );
  }

  #checkKey(key: string | undefined): string | undefined {
    if (key === undefined) return this.#options.anonymous;
    if (typeof key !== "string" || key === "") {
      throw new ValidationError(
        "entityId",
        key,
        `expected \`entityId\` to return a text that is not empty, or undefined, got ${show(key)}`,
      );
    }
    return entityIdOf(key);
  }

  async #amountsOf(request: R, limiter: RateLimiter, target: Target): Promise<Amounts> {
    const { consume } = this.#options;
    if (typeof consume === "function") return consume(request);
    try {
      const { entityId, resource } = target;
      const resolved = await limiter.repository.limits.resolve(entityId, resource);
      return Object.fromEntries((resolved?.limits ?? []).map(({ name }) => [name, 1]));
    } catch (error) {
      // During an outage the acquire fails the same way, and applies `onUnavailable`.
      if (error instanceof RateLimiterUnavailable) return {};
      throw error;
    }
  }

  #headers(limiter: RateLimiter, statuses: readonly LimitStatus[]): Header[] {
    const { exposeParents, headers } = this.#options;
    if (headers.length === 0) return [];
    const own = statuses[0]?.entityId;
    const isOwn = ({ entityId }: LimitStatus) => entityId === own;
    const shown = exposeParents || statuses.every(isOwn) ? statuses : statuses.filter(isOwn);
    const { clock } = limiter.repository[INTERNALS];
    return headersOf(headers, { statuses: shown, nowMs: clock() });
  }

  #tell(type: HttpEvent["type"], told: Omit<HttpEvent, "type">): void {
    const { events } = this.#options;
    if (events !== undefined) this.#hand({ type, ...told }, events);
    else if (type === "commit_failed") {
      const sentence =
        `Could not end the lease of ${told.entityId} for ${told.resource}: ` +
        "its corrections are not written";
      warn("ZAEL_HTTP_COMMIT_FAILED", sentence, told.cause);
    }
  }

  /** The user's listener must not fail a request. */
  #hand(event: HttpEvent, events: (event: HttpEvent) => void): void {
    try {
      events(event);
    } catch (error) {
      if (this.#eventsFailed) return;
      this.#eventsFailed = true;
      warn("ZAEL_HTTP_EVENTS_FAILED", "The function `events` of an HTTP middleware threw", error);
    }
  }
}

function warn(code: string, sentence: string, cause: unknown): void {
  process.emitWarning(sentence, { code, detail: String(cause) });
}
