/**
 * Owns the tokens and slots that a lease holds, shard by shard: no other class changes their
 * amounts, or writes corrections and refunds of them.
 */

import type { Adjustment } from "../../buckets/leg.ts";
import { floorDiv } from "../../core/integers.ts";
import { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import type { AmountsByName } from "../acquire-request.ts";
import {
  add,
  addPending,
  adjustmentOf,
  areSlots,
  byBucket,
  copyOf,
  freedMilli,
  type Granted,
  type Holding,
  heldAs,
  holdingsOf,
  ownTokens,
  placeOf,
  sameBucket,
  slotMilli,
  slotsMilli,
  sumsOf,
  usedUpMilli,
  writtenMilli,
} from "./holding.ts";
import type { LeaseHost, LeaseTarget } from "./lease-host.ts";

/** The promise of a lease that ends without waiting for anything. */
export const ENDED: Promise<void> = Promise.resolve();

export class LeaseHoldings {
  /** The first is the one of the entity itself that was consumed from first. */
  readonly all: Holding[];
  readonly #host: LeaseHost;
  readonly #target: LeaseTarget;
  /** Names the acquire in events; `undefined` where nothing listened to it. */
  readonly #acquireId: string | undefined;
  /** The write under way. Each one starts from what the one before it has written. */
  #lastWrite: Promise<void> | undefined;
  /** The failure of a write in the background, which the next write reports. */
  #failure: unknown;
  /** Since when it holds slots, by the timer; `undefined`: it never held any. */
  #slotsFromMs: number | undefined;

  constructor(
    host: LeaseHost,
    target: LeaseTarget,
    acquireId: string | undefined,
    holdings: Holding[],
    slotsFromMs?: number,
  ) {
    this.all = holdings;
    this.#host = host;
    this.#target = target;
    this.#acquireId = acquireId;
    this.#slotsFromMs = slotsFromMs;
  }

  /**
   * Adds what a part of the call was granted later. Holdings of one shard become one, so that one
   * write corrects it.
   */
  add(granted: Granted, part: number): void {
    this.#slotsFromMs ??= granted.heldFromMs;
    for (const taken of holdingsOf(granted, part)) {
      const same = this.all.find((holding) => sameBucket(holding, taken));
      if (same === undefined) {
        this.all.push(taken);
        continue;
      }
      for (const [at, amount] of taken.heldMilli.entries()) add(same.heldMilli, at, amount);
    }
  }

  /** Returns what is held for a part of the call. */
  of(part: number): readonly Holding[] {
    // Nearly always there is one, and it is of this part.
    if (this.all.length === 1 && this.all[0]?.part === part) return this.all;
    return this.all.filter((holding) => holding.part === part);
  }

  /**
   * Corrects tokens of a part: of its resource and the total, of the entity and of every ancestor
   * with the limit. The next write has it.
   */
  correct(part: number, deltas: AmountsByName): void {
    for (const holdings of byBucket(this.of(part))) {
      for (const [name, delta] of deltas) addPending(holdings, name, delta * 1000);
    }
  }

  /** Counts amounts of a part as used that passed without being counted in the store. */
  believe(part: number, amounts: AmountsByName): void {
    for (const holdings of byBucket(this.of(part))) {
      for (const [name, amount] of amounts) {
        const place = placeOf(holdings, name);
        if (place !== undefined) add(place.holding.unsureMilli, place.at, amount * 1000);
      }
    }
  }

  /** Writes what was adjusted so far; `ENDED` when that is done already. */
  flush(): Promise<void> {
    return this.#inTurn(() => {
      const written = this.#writePending();
      return this.#failure === undefined ? written : this.#failAfter(written);
    });
  }

  /**
   * Writes what was adjusted so far in the background. What was certainly not written is pending
   * still; any other failure is for the caller of the next write.
   */
  flushSoon(): void {
    const noted = (error: unknown) => {
      const isPending = error instanceof RateLimiterUnavailable && error.nothingWritten;
      if (!isPending) this.#failure ??= error;
    };
    void this.#inTurn(() => this.#writePending()?.catch(noted));
  }

  /** Writes what was adjusted so far, and gives back the slots that are still held. */
  end(): Promise<void> {
    this.#freeSlots();
    return this.flush();
  }

  /** Gives back the slots that were held for too long, with a warning; tokens stay as they are. */
  endHold(): void {
    const slots = this.#freeSlots();
    if (slots === 0) return;
    const { entityId, resource } = this.#target;
    this.#host.warn({ kind: "slot_overdue", entityId, resource, slots });
    this.flushSoon();
  }

  /** Makes slots that are held pending, to be given back; returns how many they are. */
  #freeSlots(): number {
    if (this.#slotsFromMs === undefined) return 0;
    let freedMilli = 0;
    for (const holding of this.all) {
      slotsMilli(holding)?.forEach((delta, at) => {
        add(holding.pendingMilli, at, delta);
        freedMilli -= delta;
      });
    }
    return freedMilli / 1000;
  }

  /** Refunds everything. */
  refund(): Promise<void> {
    return this.#inTurn(async () => {
      const holdings = this.all.map(copyOf);
      for (const { heldMilli, pendingMilli, unsureMilli } of this.all) {
        heldMilli.fill(0);
        pendingMilli.fill(0);
        unsureMilli.fill(0);
      }
      await this.#refund(holdings, this.#slotsFromMs);
    });
  }

  /** Refunds what a part of the call was granted after the lease had ended. */
  refundLate(granted: Granted, part: number): Promise<void> {
    return this.#refund(holdingsOf(granted, part), granted.heldFromMs);
  }

  async #refund(holdings: readonly Holding[], slotsFromMs: number | undefined): Promise<void> {
    this.#reportSlots(holdings, slotMilli, slotsFromMs);
    this.#reportRefund(holdings);
    const due = holdings.filter(({ heldMilli }) => heldMilli.some((held) => held !== 0));
    const refunds = due.map(async (holding) => {
      const deltasMilli = holding.heldMilli.map((held) => -held);
      return this.#host.buckets.refund(adjustmentOf(holding, deltasMilli));
    });
    await Promise.all(refunds);
    this.#reportRefunded(due, 1);
  }

  /** Writes after the write under way, whether that succeeds or not. */
  #inTurn(write: () => Promise<void> | undefined): Promise<void> {
    const written = this.#lastWrite === undefined ? write() : this.#lastWrite.then(write);
    if (written === undefined) return ENDED;
    this.#lastWrite = written.catch(() => {});
    return written;
  }

  /** Reports the failure of an earlier write, after this one. */
  async #failAfter(written: Promise<void> | undefined): Promise<void> {
    const failure = this.#failure;
    this.#failure = undefined;
    await written;
    throw failure;
  }

  #writePending(): Promise<void> | undefined {
    const due = this.all.filter(isPending);
    if (due.length === 0) return undefined;
    this.#reportSlots(due, freedMilli, this.#slotsFromMs);
    const deltas = due.map((holding) => heldAs(holding, [...holding.pendingMilli]));
    const results = due.map((holding) => this.#write(holding));
    if (!results.every((result) => result === true)) return this.#reportLater(results, deltas);
    this.#reportRefunded(deltas, -1);
    this.#reportAdjusted(deltas);
    return undefined;
  }

  async #reportLater(
    results: readonly (true | Promise<boolean>)[],
    deltas: readonly Holding[],
  ): Promise<void> {
    const ended = await Promise.allSettled(results.map(async (result) => result));
    this.#reportRefunded(deltas, -1);
    this.#reportAdjusted(deltas.filter((_, at) => isWritten(ended[at])));
    for (const result of ended) if (result.status === "rejected") throw result.reason;
  }

  /** Writes what is pending of a holding; `true` where the store has done it already. */
  #write(holding: Holding): true | Promise<boolean> {
    const deltasMilli = [...holding.pendingMilli];
    const adjustment = adjustmentOf(holding, deltasMilli);
    const { buckets } = this.#host;
    // A refund may be repeated, so it goes the way that never fails.
    const isRefund = deltasMilli.every((delta) => delta <= 0);
    const written = isRefund ? buckets.refund(adjustment) : buckets.adjust(adjustment);
    if (written !== undefined) return this.#settleLater(written, holding, adjustment);
    settle(holding, deltasMilli, holding.heldMilli);
    return true;
  }

  /** Returns whether it was written; throws where the caller must know that it was not. */
  async #settleLater(
    written: Promise<void>,
    holding: Holding,
    adjustment: Adjustment,
  ): Promise<boolean> {
    const { deltasMilli } = adjustment;
    try {
      await written;
      settle(holding, deltasMilli, holding.heldMilli);
      this.#host.adjusted(adjustment);
      return true;
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      this.#giveBackAlone(holding, deltasMilli, error.nothingWritten);
      // A write whose outcome is unknown is neither repeated nor taken back.
      if (!error.nothingWritten) settle(holding, deltasMilli, holding.unsureMilli);
      if (!this.#host.adjustmentFailed(this.#target, error)) throw error;
      return false;
    }
  }

  /**
   * Gives back the slots of a correction that was not written, without the tokens: slots must not
   * stay held because a settle fails. Where the outcome is unknown, the store repeats it by the
   * sequence of the entry.
   */
  #giveBackAlone(holding: Holding, deltasMilli: readonly number[], isUnwritten: boolean): void {
    if (holding.entry === undefined || !isUnwritten) return;
    const slots = deltasMilli.map((delta, at) => (areSlots(holding, at) ? delta : 0));
    if (slots.every((delta) => delta === 0)) return;
    settle(holding, slots, holding.heldMilli);
    void this.#host.buckets.refund(adjustmentOf(holding, slots));
  }

  /** Reports slots that are given back now, and how long they were held. */
  #reportSlots(
    holdings: readonly Holding[],
    slotsOf: (each: Holding, at: number) => number,
    fromMs: number | undefined,
  ): void {
    if (fromMs === undefined) return;
    const freed = holdings.filter((each) => each.heldMilli.some((_, at) => slotsOf(each, at) > 0));
    if (freed.length === 0) return;
    for (const holding of freed) this.#host.held(holding, fromMs);
    if (!this.#host.hasListeners) return;
    const { amounts, ...facts } = this.#facts(freed, slotsOf);
    const slots = Object.entries(amounts).filter(([, amount]) => amount > 0);
    this.#host.emit({ type: "released", ...facts, amounts: Object.fromEntries(slots) });
  }

  #reportRefund(holdings: readonly Holding[]): void {
    if (!this.#host.hasListeners) return;
    const facts = this.#facts(holdings);
    this.#host.emit({ type: "restored", ...facts, reason: "rollback" });
  }

  #reportAdjusted(deltas: readonly Holding[]): void {
    if (!this.#host.hasListeners) return;
    const isUsed = (delta: Holding) =>
      delta.heldMilli.some((_, at) => usedUpMilli(delta, at) !== 0);
    if (!deltas.some(isUsed)) return;
    this.#host.emit({ type: "adjusted", ...this.#facts(deltas) });
  }

  /** Returns the fields of an event, with the amounts of the entity itself. */
  #facts(holdings: readonly Holding[], milliOf = usedUpMilli) {
    const { entityId, resource } = this.#target;
    const isOwn = ({ part }: Holding) => part === 0;
    const own = holdings.every(isOwn) ? holdings : holdings.filter(isOwn);
    const amounts = ownTokens(own, this.#target, milliOf);
    return { acquireId: this.#acquireId, entityId, resource, amounts };
  }

  /** Reports refunded tokens to waiters; parts of tokens, of shards, only where they add up. */
  #reportRefunded(holdings: readonly Holding[], sign: 1 | -1): void {
    if (!this.#host.isAwaited) return;
    for (const some of byBucket(holdings)) {
      const { entityId, resource } = some[0] as Holding;
      const tokens = new Map<string, number>();
      for (const [name, milli] of sumsOf(some, writtenMilli)) {
        const back = floorDiv(sign * milli, 1000);
        if (back > 0) tokens.set(name, back);
      }
      if (tokens.size > 0) this.#host.refunded({ entityId, resource }, tokens);
    }
  }
}

/** Moves amounts that were pending: those that consume more to `consumed`, refunds to the held. */
function settle(holding: Holding, deltasMilli: readonly number[], consumed: number[]): void {
  deltasMilli.forEach((delta, at) => {
    add(delta > 0 ? consumed : holding.heldMilli, at, delta);
    add(holding.pendingMilli, at, -delta);
  });
}

function isPending({ pendingMilli }: Holding): boolean {
  for (let at = 0; at < pendingMilli.length; at += 1) if (pendingMilli[at] !== 0) return true;
  return false;
}

function isWritten(result: PromiseSettledResult<boolean> | undefined): boolean {
  return result?.status === "fulfilled" && result.value;
}
