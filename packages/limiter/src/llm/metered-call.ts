/**
 * One attempt of a call that was granted, until its lease ends.
 *
 * The lease begins with an estimate, which the usage that the provider states replaces. Without
 * usage, the output is counted by its text. Where even that is unknown, the estimate stays, or the
 * most that the call can cost is consumed: otherwise hanging up would be a way around the limit.
 */

import { type KeptLease, keptLeaseOf } from "../acquire/lease/kept-lease.ts";
import type { Lease } from "../acquire/lease/lease.ts";
import type { Timer } from "../base/time.ts";
import { LeaseExpiredError } from "../domain/errors/errors.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import type { Price } from "../domain/price.ts";
import { amountsOf, tokensOff } from "./amounts.ts";
import type { CallFacts } from "./call.ts";
import type { CheckedLlmOptions, LlmFailure } from "./options.ts";
import { mostOutput } from "./output-cap.ts";
import { bytesOfTokens, tokensByBytes, tokensOf } from "./prompt-size.ts";
import { type KnownUsage, NO_USAGE, totalOf, type Usage } from "./usage.ts";

/** The bucket that a call consumes from, and what is known of the call. */
export interface CallTarget {
  readonly entityId: string;
  readonly resource: string;
  /** The entity of the cost centre that counts the call too. */
  readonly tagId?: string | undefined;
  readonly facts: CallFacts;
}

/** Parts that all metered calls of a limiter share. */
export interface CallHost {
  readonly options: CheckedLlmOptions;
  readonly timer: Timer;
  /** Learns how much output a call had, for the next estimate. */
  learn(target: CallTarget, output: number): void;
  /** Remembers that answers of a model contain reasoning. */
  rememberReasoning(model: string): void;
  /** Returns whether an answer of the model contained reasoning. */
  hasReasoning(model: string): boolean;
  /** Reports a write that failed. */
  endFailed(target: CallTarget, error: unknown): void;
}

/** How often a stream corrects money at most, in milliseconds. */
const MONEY_FLUSH_MS = 1000;

export class MeteredCall {
  /** The usage that the lease began with. */
  readonly estimate: Usage;
  readonly #host: CallHost;
  readonly #target: CallTarget;
  readonly #lease: Lease;
  /** The price of the model as it was when the call was granted. */
  readonly price: Price | undefined;
  /** The output that budgets pay for, over all choices, where it is less than the request's. */
  readonly #outputCap: number | undefined;
  /** How many tokens a stream may be off; fewer where they cost much of a budget. */
  readonly #flushEvery: number;
  #flushedMs = Number.NEGATIVE_INFINITY;
  #used: Usage | undefined;
  #isEnded = false;
  #known: KnownUsage = {};
  /** Whether the known usage is that of the whole answer. */
  #isFinal = false;
  /** Whether no text has come after the known usage. */
  #isFresh = false;
  #isAbsurd = false;
  #isUnread = false;
  /** The text that was streamed, kept only for a tokenizer. */
  readonly #texts: string[] = [];
  #bytes = 0;
  /** Ends the watch of a stream; plain answers need none. */
  #watch: AbortController | undefined;
  /** With fewer bytes than this, the amounts cannot be far from what the lease holds. */
  #flushAtBytes = 0;
  /** Input and output tokens that the lease holds. */
  #heldTokens: number;
  #lastReadMs = 0;

  constructor(
    host: CallHost,
    target: CallTarget,
    lease: Lease,
    estimate: Usage,
    price: Price | undefined,
    outputCap?: number,
  ) {
    this.#host = host;
    this.#target = target;
    this.#lease = lease;
    this.estimate = estimate;
    this.price = price;
    this.#outputCap = outputCap;
    this.#flushEvery = tokensOff(host.options, lease.statuses, price);
    this.#heldTokens = this.#weightOf(estimate);
  }

  get statuses(): readonly LimitStatus[] {
    return this.#lease.statuses;
  }

  get entityId(): string {
    return this.#target.entityId;
  }

  /** Whether the store could not answer, and the call passes uncounted. */
  get isDegraded(): boolean {
    return this.#lease.degraded;
  }

  /** The bound of the output in one choice to send in place of the request's, if any. */
  get outputMax(): number | undefined {
    if (this.#outputCap === undefined) return undefined;
    return Math.max(1, Math.floor(this.#outputCap / (this.#target.facts.choices ?? 1)));
  }

  /** The usage that the lease ended with; `undefined` while it is open. */
  get used(): Usage | undefined {
    return this.#used;
  }

  /** Whether the provider has not stated the usage of the whole answer. */
  get isEstimated(): boolean {
    return !this.#isFinal;
  }

  get isStreaming(): boolean {
    return this.#watch !== undefined;
  }

  /** Whether the provider works on after it has answered. */
  get isBackground(): boolean {
    return this.#target.facts.isBackground;
  }

  /** Whether the text says less than is billed: reasoning is hidden, or input is stored. */
  get hasHiddenParts(): boolean {
    const { hasHiddenParts, call } = this.#target.facts;
    return hasHiddenParts || this.#host.hasReasoning(call.model);
  }

  /** Begins to count output that comes in parts, also when its reader stops reading. */
  startStreaming(): void {
    this.#lastReadMs = this.#host.timer.nowMs();
    this.#watch = new AbortController();
    void this.#watchIdle(this.#watch.signal);
  }

  /** Notes that the reader still reads. */
  touch(): void {
    if (this.isStreaming) this.#lastReadMs = this.#host.timer.nowMs();
  }

  /** Adds usage that the provider states; later numbers replace earlier ones. */
  seeUsage(usage: KnownUsage, isLast = false): void {
    if (usage.isAbsurd === true) this.#isAbsurd = true;
    // Some servers send zeros until they know better.
    if (totalOf(usage) === 0) return;
    const { input = 0, cached = 0 } = usage;
    const before = this.#known;
    const inputs = input + cached > 0 ? usage : before;
    this.#known = {
      input: inputs.input ?? before.input,
      cached: inputs.cached ?? before.cached,
      output: usage.output ?? before.output,
      inputParts: inputs.inputParts,
      outputParts: usage.output === undefined ? before.outputParts : usage.outputParts,
      tier: usage.tier ?? before.tier,
    };
    this.#isFresh = true;
    if (isLast && usage.output !== undefined) this.#isFinal = true;
    if ((usage.outputParts?.reasoning ?? 0) > 0)
      this.#host.rememberReasoning(this.#target.facts.call.model);
    if (this.isStreaming) this.#flushIfFar();
  }

  /** Adds a part of the text of the answer. */
  seeText(text: string): void {
    if (this.#host.options.tokenizer !== undefined) this.#texts.push(text);
    if (text !== "") this.#isFresh = false;
    this.#bytes += Buffer.byteLength(text);
    if (this.#bytes >= this.#flushAtBytes && this.isStreaming) this.#flushIfFar();
  }

  /** Notes that a part of the answer cannot be read: without usage it may have cost the most. */
  seeUnread(): void {
    this.#isUnread = true;
  }

  /** Ends the lease of a whole answer, and learns from the usage that the provider stated. */
  async complete(): Promise<void> {
    if (!this.#begin()) return;
    // Not every server marks its last usage, but of a whole answer nothing comes after it.
    if (this.#isFresh && (this.#known.output ?? 0) > 0) this.#isFinal = true;
    const usage = this.#seen();
    const isWritten = await this.#commit(usage);
    if (isWritten && this.#isFinal) this.#host.learn(this.#target, usage.output);
  }

  /** Ends the lease of an answer that ended early: by its reader, or by the upstream. */
  async breakOff(): Promise<void> {
    if (!this.#begin()) return;
    await this.#commit(this.isBackground ? this.#most() : this.#seen());
  }

  /** Ends the lease of a call whose usage cannot be known with the most that it can cost. */
  async chargeMost(): Promise<void> {
    if (this.#begin()) await this.#commit(this.#most());
  }

  /** Ends the lease of a call that was sent, and of whose answer nothing is known. */
  async keepEstimate(): Promise<void> {
    if (this.#begin()) await this.#commit(this.estimate);
  }

  /** Ends the lease of a call that was never sent. */
  async refund(): Promise<void> {
    if (this.#begin()) await this.#rollback();
  }

  /** Ends the lease of a call that failed. Usage that the error states was billed. */
  async fail({ usage, ...failure }: LlmFailure & { readonly usage?: KnownUsage | undefined }) {
    if (!this.#begin()) return;
    if (usage !== undefined && totalOf(usage) > 0) {
      this.seeUsage(usage, true);
      await this.#commit(this.#seen());
      return;
    }
    if (this.#isRefunded(failure)) return this.#rollback();
    // A request that was refused has used no tokens, but it was a request.
    const isRefused = failure.status !== undefined && failure.status < 500;
    await this.#commit(isRefused ? NO_USAGE : this.estimate);
  }

  /**
   * Ends the lease of a background response with the most that it can cost. Returns what the lease
   * holds, to be settled when the usage is known; `undefined` when nothing was counted.
   */
  async hold(): Promise<KeptLease | undefined> {
    await this.chargeMost();
    return keptLeaseOf(this.#lease);
  }

  /** Returns input and output together, as a limit of tokens counts them. */
  #weightOf({ input, cached, output }: Usage): number {
    return input + cached * this.#host.options.count.cachedTokens + output;
  }

  /** Returns what was used as far as it is known, and the estimate of the rest. */
  #seen(): Usage {
    if (this.#isUnread && !this.#isFinal) return this.#most();
    const output = this.#shown();
    const isAll = this.#isFinal || (output > 0 && !this.hasHiddenParts && !this.#isAbsurd);
    if (isAll) return { ...this.#input(), output, outputParts: this.#known.outputParts };
    return this.#withRest(output);
  }

  /** Returns the most that the call can have used. */
  #most(): Usage {
    const { facts } = this.#target;
    const shown = this.#shown();
    if (this.#isFinal || !facts.hasOutput) {
      return { ...this.#input(), output: shown, outputParts: this.#known.outputParts };
    }
    return this.#withRest(Math.max(this.#outputCap ?? mostOutput(facts), shown));
  }

  /** Returns usage with an output, of which the estimate may be more. */
  #withRest(output: number): Usage {
    const { estimate } = this;
    const moneyOutput = Math.max(output, estimate.moneyOutput ?? estimate.output);
    const tokens = Math.max(output, estimate.output);
    return moneyOutput === tokens
      ? { ...this.#input(), output: tokens }
      : { ...this.#input(), output: tokens, moneyOutput };
  }

  #input(): Omit<Usage, "output"> {
    const { input = 0, cached = 0, inputParts, tier } = this.#known;
    return input + cached > 0
      ? { input, cached, inputParts, tier }
      : { input: this.estimate.input, cached: 0, tier };
  }

  /** Returns the output that the provider stated, or that the text has; the larger one. */
  #shown(): number {
    const { output = 0 } = this.#known;
    return this.#isFinal && output > 0 ? output : Math.max(output, this.#counted());
  }

  #counted(): number {
    const { tokenizer } = this.#host.options;
    if (tokenizer === undefined) return tokensByBytes(this.#bytes);
    return tokensOf(this.#texts, this.#target.facts.call.model, tokenizer);
  }

  /** Writes amounts in the middle of a stream, when they are far from what the lease holds. */
  #flushIfFar(): void {
    if (this.#isEnded) return;
    const { output = 0 } = this.#known;
    // Until the end, the output that was estimated may still come.
    const usage = this.#isFinal
      ? { ...this.#input(), output, outputParts: this.#known.outputParts }
      : this.#withRest(Math.max(output, tokensByBytes(this.#bytes)));
    const distance = Math.abs(this.#weightOf(usage) - this.#heldTokens);
    const isFar = distance >= this.#flushEvery && this.#mayFlush(distance);
    this.#flushAtBytes = this.#bytes + bytesOfTokens(Math.max(0, this.#flushEvery - distance));
    if (isFar) void this.#flush(usage);
  }

  /** Returns whether it is time: a distance that only money makes far is written once a second. */
  #mayFlush(distance: number): boolean {
    if (distance >= this.#host.options.flushEvery) return true;
    return this.#host.timer.nowMs() - this.#flushedMs >= MONEY_FLUSH_MS;
  }

  async #flush(usage: Usage): Promise<void> {
    this.#heldTokens = this.#weightOf(usage);
    this.#flushedMs = this.#host.timer.nowMs();
    await this.#written(() => {
      this.#settle(usage);
      return this.#lease.flush();
    });
  }

  /** Counts what was streamed when its reader stops reading; a reader may come back. */
  async #watchIdle(signal: AbortSignal): Promise<void> {
    const { options, timer } = this.#host;
    let waitMs = options.idleMs;
    while (!this.#isEnded) {
      await timer.sleep(waitMs, signal, true);
      const idleMs = timer.nowMs() - this.#lastReadMs;
      waitMs = Math.max(1, options.idleMs - idleMs);
      if (this.#isEnded || idleMs < options.idleMs) continue;
      waitMs = options.idleMs;
      const used = this.#seen();
      if (this.#weightOf(used) !== this.#heldTokens) await this.#flush(used);
    }
  }

  #isRefunded(failure: LlmFailure): boolean {
    try {
      return this.#host.options.refundWhen(failure);
    } catch (error) {
      this.#host.endFailed(this.#target, error);
      return false;
    }
  }

  async #rollback(): Promise<void> {
    this.#used = NO_USAGE;
    await this.#written(() => this.#lease.rollback());
  }

  async #commit(usage: Usage): Promise<boolean> {
    this.#used = usage;
    return this.#written(() => {
      this.#settle(usage);
      return this.#lease.commit();
    });
  }

  #settle(usage: Usage): void {
    const amounts = amountsOf(this.#host.options.count, usage, this.price);
    const { resource, tagId } = this.#target;
    if (tagId !== undefined) this.#lease.of(resource, { entityId: tagId }).settle(amounts);
    // Slots are held until the lease ends, whatever the call has cost.
    for (const { kind, limitName } of this.#lease.statuses) {
      if (kind === "concurrency") delete amounts[limitName];
    }
    this.#lease.settle(amounts);
  }

  /** Returns whether a write succeeded. One that fails must not break the answer, which is here. */
  async #written(write: () => Promise<void>): Promise<boolean> {
    try {
      await write();
      return !this.#lease.degraded;
    } catch (error) {
      if (!(error instanceof LeaseExpiredError)) this.#host.endFailed(this.#target, error);
      return false;
    }
  }

  /** Returns whether this is the first end of the lease. */
  #begin(): boolean {
    if (this.#isEnded) return false;
    this.#isEnded = true;
    // With a reason, because the default one is an error with a stack.
    this.#watch?.abort("ended");
    return true;
  }
}
