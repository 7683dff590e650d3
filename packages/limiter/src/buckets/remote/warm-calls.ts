/**
 * Calls that the server decides: one request under way for each chain of buckets, and all calls
 * that wait for the chain go together in the next one, as their sum.
 */

import type { Clock, Deadline, Timer } from "../../base/time.ts";
import { invariant } from "../../domain/check.ts";
import { systemConfigKey } from "../../records/keys.ts";
import type { Key } from "../../storage/item.ts";
import type { WarmAnswer, WarmBuckets, WarmLeg } from "../../storage/warm-buckets.ts";
import type {
  BucketCallOptions,
  ConsumeOptions,
  ConsumeResult,
  SeenBalances,
} from "../bucket-consumer.ts";
import type { BucketId } from "../embedded/bucket-table.ts";
import { warmTerms } from "../embedded/warm-row.ts";
import { Gathering, SINGLE_PACE } from "../gathering.ts";
import { type Adjustment, type Leg, type LegOutcome, refundOf, takenOf } from "../leg.ts";
import { countedOf, partOf } from "../slots/slot-amounts.ts";
import type { KnownRefusals } from "./known-refusals.ts";
import { seenIn } from "./seen-in-answer.ts";
import {
  amountsAt,
  balancesWith,
  chainId,
  firstThatFit,
  fitsInto,
  latestOf,
  mayShare,
  safePrefix,
  WaitingCall,
} from "./waiting-call.ts";
import {
  entriesGivingBack,
  entriesTaking,
  haveSlots,
  NO_SLOTS,
  type TakenOfLegs,
  type WarmSlots,
  type WarmTaken,
} from "./warm-slots.ts";

/** The most calls of one request. */
const CALLS_MAX = 1000;
/** How often a step of several buckets runs before they are made warm one by one. */
const RUNS_MAX = 4;

export interface WarmCallsOptions {
  readonly namespaceId: string;
  /** Warm calls of the server; each is one request. */
  readonly warm: WarmBuckets;
  readonly timer: Timer;
  readonly clock: Clock;
  /** Epoch milliseconds, where the server's own clock does not count. */
  readonly nowMs: (() => number) | undefined;
  readonly keyOf: (bucket: BucketId) => Key;
  readonly refusals: KnownRefusals;
  /** The slots of this process; `undefined` where the store holds none. */
  readonly slots: WarmSlots | undefined;
  /** Decides a call that is not warm. */
  readonly step: (
    legs: readonly Leg[],
    options: ConsumeOptions,
  ) => ConsumeResult | Promise<ConsumeResult>;
  /** Refunds what was consumed for a call that had ended. */
  readonly refund: (adjustment: Adjustment) => void;
}

/** Ends a step that other clients have undone too often. */
class Disturbed extends Error {}

export class WarmCalls {
  readonly #options: WarmCallsOptions;
  readonly #configKey: Key;
  readonly #gathering: Gathering<WaitingCall>;
  /** The highest config version that an answer has shown. */
  #version: number | undefined;

  constructor(options: WarmCallsOptions) {
    this.#options = options;
    this.#configKey = systemConfigKey(options.namespaceId);
    this.#gathering = new Gathering(options.timer, {
      max: CALLS_MAX,
      pace: SINGLE_PACE,
      joins: mayShare,
      run: (calls) => this.#run(calls),
    });
  }

  consume(
    legs: readonly Leg[],
    options: ConsumeOptions & Required<Pick<BucketCallOptions, "deadline">>,
  ): Promise<ConsumeResult> {
    return new Promise((resolve, reject) => {
      const known = this.#knownVersion(legs);
      const call = new WaitingCall(legs, options, known, options.deadline, resolve, reject);
      this.#gathering.add(chainId(legs), call, options.signal);
    });
  }

  /** Adjusts a bucket; false, with nothing written: run it as a step. */
  adjust(adjustment: Adjustment, token: string, timeoutMs: number): Promise<boolean> {
    const { config, deltasMilli, acquires = 0, endsMs } = adjustment;
    const { build, order } = warmTerms(config.limits);
    const taken = takenOf(config, deltasMilli);
    const counted = countedOf(config, deltasMilli);
    const leg = {
      key: this.#options.keyOf(adjustment),
      build,
      consumedMilli: order.map((at) => taken[at] ?? 0),
      countedMilli: order.map((at) => counted[at] ?? 0),
      acquires,
      endsMs: endsMs && order.map((at) => endsMs[at] ?? 0),
      entries: entriesGivingBack(adjustment),
    };
    const nowMs = this.#options.nowMs?.();
    return this.#options.warm.adjust({ leg, token, nowMs }, { timeoutMs });
  }

  idle(): Promise<void> {
    return this.#gathering.idle();
  }

  /** Limits that were just read, or come with the call, are not outdated. */
  #knownVersion(legs: readonly Leg[]): number | undefined {
    let version: number | undefined;
    for (const { config } of legs) {
      if (config.forced === true || config.source === "override") return undefined;
      version = Math.min(version ?? config.version, config.version);
    }
    return this.#version ?? version;
  }

  /** Answers all calls, by as few requests as there must be. */
  async #run(calls: readonly WaitingCall[]): Promise<void> {
    let left = calls;
    // Calls that go first because the sum of all was refused.
    let first: readonly WaitingCall[] = [];
    for (;;) {
      left = left.filter(isOpen);
      first = first.filter(isOpen);
      const together = safePrefix(first.length > 0 ? first : left);
      if (together.length === 0) return;
      const taken = haveSlots(together) ? await this.#takenBy(together) : NO_SLOTS;
      if (taken === undefined) continue;
      const answer = await this.#ask(together, taken);
      first = [];
      const seen = await this.#answer(together, answer, taken);
      if (seen === undefined || (await this.#reclaim(together, answer, seen))) continue;
      const { balancesMilli } = seen;
      left = this.#refuse(left, seen);
      if (answer?.outcome !== "refused") continue;
      const isPart = firstThatFit(together, balancesMilli).length < together.length;
      invariant(isPart, "a sum is refused only when a part of it is");
      // Other clients may have taken tokens since: calls that fit now may not have been sent.
      first = firstThatFit(left, balancesMilli);
    }
  }

  /** Ends the calls that an answer decides; returns the balances by which others can be refused. */
  async #answer(
    together: readonly WaitingCall[],
    answer: WarmAnswer | undefined,
    taken: TakenOfLegs,
  ): Promise<SeenBalances | undefined> {
    const call = together[0] as WaitingCall;
    if (answer === undefined) {
      this.#options.slots?.forget(taken);
      // A request that has failed has ended all of its calls.
      if (call.isOpen) await this.#step(call);
      return undefined;
    }
    if (answer.outcome === "outdated") {
      this.#version = Math.max(this.#version ?? 0, answer.configVersion);
      for (const each of together.filter(isOpen)) each.answer({ outcome: "outdated" });
      return undefined;
    }
    const seen = seenIn(call.legs, answer, this.#options.clock());
    if (answer.outcome === "granted") this.#grant(together, seen, taken);
    return seen;
  }

  /** Lets a step decide a call that lacks slots, where dead holders may have some. */
  async #reclaim(
    calls: readonly WaitingCall[],
    answer: WarmAnswer | undefined,
    { balancesMilli }: SeenBalances,
  ): Promise<boolean> {
    const { slots, clock } = this.#options;
    if (slots === undefined || answer?.outcome !== "refused") return false;
    const mayReclaim = (call: WaitingCall) => slots.mayReclaim(call, balancesMilli, clock());
    const lacking = calls.filter(isOpen).find(mayReclaim);
    if (lacking !== undefined) await this.#step(lacking);
    return lacking !== undefined;
  }

  /** Returns the slots that calls take together; `undefined`: the calls have failed. */
  async #takenBy(calls: readonly WaitingCall[]): Promise<TakenOfLegs | undefined> {
    try {
      return (await this.#options.slots?.takenBy(calls, latestOf(calls).timeoutMs)) ?? NO_SLOTS;
    } catch (error) {
      for (const each of calls.filter(isOpen)) each.fail(error);
      return undefined;
    }
  }

  async #ask(calls: readonly WaitingCall[], taken: TakenOfLegs): Promise<WarmAnswer | undefined> {
    const { slots } = this.#options;
    const [call] = calls as [WaitingCall];
    let { knownVersion } = call;
    for (const other of calls) {
      other.isSent = true;
      if (other.knownVersion === undefined) continue;
      knownVersion = Math.min(knownVersion ?? other.knownVersion, other.knownVersion);
    }
    const token = taken.length > 0 ? slots?.newToken() : undefined;
    try {
      const legs = call.legs.map((leg, at) => this.#legOf(leg, calls, at, taken[at]));
      const answer = await this.#send(legs, latestOf(calls), knownVersion, token);
      // Until the next request nothing is under way for the calls that have no answer.
      for (const other of calls) other.isSent = false;
      return answer;
    } catch (error) {
      if (token !== undefined) slots?.notAnswered(taken, token, error);
      for (const other of calls.filter(isOpen)) other.fail(error);
      return undefined;
    }
  }

  #send(
    legs: readonly WarmLeg[],
    { timeoutMs }: Deadline,
    knownVersion?: number,
    token?: string,
  ): Promise<WarmAnswer | undefined> {
    const { warm, nowMs } = this.#options;
    const consume = { legs, configKey: this.#configKey, knownVersion, nowMs: nowMs?.(), token };
    return warm.consume(consume, { timeoutMs: Math.ceil(timeoutMs) });
  }

  #legOf(leg: Leg, calls: readonly WaitingCall[], at: number, slots?: WarmTaken): WarmLeg {
    const { config, link } = leg;
    const { gatesMilli, takenMilli, countedMilli, acquires } = amountsAt(calls, at);
    return {
      key: this.#options.keyOf(leg),
      build: warmTerms(config.limits).build,
      parentId: link.parentId,
      cascades: config.cascade === undefined ? link.cascade : undefined,
      gatesMilli,
      consumedMilli: takenMilli,
      countedMilli,
      acquires,
      entries: slots && entriesTaking(slots),
    };
  }

  /**
   * Decides a call by a step. One over several buckets would not come to its end where warm calls
   * change one of them all the time, as the parent of a new child: then each bucket is made warm
   * alone, and the server is asked again.
   */
  async #step(call: WaitingCall): Promise<void> {
    call.isSent = true;
    let runs = 0;
    const onRun = () => {
      runs += 1;
      if (runs > RUNS_MAX && call.legs.length > 1) throw new Disturbed();
    };
    try {
      const result = await this.#options.step(call.legs, { ...call.options, onRun });
      if (call.isOpen) call.answer(result);
      else if (result.outcome === "granted") this.#refund(call, result.legs);
    } catch (error) {
      if (error instanceof Disturbed) await this.#warm(call);
      else if (call.isOpen) call.fail(error);
    }
  }

  /** Makes the buckets of a call warm, each that is not by a step that consumes nothing. */
  async #warm(call: WaitingCall): Promise<void> {
    call.isSent = false;
    try {
      await Promise.all(call.legs.map((_, at) => this.#warmLeg(call, at)));
    } catch (error) {
      if (call.isOpen) call.fail(error);
    }
  }

  async #warmLeg(call: WaitingCall, at: number): Promise<void> {
    const leg = call.legs[at] as Leg;
    const idle = leg.amountsMilli.map(() => 0);
    const amounts = { gatesMilli: idle, consumedMilli: idle, countedMilli: idle, acquires: 0 };
    const legs = [{ ...this.#legOf(leg, [call], at), ...amounts }];
    if ((await this.#send(legs, call.deadline)) !== undefined) return;
    await this.#options.step([{ ...leg, amountsMilli: idle }], call.options);
  }

  /**
   * Grants in the order of the calls: each has what those after it have taken besides. Slots that
   * were granted to a holder whose record is over are given back, and the calls begin again.
   */
  #grant(
    calls: readonly WaitingCall[],
    { balancesMilli: balances, periods }: SeenBalances,
    taken: TakenOfLegs,
  ): void {
    const { slots, clock } = this.#options;
    const isHeld = slots?.take(taken, clock()) ?? true;
    let left = balances;
    for (let at = calls.length - 1; at >= 0; at -= 1) {
      const call = calls[at] as WaitingCall;
      const balancesMilli = left;
      const legs = call.legs.map(({ config, amountsMilli, link }, at) => ({
        parts: [partOf(config, 0, amountsMilli, taken[at]?.entry)],
        link,
        balancesMilli: balancesMilli[at] as readonly number[],
        periods: periods?.[at],
      }));
      if (call.isOpen && isHeld) call.answer({ outcome: "granted", legs });
      else this.#refund(call, legs);
      if (call.isOpen) call.answer({ outcome: "outdated" });
      if (at > 0) left = balancesWith(call, left, 1);
    }
  }

  /** Refuses the calls that do not fit by this answer, and returns the others. */
  #refuse(calls: readonly WaitingCall[], seen: SeenBalances): readonly WaitingCall[] {
    const { balancesMilli, periods } = seen;
    const fitting: WaitingCall[] = [];
    let isSeen = false;
    for (const call of calls) {
      if (!call.isOpen) continue;
      if (fitsInto(call, balancesMilli)) {
        fitting.push(call);
        continue;
      }
      if (!isSeen) this.#options.refusals.see(call.legs, seen);
      isSeen = true;
      call.answer({ outcome: "refused", balancesMilli, periods, local: false });
    }
    return fitting;
  }

  #refund({ legs }: WaitingCall, outcomes: readonly LegOutcome[]): void {
    for (const [at, leg] of legs.entries()) {
      const { parts, periods } = outcomes[at] as LegOutcome;
      for (const refund of refundOf(leg, parts, periods)) this.#options.refund(refund);
    }
  }
}

function isOpen(call: WaitingCall): boolean {
  return call.isOpen;
}
