/**
 * One attempt of a call that was granted, until its lease ends.
 *
 * The lease begins with an estimate. What the provider says replaces it; where the provider says
 * nothing, the output is counted by the text that was streamed. A call that ends early keeps its
 * input and what was streamed: otherwise hanging up early would be a way around the limit.
 */

import type { Lease } from "../acquire/lease/lease.ts";
import { ENDED } from "../acquire/lease/lease-holdings.ts";
import type { Timer } from "../base/time.ts";
import { LeaseExpiredError } from "../domain/errors/errors.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import { amountsOf } from "./amounts.ts";
import { decoded } from "./byte-text.ts";
import type { CallFacts } from "./metering.ts";
import type { CheckedLlmOptions, LlmFailure } from "./options.ts";
import { bytesOfTokens, tokensByBytes, tokensOf } from "./prompt-size.ts";
import type { KnownUsage, Usage } from "./usage.ts";

/** What a call consumes from. */
export interface CallTarget {
  readonly entityId: string;
  readonly resource: string;
  readonly facts: CallFacts;
}

/** What all metered calls of a limiter share. */
export interface CallHost {
  readonly options: CheckedLlmOptions;
  readonly timer: Timer;
  /** Told how much output a call had, for the next estimate. */
  learn(target: CallTarget, output: number): void;
  /** Told of a write that failed. */
  endFailed(target: CallTarget, error: unknown): void;
}

export class MeteredCall {
  readonly #host: CallHost;
  readonly #target: CallTarget;
  readonly #lease: Lease;
  /** What the lease began with. */
  readonly #estimate: Usage;
  #isEnded = false;
  /** Ends the watch of a stream; plain answers need none. */
  #watch: AbortController | undefined;
  #known: KnownUsage = {};
  /** What was streamed: texts where a tokenizer needs them, else their bytes. */
  #texts: string[] | undefined;
  #bytes = 0;
  #isStreaming = false;
  /** With fewer bytes than this, the amounts cannot be far from what the lease holds. */
  #flushAtBytes = 0;
  /** What the lease holds, in input and output tokens together. */
  #heldTokens: number;
  #lastReadMs = 0;

  constructor(host: CallHost, target: CallTarget, lease: Lease, estimate: Usage) {
    this.#host = host;
    this.#target = target;
    this.#lease = lease;
    this.#estimate = estimate;
    this.#heldTokens = this.#weightOf(estimate);
  }

  get statuses(): readonly LimitStatus[] {
    return this.#lease.statuses;
  }

  /** Whether the store could not answer, and the call passes uncounted. */
  get isDegraded(): boolean {
    return this.#lease.degraded;
  }

  /** Says that output comes in parts, and counts what came whenever the reader stops reading. */
  startStreaming(): void {
    this.#isStreaming = true;
    this.#lastReadMs = this.#host.timer.nowMs();
    this.#watch = new AbortController();
    void this.#watchIdle(this.#watch.signal);
  }

  /** The reader is still there. */
  touch(): void {
    if (this.#isStreaming) this.#lastReadMs = this.#host.timer.nowMs();
  }

  /** Takes in what the provider says about usage; later news replace earlier ones. */
  seeUsage({ input, cached, output }: KnownUsage): void {
    const before = this.#known;
    this.#known = {
      input: input ?? before.input,
      cached: cached ?? before.cached,
      output: output ?? before.output,
    };
    if (this.#isStreaming) this.#flushIfFar();
  }

  /** Takes in a part of the answer. */
  seeText(text: string): void {
    if (this.#host.options.tokenizer !== undefined) this.#keep(text);
    this.#seeBytes(Buffer.byteLength(text));
  }

  /** Takes in a part of the answer that has one character per byte. */
  seeByteText(byteText: string): void {
    if (this.#host.options.tokenizer !== undefined) this.#keep(decoded(byteText));
    this.#seeBytes(byteText.length);
  }

  #keep(text: string): void {
    this.#texts ??= [];
    this.#texts.push(text);
  }

  #seeBytes(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes >= this.#flushAtBytes && this.#isStreaming) this.#flushIfFar();
  }

  /** Ends the lease of a complete answer, and learns from it. */
  complete(): Promise<void> {
    if (!this.#begin()) return ENDED;
    const usage = this.#used();
    this.#host.learn(this.#target, usage.output);
    return this.#commit(usage);
  }

  /** Ends the lease of an answer that broke off: by the reader, by an abort, by the upstream. */
  breakOff(): Promise<void> {
    return this.#begin() ? this.#commit(this.#used()) : ENDED;
  }

  /** Ends the lease of a call that was answered without anything to count its output by. */
  keepEstimate(): Promise<void> {
    return this.#begin() ? this.#written(() => this.#lease.commit()) : ENDED;
  }

  /** Ends the lease of a call that failed before it was answered. */
  fail(failure: LlmFailure): Promise<void> {
    if (!this.#begin()) return ENDED;
    if (this.#host.options.refundWhen(failure)) return this.#written(() => this.#lease.rollback());
    // A request that was answered with an error has used no tokens, but it was a request.
    return this.#commit({ input: 0, cached: 0, output: 0 });
  }

  /** Input and output together, as a limit of tokens counts them. */
  #weightOf({ input, cached, output }: Usage): number {
    return input + cached * this.#host.options.count.cachedTokens + output;
  }

  /** What was used as far as it is known. */
  #used(): Usage {
    const estimate = this.#estimate;
    const { input = estimate.input, cached = 0, output = this.#counted() } = this.#known;
    return { input, cached, output };
  }

  #counted(): number {
    const { tokenizer } = this.#host.options;
    if (tokenizer === undefined) return tokensByBytes(this.#bytes);
    return tokensOf(this.#texts ?? [], this.#target.facts.call.model, tokenizer);
  }

  /** Writes amounts in the middle of a stream, when they are far from what the lease holds. */
  #flushIfFar(): void {
    const estimate = this.#estimate;
    const { options } = this.#host;
    const { input = estimate.input, cached = 0, output } = this.#known;
    // Until the end, the output that was estimated may still come.
    const expected = output ?? Math.max(estimate.output, tokensByBytes(this.#bytes));
    const usage = { input, cached, output: expected };
    const distance = Math.abs(this.#weightOf(usage) - this.#heldTokens);
    const isFar = distance >= options.flushEvery;
    this.#flushAtBytes = this.#bytes + (isFar ? 0 : bytesOfTokens(options.flushEvery - distance));
    if (isFar) void this.#flush(usage);
  }

  async #flush(usage: Usage): Promise<void> {
    this.#heldTokens = this.#weightOf(usage);
    await this.#written(() => {
      this.#settle(usage);
      return this.#lease.flush();
    });
  }

  /** The lease stays open: a reader that comes back goes on being counted. */
  async #watchIdle(signal: AbortSignal): Promise<void> {
    const { options, timer } = this.#host;
    let waitMs = options.idleMs;
    while (!this.#isEnded) {
      await timer.sleep(waitMs, signal, true);
      const idleMs = timer.nowMs() - this.#lastReadMs;
      waitMs = Math.max(1, options.idleMs - idleMs);
      if (this.#isEnded || idleMs < options.idleMs) continue;
      waitMs = options.idleMs;
      const used = this.#used();
      if (this.#weightOf(used) !== this.#heldTokens) await this.#flush(used);
    }
  }

  #commit(usage: Usage): Promise<void> {
    return this.#written(() => {
      this.#settle(usage);
      return this.#lease.commit();
    });
  }

  #settle(usage: Usage): void {
    this.#lease.settle(amountsOf(this.#host.options.count, usage));
  }

  /** A write that fails must not break the answer, which has arrived. */
  #written(write: () => Promise<void>): Promise<void> {
    try {
      const written = write();
      return written === ENDED ? ENDED : written.catch((error) => this.#notWritten(error));
    } catch (error) {
      this.#notWritten(error);
      return ENDED;
    }
  }

  #notWritten(error: unknown): void {
    if (!(error instanceof LeaseExpiredError)) this.#host.endFailed(this.#target, error);
  }

  /** Whether this call is the first to end the lease. */
  #begin(): boolean {
    if (this.#isEnded) return false;
    this.#isEnded = true;
    // With a reason, because the default one is an error with a stack.
    this.#watch?.abort("ended");
    return true;
  }
}
