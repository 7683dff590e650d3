/** Grants calls: estimates the usage of a call, and acquires it. */

import { LRUCache } from "lru-cache";
import type { AcquireRequest, AmountsFor } from "../acquire/acquire-request.ts";
import type { Decision, Refusal } from "../acquire/decision.ts";
import { AMOUNTS_FOR, TOTALS } from "../acquire/internal-names.ts";
import { timerOf } from "../acquire/late-store.ts";
import type { Lease } from "../acquire/lease/lease.ts";
import { RateLimiter } from "../acquire/rate-limiter.ts";
import type { Timer } from "../base/time.ts";
import { currencyOf } from "../core/micro-dollars.ts";
import { show } from "../domain/check.ts";
import {
  RateLimiterUnavailable,
  ResourceDisabled,
  ValidationError,
} from "../domain/errors/errors.ts";
import { ModelNotPriced } from "../domain/errors/model-not-priced.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import type { Price } from "../domain/price.ts";
import { amountsOf } from "./amounts.ts";
import { type CallFacts, withoutPrompt } from "./call.ts";
import { type CallHost, type CallTarget, MeteredCall } from "./metered-call.ts";
import type { CheckedLlmOptions } from "./options.ts";
import { affordableOutput, leastOutput, mostOutput, outputCap } from "./output-cap.ts";
import { OutputEstimate } from "./output-estimate.ts";
import { Pricing, warnUnpriced } from "./pricing.ts";
import { estimateInput } from "./prompt-size.ts";
import { countersOf, tagEntityOf } from "./tags.ts";
import { NO_USAGE, type Usage } from "./usage.ts";

/** A refusal by a limit, or the reason why no decision was made. */
export type NotGranted = Refusal | ResourceDisabled | RateLimiterUnavailable | ModelNotPriced;

/** The resource of calls that name no model. */
const NAMELESS_RESOURCE = "llm";
const COMMIT_FAILED_CODE = "ZAEL_LLM_COMMIT_FAILED";
/** How often an estimate is cut when other calls consume what was left. */
const ATTEMPTS_MAX = 3;
/** How many buckets are remembered to have no limit in money. */
const MONEYLESS_MAX = 10_000;
const NOT_COUNTED =
  "The store cannot be reached, and a limit in money may apply: the call is not let through";
/** How many models are remembered to have reasoning. */
const MODELS_MAX = 1000;

export class Metering implements CallHost {
  readonly options: CheckedLlmOptions;
  readonly timer: Timer;
  readonly #limiter: RateLimiter;
  readonly #outputs: OutputEstimate;
  /** Set where money is reserved in another way than tokens. */
  readonly #moneyOutputs: OutputEstimate | undefined;
  readonly #pricing: Pricing;
  /** Buckets that no limit in money applies to; `undefined`: all calls may pass uncounted. */
  readonly #moneyless: LRUCache<string, true> | undefined;
  readonly #reasoningModels = new LRUCache<string, true>({ max: MODELS_MAX });

  /**
   * `blocksMoney`: while the store is away, a call is refused unless it is known that no limit in
   * money applies to it.
   */
  constructor(limiter: RateLimiter, options: CheckedLlmOptions, blocksMoney = false) {
    checkLimiter(limiter);
    this.#limiter = limiter;
    this.options = options;
    this.timer = timerOf(limiter);
    this.#outputs = new OutputEstimate(options.reserve);
    const { reserveMoney, prices } = options;
    this.#moneyOutputs = reserveMoney === undefined ? undefined : new OutputEstimate(reserveMoney);
    this.#moneyless = blocksMoney ? new LRUCache({ max: MONEYLESS_MAX }) : undefined;
    const stored = { list: () => limiter.repository.prices.list() };
    this.#pricing = new Pricing(stored, prices, () => this.timer.nowMs());
  }

  /** Acquires the estimate of a call. `bucket` replaces what the options say of it. */
  async begin(
    facts: CallFacts,
    bucket?: Omit<CallTarget, "facts">,
  ): Promise<MeteredCall | NotGranted> {
    facts.signal?.throwIfAborted();
    const { entityId, resource, tagId } = bucket ?? (await this.#bucketOf(facts));
    const target = { entityId, resource, tagId, facts };
    try {
      return await this.#acquire(target);
    } catch (error) {
      if (isNoGrant(error)) return error;
      throw error;
    }
  }

  learn({ facts, ...bucket }: CallTarget, output: number): void {
    if (!facts.hasOutput) return;
    this.#outputs.learn(bucket, output);
    this.#moneyOutputs?.learn(bucket, output);
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

  async #bucketOf({ call }: CallFacts): Promise<Omit<CallTarget, "facts">> {
    const { entityId: given, resource: named, tag } = this.options;
    const entityId = typeof given === "function" ? await given(call) : given;
    const resource = named?.(call) ?? (call.model || NAMELESS_RESOURCE);
    return { entityId, resource, tagId: tagEntityOf(tag, call) };
  }

  /**
   * Acquires the estimate. A learned estimate of the output must not be the only reason for a
   * refusal or a wait: it is cut to what is left. Other calls may consume that at the same time.
   */
  async #acquire(target: CallTarget): Promise<MeteredCall | Refusal> {
    const { reserve, capOutput, maxWaitSeconds } = this.options;
    let usage = this.#estimate(target);
    if (target.tagId !== undefined && this.#pricing.isUnread) await this.#readForTag();
    let isUnread = this.#pricing.isUnread;
    let price = this.#priceOf(target);
    // Own prices are read when a limit in money is known to apply, and before anything is consumed.
    const priced: AmountsFor = async (names) => {
      if (![...names].some((name) => this.#isMoney(name))) return undefined;
      if (this.#pricing.isUnread) await this.#pricing.refresh();
      isUnread = false;
      price = this.#priceOf(target);
      return new Map(Object.entries(amountsOf(this.options.count, usage, price)));
    };
    const isCut = (reserve === "learned" || capOutput) && usage.output > 0;
    let waitSeconds = isCut ? 0 : maxWaitSeconds;
    for (let attempt = 1; ; attempt += 1) {
      const amountsFor = isUnread ? priced : undefined;
      const decision = await this.#tryAcquire(target, usage, price, waitSeconds, amountsFor);
      this.#refreshPrices(target, decision);
      if (decision.granted) return this.#metered(decision.lease, target, usage, price);
      const cut = this.#cut(decision, target.facts, usage, price);
      const hasWaited = waitSeconds > 0 && !decision.neverFits;
      const isSame =
        cut.output === usage.output &&
        cut.moneyOutput === usage.moneyOutput &&
        waitSeconds === maxWaitSeconds;
      if (attempt === ATTEMPTS_MAX || hasWaited || isSame) return decision;
      usage = cut;
      waitSeconds = maxWaitSeconds;
    }
  }

  #priceOf({ facts }: CallTarget): Price | undefined {
    const { call, host, provider, hasOutput } = facts;
    const price = this.#pricing.find({ model: call.model, host, provider });
    return hasOutput && price?.hasOutput === false ? undefined : price;
  }

  /** Reads own prices for a cost centre. While the store is away, the acquire decides the call. */
  async #readForTag(): Promise<void> {
    try {
      await this.#pricing.refresh();
    } catch (error) {
      if (!isNoGrant(error)) throw error;
    }
  }

  /** Reads own prices again, meanwhile, where a limit in money or a tag was part of a decision. */
  #refreshPrices({ tagId }: CallTarget, decision: Decision): void {
    if (this.#pricing.isUnread || !this.#pricing.isOutdated) return;
    const statuses = decision.granted ? decision.lease.statuses : decision.statuses;
    // A cost centre counts money, and is not in the statuses.
    if (tagId === undefined && this.#moneyIn(statuses).length === 0) return;
    this.#pricing.refresh().catch(() => undefined);
  }

  #isMoney(limitName: string): boolean {
    return this.options.count.money.includes(limitName);
  }

  /** Returns the limits in money of a call. */
  #moneyIn(statuses: readonly LimitStatus[]): readonly LimitStatus[] {
    return statuses.filter(({ limitName }) => this.#isMoney(limitName));
  }

  #tryAcquire(
    target: CallTarget,
    usage: Usage,
    price: Price | undefined,
    maxWaitSeconds: number,
    amountsFor: AmountsFor | undefined,
  ): Promise<Decision> {
    const { entityId, resource, tagId, facts } = target;
    const consume = amountsOf(this.options.count, usage, price);
    const missingLimits = "ignore";
    const totals = this.#limiter[TOTALS] ?? true;
    // A call that does not wait is decided at once, and a signal would keep it off the fast path.
    const request =
      maxWaitSeconds === 0 || facts.signal === undefined
        ? { entityId, resource, consume, missingLimits, totals, maxWaitSeconds }
        : {
            entityId,
            resource,
            consume,
            missingLimits,
            totals,
            maxWaitSeconds,
            signal: facts.signal,
          };
    if (tagId === undefined && amountsFor === undefined) {
      return this.#limiter.tryAcquire(request as AcquireRequest);
    }
    const limits = countersOf(this.options.count, price);
    const also = tagId === undefined ? [] : [{ entityId: tagId, resource, consume, limits }];
    const more = { ...request, also, [AMOUNTS_FOR]: amountsFor };
    return this.#limiter.tryAcquire(more as AcquireRequest);
  }

  async #metered(
    lease: Lease,
    target: CallTarget,
    estimate: Usage,
    price: Price | undefined,
  ): Promise<MeteredCall> {
    if (lease.degraded) this.#checkMoneyless(target);
    else {
      await this.#checkGiven(lease, target);
      this.#noteMoney(target, lease);
    }
    const { entityId, resource, tagId, facts } = target;
    const kept = { entityId, resource, tagId, facts: withoutPrompt(facts) };
    const isBilled = facts.isBilled ?? facts.prompt !== undefined;
    if (isBilled) await this.#checkPriced(lease, facts.call.model, price);
    return new MeteredCall(
      this,
      kept,
      lease,
      estimate,
      price,
      this.#capOf(lease, facts, estimate, price),
    );
  }

  /** Returns the bound of the output that limits in money set to a call, where they are to. */
  #capOf(
    { statuses, degraded }: Lease,
    facts: CallFacts,
    usage: Usage,
    price: Price | undefined,
  ): number | undefined {
    const isCapped = this.options.capOutput && facts.hasOutput && facts.prompt !== undefined;
    if (!isCapped || price === undefined || degraded) return undefined;
    const money = this.#moneyIn(statuses).filter(({ limitName }) => price.counts(limitName));
    return outputCap(facts, usage, money, price, this.#reservesMost);
  }

  /** Whether money reserves the most output that a call can have. */
  get #reservesMost(): boolean {
    const { reserve, reserveMoney = reserve } = this.options;
    return reserveMoney === "max";
  }

  /** Refuses a call that the store could not count, unless no limit in money applies to it. */
  #checkMoneyless(target: CallTarget): void {
    if (this.#moneyless === undefined || this.#moneyless.has(bucketOf(target))) return;
    throw new RateLimiterUnavailable(NOT_COUNTED, { nothingWritten: true });
  }

  #noteMoney(target: CallTarget, { statuses }: Lease): void {
    if (this.#moneyless === undefined) return;
    if (this.#moneyIn(statuses).length > 0) this.#moneyless.delete(bucketOf(target));
    else this.#moneyless.set(bucketOf(target), true);
  }

  /** Refuses, with nothing consumed, a call without a price that a limit in money applies to. */
  async #checkPriced(lease: Lease, model: string, price: Price | undefined): Promise<void> {
    const money = this.#moneyIn(lease.statuses).filter(
      ({ limitName }) => price?.counts(limitName) !== true,
    );
    const [first] = money;
    if (first === undefined) return;
    if (this.options.unpriced === "allow" || money.every(isSoft)) return warnUnpriced(model);
    await lease.rollback();
    throw new ModelNotPriced(model, currencyOf(first.limitName));
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
    if (!hasOutput) return { input, cached: 0, output: 0 };
    const bucket = { entityId, resource };
    const output = this.#outputs.of(bucket, outputMax);
    const moneyOutput = this.#moneyOutput(bucket, facts, output);
    return { input, cached: 0, output, ...(moneyOutput === undefined ? {} : { moneyOutput }) };
  }

  /** Returns the output that money reserves; `undefined` where it is that of tokens. */
  #moneyOutput(
    bucket: { readonly entityId: string; readonly resource: string },
    facts: CallFacts,
    output: number,
  ): number | undefined {
    const { outputMax, modelOutputMax } = facts;
    if (!this.options.capOutput) {
      return this.#moneyOutputs?.of(bucket, outputMax ?? modelOutputMax);
    }
    if (this.#reservesMost) return mostOutput(facts);
    return Math.max(this.#moneyOutputs?.of(bucket, outputMax) ?? output, leastOutput(facts));
  }

  /**
   * Returns the usage to ask for after a refusal. Where money is missing, the output is cut if the
   * request can be, and is of use when it is cut.
   */
  #cut(refusal: Refusal, facts: CallFacts, usage: Usage, price: Price | undefined): Usage {
    const output = this.#outputLeft(refusal, usage);
    const money = refusal.violations.filter(({ limitName }) => this.#isMoney(limitName));
    if (money.length === 0) return { ...usage, output };
    if (!this.options.capOutput || price === undefined) return usage;
    const paid = affordableOutput(money, price, usage);
    if (paid < leastOutput(facts)) return usage;
    const moneyOutput = Math.min(usage.moneyOutput ?? paid, paid);
    return { ...usage, output: Math.min(output, moneyOutput), moneyOutput };
  }

  /**
   * Returns the output that limits of tokens leave after a refusal. A learned output is cut to what
   * they have left, at least to 1. One that the operator set is cut only where no bucket could hold
   * it.
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

/** Names a bucket; names have no line breaks. */
function bucketOf({ entityId, resource }: CallTarget): string {
  return `${entityId}\n${resource}`;
}

function isSoft({ soft }: LimitStatus): boolean {
  return soft === true;
}

function isNoGrant(error: unknown): error is Exclude<NotGranted, Refusal> {
  return (
    error instanceof ResourceDisabled ||
    error instanceof RateLimiterUnavailable ||
    error instanceof ModelNotPriced
  );
}

/** Throws for anything but a limiter; a forgotten `await` is the likeliest mistake. */
function checkLimiter(limiter: unknown): void {
  if (limiter instanceof RateLimiter) return;
  const came = limiter instanceof Promise ? "a promise; await RateLimiter.open(…)" : show(limiter);
  throw new ValidationError("limiter", limiter, `expected a RateLimiter, got ${came}`);
}
