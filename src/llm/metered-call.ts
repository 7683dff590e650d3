/**
 * One attempt of a call that was granted, until its lease ends.
 *
 * The lease begins with an estimate. What the provider says replaces it; where the provider says
 * nothing, the output is counted by the text that was streamed. A call that ends early keeps its
 * input and what was streamed: otherwise hanging up early would be a way around the limit.
 */

import { LeaseExpiredError } from "../domain/errors.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import type { Timer } from "../domain/timer.ts";
import type { Lease } from "../limiter/lease.ts";
import { amountsOf } from "./amounts.ts";
import { decoded } from "./byte-text.ts";
import type { CheckedLlmOptions, LlmFailure } from "./options.ts";
import { bytesOfTokens, tokensByBytes, tokensOf } from "./prompt-size.ts";
import type { KnownUsage, Usage } from "./usage.ts";

/** What a metered call needs to know. */
export interface MeteredCallSetup {
  readonly lease: Lease;
  readonly options: CheckedLlmOptions;
  readonly timer: Timer;
  readonly model: string;
  /** What the lease began with. */
  readonly estimate: Usage;
  /** Told how much output the call had, for the next estimate. */
  readonly learn: (output: number) => void;
  readonly endFailed: (error: unknown) => void;
}

const DONE = Promise.resolve();

export class MeteredCall {
  readonly #setup: MeteredCallSetup;
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

  constructor(setup: MeteredCallSetup) {
    this.#setup = setup;
    this.#heldTokens = this.#weightOf(setup.estimate);
  }

  get statuses(): readonly LimitStatus[] {
    return this.#setup.lease.statuses;
  }

  /** Says that output comes in parts, and counts what came whenever the reader stops reading. */
  startStreaming(): void {
    this.#isStreaming = true;
    this.#lastReadMs = this.#setup.timer.nowMs();
    this.#watch = new AbortController();
    void this.#watchIdle(this.#watch.signal);
  }

  /** The reader is still there. */
  touch(): void {
    this.#lastReadMs = this.#setup.timer.nowMs();
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
    if (this.#setup.options.tokenizer !== undefined) this.#keep(text);
    this.#seeBytes(Buffer.byteLength(text));
  }

  /** Takes in a part of the answer that has one character per byte. */
  seeByteText(byteText: string): void {
    if (this.#setup.options.tokenizer !== undefined) this.#keep(decoded(byteText));
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
    if (!this.#begin()) return DONE;
    const usage = this.#used();
    this.#setup.learn(usage.output);
    return this.#commit(usage);
  }

  /** Ends the lease of an answer that broke off: by the reader, by an abort, by the upstream. */
  breakOff(): Promise<void> {
    return this.#begin() ? this.#commit(this.#used()) : DONE;
  }

  /** Ends the lease of a call that was answered without anything to count its output by. */
  async keepEstimate(): Promise<void> {
    if (this.#begin()) await this.#written(() => this.#setup.lease.commit());
  }

  /** Ends the lease of a call that failed before it was answered. */
  async fail(failure: LlmFailure): Promise<void> {
    if (!this.#begin()) return;
    const { lease, options } = this.#setup;
    // A request that was answered with an error has used no tokens, but it was a request.
    if (!options.refundWhen(failure)) return this.#commit({ input: 0, cached: 0, output: 0 });
    await this.#written(() => lease.rollback());
  }

  /** Input and output together, as a limit of tokens counts them. */
  #weightOf({ input, cached, output }: Usage): number {
    return input + cached * this.#setup.options.count.cachedTokens + output;
  }

  /** What was used as far as it is known. */
  #used(): Usage {
    const { estimate } = this.#setup;
    const { input = estimate.input, cached = 0, output = this.#counted() } = this.#known;
    return { input, cached, output };
  }

  #counted(): number {
    const { model, options } = this.#setup;
    if (options.tokenizer === undefined) return tokensByBytes(this.#bytes);
    return tokensOf(this.#texts ?? [], model, options.tokenizer);
  }

  /** Writes amounts in the middle of a stream, when they are far from what the lease holds. */
  #flushIfFar(): void {
    const { estimate, options } = this.#setup;
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
    const { lease, options } = this.#setup;
    this.#heldTokens = this.#weightOf(usage);
    await this.#written(() => {
      lease.settle(amountsOf(options.count, usage));
      return lease.flush();
    });
  }

  /** The lease stays open: a reader that comes back goes on being counted. */
  async #watchIdle(signal: AbortSignal): Promise<void> {
    const { options, timer } = this.#setup;
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
    const { lease, options } = this.#setup;
    return this.#written(() => {
      lease.settle(amountsOf(options.count, usage));
      return lease.commit();
    });
  }

  /** A write that fails must not break the answer, which has arrived. */
  async #written(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      if (!(error instanceof LeaseExpiredError)) this.#setup.endFailed(error);
    }
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
