/** Grants calls: finds out what a call will consume, and acquires it. */

import type { Decision, Refusal } from "../acquire/decision.ts";
import type { Lease } from "../acquire/lease/lease.ts";
import { RateLimiter, TRY_NOW } from "../acquire/rate-limiter.ts";
import type { Timer } from "../base/time.ts";
import { show } from "../domain/check.ts";
import {
  RateLimiterUnavailable,
  ResourceDisabled,
  ValidationError,
} from "../domain/errors/errors.ts";
import { INTERNALS } from "../repository/internals.ts";
import { amountsOf } from "./amounts.ts";
import { type CallHost, type CallTarget, MeteredCall } from "./metered-call.ts";
import type { CheckedLlmOptions, LlmCall } from "./options.ts";
import { OutputEstimate } from "./output-estimate.ts";
import { estimateInput } from "./prompt-size.ts";
import type { Usage } from "./usage.ts";

/** What is known of a call before it is made. */
export interface CallFacts {
  readonly call: LlmCall;
  /** What the model reads; `undefined` where tokens are not counted. */
  readonly prompt: readonly unknown[] | undefined;
  /** `false` for calls that have no output, such as embeddings. */
  readonly hasOutput: boolean;
  /** The most output there can be, over all choices. */
  readonly outputMax: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A granted call, or the reason why it was not granted. */
type Begun = MeteredCall | NotGranted;

/** A refusal by a limit, or the reason why no decision was made. */
export type NotGranted = Refusal | ResourceDisabled | RateLimiterUnavailable;

const NO_USAGE: Usage = { input: 0, cached: 0, output: 0 };
/** The resource of calls that name no model. */
const NAMELESS_RESOURCE = "llm";
const COMMIT_FAILED_CODE = "ZAEL_LLM_COMMIT_FAILED";

export class Metering implements CallHost {
  readonly options: CheckedLlmOptions;
  readonly timer: Timer;
  readonly #limiter: RateLimiter;
  readonly #outputs: OutputEstimate;

  constructor(limiter: RateLimiter, options: CheckedLlmOptions) {
    checkLimiter(limiter);
    this.#limiter = limiter;
    this.options = options;
    this.timer = limiter.repository[INTERNALS].timer;
    this.#outputs = new OutputEstimate(options.reserve);
  }

  /**
   * Acquires the estimate of a call: at once where the store answers at once. `known` replaces the
   * entity of the options.
   */
  begin(facts: CallFacts, known?: string): Begun | Promise<Begun> {
    facts.signal?.throwIfAborted();
    if (known !== undefined) return this.#begin(facts, known);
    return this.#entityOf(facts.call).then((entityId) => this.#begin(facts, entityId));
  }

  #begin(facts: CallFacts, entityId: string): Begun | Promise<Begun> {
    const { call } = facts;
    const { resource: named } = this.options;
    const resource = named === undefined ? call.model || NAMELESS_RESOURCE : named(call);
    const estimate = this.#estimate(facts, resource);
    const target = { entityId, resource, facts };
    let now: Decision | Promise<Decision>;
    try {
      now = this.#tryAcquire(target, estimate);
    } catch (error) {
      return notDecided(error);
    }
    if (now instanceof Promise || !now.granted) return this.#beginLater(now, target, estimate);
    return this.#metered(now.lease, target, estimate);
  }

  async #beginLater(
    deciding: Decision | Promise<Decision>,
    target: CallTarget,
    estimate: Usage,
  ): Promise<Begun> {
    try {
      const decision = await deciding;
      if (decision.granted) return await this.#metered(decision.lease, target, estimate);
      const clipped = decision.neverFits ? this.#clipped(decision, estimate) : undefined;
      if (clipped === undefined) return decision;
      const second = await this.#tryAcquire(target, clipped);
      return second.granted ? await this.#metered(second.lease, target, clipped) : second;
    } catch (error) {
      return notDecided(error);
    }
  }

  #tryAcquire(
    { entityId, resource, facts }: CallTarget,
    usage: Usage,
  ): Decision | Promise<Decision> {
    const { count, maxWaitSeconds } = this.options;
    // A call that does not wait is decided at once, and a signal would only slow it down.
    const signal = maxWaitSeconds === 0 ? undefined : facts.signal;
    const consume = amountsOf(count, usage);
    const request = {
      entityId,
      resource,
      consume,
      missingLimits: "ignore",
      maxWaitSeconds,
    } as const;
    return this.#limiter[TRY_NOW](signal === undefined ? request : { ...request, signal });
  }

  #metered(lease: Lease, target: CallTarget, estimate: Usage): MeteredCall | Promise<MeteredCall> {
    const metered = new MeteredCall(this, target, lease, estimate);
    if (this.options.count.given.length === 0 || lease.degraded) return metered;
    return this.#checkGiven(lease, target).then(() => metered);
  }

  learn({ facts, resource }: CallTarget, output: number): void {
    if (facts.hasOutput) this.#outputs.learn(resource, output);
  }

  endFailed({ entityId, resource }: CallTarget, error: unknown): void {
    const sentence =
      `Could not write the usage of ${entityId} for ${resource}: ` + "the estimate stays consumed";
    process.emitWarning(sentence, { code: COMMIT_FAILED_CODE, detail: String(error) });
  }

  /** Refuses, with nothing consumed, a limit of the options that the entity does not have. */
  async #checkGiven(lease: Lease, { entityId, resource }: CallTarget): Promise<void> {
    const names = lease.statuses.map(({ limitName }) => limitName);
    const missing = this.options.count.given.find((name) => !names.includes(name));
    if (missing === undefined) return;
    await lease.rollback();
    const reason = `"${missing}" is none of the limits of ${entityId} for ${resource}`;
    throw new ValidationError("count", missing, reason);
  }

  async #entityOf(call: LlmCall): Promise<string> {
    const { entityId } = this.options;
    return typeof entityId === "function" ? entityId(call) : entityId;
  }

  #estimate({ call, prompt, hasOutput, outputMax }: CallFacts, resource: string): Usage {
    if (prompt === undefined) return NO_USAGE;
    const input = estimateInput(prompt, call.model, this.options.tokenizer);
    const output = hasOutput ? this.#outputs.of(resource, outputMax) : 0;
    return { input, cached: 0, output };
  }

  /**
   * An estimate may be larger than a whole bucket although the call is not. The output is clipped
   * to what a full bucket holds; a prompt that is too large stays too large.
   */
  #clipped(refusal: Refusal, { input, cached, output }: Usage): Usage | undefined {
    const { outputTokens, tokens } = this.options.count;
    let most = output;
    for (const { limitName, limit, retryAfterSeconds } of refusal.violations) {
      if (retryAfterSeconds !== Number.POSITIVE_INFINITY) continue;
      if (outputTokens.includes(limitName)) most = Math.min(most, limit.capacity);
      else if (tokens.includes(limitName)) most = Math.min(most, limit.capacity - input);
      else return undefined;
    }
    return most < 0 || most === output ? undefined : { input, cached, output: most };
  }
}

/** A forgotten `await` is the likeliest mistake. */
function checkLimiter(limiter: unknown): void {
  if (limiter instanceof RateLimiter) return;
  const came = limiter instanceof Promise ? "a promise; await RateLimiter.open(…)" : show(limiter);
  throw new ValidationError("limiter", limiter, `expected a RateLimiter, got ${came}`);
}

/** Returns the reason why no decision was made; throws every other error. */
function notDecided(error: unknown): ResourceDisabled | RateLimiterUnavailable {
  if (error instanceof ResourceDisabled || error instanceof RateLimiterUnavailable) return error;
  throw error;
}
