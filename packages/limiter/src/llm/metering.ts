/** Grants calls: estimates the usage of a call, and acquires it. */

import { LRUCache } from "lru-cache";
import type { Decision, Refusal } from "../acquire/decision.ts";
import type { Lease } from "../acquire/lease/lease.ts";
import { RateLimiter } from "../acquire/rate-limiter.ts";
import type { Timer } from "../base/time.ts";
import { show } from "../domain/check.ts";
import {
  RateLimiterUnavailable,
  ResourceDisabled,
  ValidationError,
} from "../domain/errors/errors.ts";
import { INTERNALS } from "../repository/internals.ts";
import type { CallFacts } from "./call.ts";
import { amountsOf, type CallHost, type CallTarget, MeteredCall } from "./metered-call.ts";
import type { CheckedLlmOptions } from "./options.ts";
import { OutputEstimate } from "./output-estimate.ts";
import { estimateInput } from "./prompt-size.ts";
import { NO_USAGE, type Usage } from "./usage.ts";

/** A refusal by a limit, or the reason why no decision was made. */
export type NotGranted = Refusal | ResourceDisabled | RateLimiterUnavailable;

/** The resource of calls that name no model. */
const NAMELESS_RESOURCE = "llm";
const COMMIT_FAILED_CODE = "ZAEL_LLM_COMMIT_FAILED";
/** How often an estimate is cut when other calls consume what was left. */
const ATTEMPTS_MAX = 3;
/** How many models are remembered to have reasoning. */
const MODELS_MAX = 1000;

export class Metering implements CallHost {
  readonly options: CheckedLlmOptions;
  readonly timer: Timer;
  readonly #limiter: RateLimiter;
  readonly #outputs: OutputEstimate;
  readonly #reasoningModels = new LRUCache<string, true>({ max: MODELS_MAX });

  constructor(limiter: RateLimiter, options: CheckedLlmOptions) {
    checkLimiter(limiter);
    this.#limiter = limiter;
    this.options = options;
    this.timer = limiter.repository[INTERNALS].timer;
    this.#outputs = new OutputEstimate(options.reserve);
  }

  /** Acquires the estimate of a call. `bucket` replaces entity and resource of the options. */
  async begin(
    facts: CallFacts,
    bucket?: { readonly entityId: string; readonly resource: string },
  ): Promise<MeteredCall | NotGranted> {
    facts.signal?.throwIfAborted();
    const { entityId, resource } = bucket ?? (await this.#bucketOf(facts));
    const target = { entityId, resource, facts };
    try {
      return await this.#acquire(target);
    } catch (error) {
      if (error instanceof ResourceDisabled || error instanceof RateLimiterUnavailable) {
        return error;
      }
      throw error;
    }
  }

  learn({ facts, ...bucket }: CallTarget, output: number): void {
    if (facts.hasOutput) this.#outputs.learn(bucket, output);
  }

  rememberReasoning(model: string): void {
    this.#reasoningModels.set(model, true);
  }

  hasReasoning(model: string): boolean {
    return this.#reasoningModels.has(model);
  }

  endFailed({ entityId, resource }: CallTarget, error: unknown): void {
    const sentence = `Could not write the usage of ${entityId} for ${resource}. Its estimate stays.`;
    process.emitWarning(sentence, { code: COMMIT_FAILED_CODE, detail: String(error) });
  }

  async #bucketOf({ call }: CallFacts): Promise<{ entityId: string; resource: string }> {
    const { entityId: given, resource: named } = this.options;
    const entityId = typeof given === "function" ? await given(call) : given;
    return { entityId, resource: named?.(call) ?? (call.model || NAMELESS_RESOURCE) };
  }

  /**
   * Acquires the estimate. A learned estimate of the output must not be the only reason for a
   * refusal or a wait: it is cut to what is left. Other calls may consume that at the same time.
   */
  async #acquire(target: CallTarget): Promise<MeteredCall | Refusal> {
    const { reserve, maxWaitSeconds } = this.options;
    let usage = this.#estimate(target);
    let waitSeconds = reserve === "learned" && usage.output > 0 ? 0 : maxWaitSeconds;
    for (let attempt = 1; ; attempt += 1) {
      const decision = await this.#tryAcquire(target, usage, waitSeconds);
      if (decision.granted) return this.#metered(decision.lease, target, usage);
      const output = this.#outputLeft(decision, usage);
      const hasWaited = waitSeconds > 0 && !decision.neverFits;
      const isSame = output === usage.output && waitSeconds === maxWaitSeconds;
      if (attempt === ATTEMPTS_MAX || hasWaited || isSame) return decision;
      usage = { ...usage, output };
      waitSeconds = maxWaitSeconds;
    }
  }

  #tryAcquire(target: CallTarget, usage: Usage, maxWaitSeconds: number): Promise<Decision> {
    const { entityId, resource, facts } = target;
    return this.#limiter.tryAcquire({
      entityId,
      resource,
      consume: amountsOf(this.options.count, usage),
      missingLimits: "ignore",
      maxWaitSeconds,
      // A call that does not wait is decided at once, and a signal would keep it off the fast path.
      ...(maxWaitSeconds === 0 ? {} : { signal: facts.signal }),
    });
  }

  async #metered(lease: Lease, target: CallTarget, estimate: Usage): Promise<MeteredCall> {
    if (!lease.degraded) await this.#checkGiven(lease, target);
    // The prompt would stay in memory until the answer ends.
    const facts = { ...target.facts, prompt: undefined };
    return new MeteredCall(this, { ...target, facts }, lease, estimate);
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

  #estimate({ entityId, resource, facts }: CallTarget): Usage {
    const { call, prompt, hasOutput, outputMax } = facts;
    if (prompt === undefined) return NO_USAGE;
    const input = estimateInput(prompt, call.model, this.options.tokenizer);
    const output = hasOutput ? this.#outputs.of({ entityId, resource }, outputMax) : 0;
    return { input, cached: 0, output };
  }

  /**
   * Returns the output to ask for after a refusal. A learned output is cut to what the limits have
   * left, at least to 1. An output that the operator set is cut only where no bucket could hold it.
   */
  #outputLeft(refusal: Refusal, { input, output }: Usage): number {
    const { reserve, count } = this.options;
    let left = output;
    for (const { limitName, limit, available, retryAfterSeconds } of refusal.violations) {
      const isTooLarge = retryAfterSeconds === Number.POSITIVE_INFINITY;
      if (reserve !== "learned" && !isTooLarge) continue;
      const most = reserve === "learned" ? available : limit.capacity;
      if (count.outputTokens.includes(limitName)) left = Math.min(left, most);
      else if (count.tokens.includes(limitName)) left = Math.min(left, most - input);
    }
    return Math.max(left, Math.min(1, output));
  }
}

/** Throws for anything but a limiter; a forgotten `await` is the likeliest mistake. */
function checkLimiter(limiter: unknown): void {
  if (limiter instanceof RateLimiter) return;
  const came = limiter instanceof Promise ? "a promise; await RateLimiter.open(…)" : show(limiter);
  throw new ValidationError("limiter", limiter, `expected a RateLimiter, got ${came}`);
}
