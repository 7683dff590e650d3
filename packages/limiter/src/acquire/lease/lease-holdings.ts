/** What a lease holds of its buckets, and the writes that correct or refund it. */

import { floorDiv } from "../../core/integers.ts";
import { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import {
  add,
  adjustmentOf,
  byBucket,
  copyOf,
  type Holding,
  heldAs,
  sameBucket,
  sumsOf,
  tokensOf,
  writtenMilli,
} from "./holding.ts";
import type { LeaseHost, LeaseTarget } from "./lease-host.ts";

/** What ending a lease returns when nothing had to be waited for. */
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

  constructor(
    host: LeaseHost,
    target: LeaseTarget,
    acquireId: string | undefined,
    holdings: Holding[],
  ) {
    this.all = holdings;
    this.#host = host;
    this.#target = target;
    this.#acquireId = acquireId;
  }

  /** What is held of one shard is one holding, so that it is settled by one write. */
  add(more: readonly Holding[]): void {
    for (const taken of more) {
      const same = this.all.find((holding) => sameBucket(holding, taken));
      if (same === undefined) {
        this.all.push(taken);
        continue;
      }
      for (const [at, amount] of taken.heldMilli.entries()) add(same.heldMilli, at, amount);
    }
  }

  /** Writes what was adjusted so far. */
  flush(): Promise<void> {
    return this.#inTurn(() => this.#writePending());
  }

  /** Writes what was adjusted, without a promise of its own where that is possible. */
  commit(): Promise<void> {
    return this.#lastWrite === undefined && this.#adjustNow() ? ENDED : this.flush();
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
      await this.refundLate(holdings);
    });
  }

  /** Refunds what was consumed for the lease and is not among its holdings. */
  async refundLate(holdings: readonly Holding[]): Promise<void> {
    this.#tellRefund(holdings);
    const due = holdings.filter(({ heldMilli }) => heldMilli.some((held) => held !== 0));
    const refunds = due.map((holding) => {
      const deltasMilli = holding.heldMilli.map((held) => -held);
      return this.#host.buckets.refund(adjustmentOf(holding, deltasMilli));
    });
    await Promise.all(refunds);
    this.#tellRefunded(due, 1);
  }

  /** One after the other, whether those before went well or not. */
  #inTurn(write: () => Promise<void>): Promise<void> {
    const written = this.#lastWrite === undefined ? write() : this.#lastWrite.then(write);
    this.#lastWrite = written.catch(() => {});
    return written;
  }

  async #writePending(): Promise<void> {
    const due = this.all.filter(isPending);
    const deltas = due.map((holding) => heldAs(holding, [...holding.pendingMilli]));
    const [only] = due;
    if (only !== undefined && due.length === 1) return this.#writeOnly(only, deltas);
    const results = await Promise.allSettled(due.map((holding) => this.#writeOne(holding)));
    this.#tellRefunded(deltas, -1);
    this.#tellAdjusted(deltas.filter((_, at) => isWritten(results[at])));
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  /** Writes what is pending without a promise, where the bucket is in this process. */
  #adjustNow(): boolean {
    const holdings = this.all;
    const holding = holdings[0];
    if (holding === undefined || holdings.length > 1) return !holdings.some(isPending);
    if (!isPending(holding)) return true;
    const { pendingMilli, heldMilli } = holding;
    if (!this.#host.buckets.fastPath.adjust(holding, pendingMilli, 0)) return false;
    if (this.#host.isHeard || this.#host.isAwaited) {
      const deltas = [heldAs(holding, pendingMilli)];
      this.#tellRefunded(deltas, -1);
      this.#tellAdjusted(deltas);
    }
    for (let at = 0; at < pendingMilli.length; at += 1) {
      add(heldMilli, at, pendingMilli[at] as number);
      pendingMilli[at] = 0;
    }
    return true;
  }

  /** The same for one holding, which is what most leases have. */
  async #writeOnly(holding: Holding, deltas: readonly Holding[]): Promise<void> {
    let isDone = false;
    try {
      isDone = await this.#writeOne(holding);
    } finally {
      this.#tellRefunded(deltas, -1);
      if (isDone) this.#tellAdjusted(deltas);
    }
  }

  /** Returns whether it was written; throws where the caller must know that it was not. */
  async #writeOne(holding: Holding): Promise<boolean> {
    const deltasMilli = [...holding.pendingMilli];
    const settle = (taken: number[]) => {
      deltasMilli.forEach((delta, at) => {
        add(delta > 0 ? taken : holding.heldMilli, at, delta);
        add(holding.pendingMilli, at, -delta);
      });
    };
    const adjustment = adjustmentOf(holding, deltasMilli);
    try {
      // Giving back may be repeated, so it goes the way that never fails.
      if (deltasMilli.every((delta) => delta <= 0)) await this.#host.buckets.refund(adjustment);
      else await this.#host.buckets.adjust(adjustment);
      settle(holding.heldMilli);
      return true;
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      // A write whose outcome is unknown is neither repeated nor taken back.
      if (!error.nothingWritten) settle(holding.unsureMilli);
      if (!this.#host.adjustmentFailed(this.#target, error)) throw error;
      return false;
    }
  }

  #tellRefund(holdings: readonly Holding[]): void {
    if (!this.#host.isHeard) return;
    const facts = this.#facts(holdings);
    this.#host.tell({ type: "restored", ...facts, reason: "rollback" });
  }

  #tellAdjusted(deltas: readonly Holding[]): void {
    if (!this.#host.isHeard || deltas.length === 0) return;
    this.#host.tell({ type: "adjusted", ...this.#facts(deltas) });
  }

  /** What an event tells of the lease, with the amounts of the entity itself. */
  #facts(holdings: readonly Holding[]) {
    const { entityId, resource } = this.#target;
    const isOwn = (holding: Holding) =>
      holding.entityId === entityId && holding.resource === resource;
    const amounts = tokensOf(
      holdings.every(isOwn) ? holdings : holdings.filter(isOwn),
      writtenMilli,
    );
    return { acquireId: this.#acquireId, entityId, resource, amounts };
  }

  /** Parts of tokens, of shards, are worth telling only as far as they add up. */
  #tellRefunded(holdings: readonly Holding[], sign: 1 | -1): void {
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

function isPending({ pendingMilli }: Holding): boolean {
  for (let at = 0; at < pendingMilli.length; at += 1) if (pendingMilli[at] !== 0) return true;
  return false;
}

function isWritten(result: PromiseSettledResult<boolean> | undefined): boolean {
  return result?.status === "fulfilled" && result.value;
}
