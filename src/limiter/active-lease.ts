/** A lease on what was consumed from buckets. */

import type { BucketStore } from "../buckets/bucket-store.ts";
import type { OnlyBucket } from "../buckets/fast-path.ts";
import { floorDiv } from "../core/integers.ts";
import { LeaseExpiredError, RateLimiterUnavailable, ValidationError } from "../domain/errors.ts";
import { INSPECT, type InspectStyle, inspected } from "../domain/inspect.ts";
import type { Limit } from "../domain/limit.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import type { OnUnavailable } from "../domain/unavailability.ts";
import type { MissingLimits } from "./acquire-request.ts";
import type { Amounts, AmountsByName } from "./amounts.ts";
import { statusesAfter } from "./decision.ts";
import type { LeaseWarning, LimiterEvent } from "./events.ts";
import {
  add,
  balancesIn,
  byBucket,
  copyOf,
  type Granted,
  type Holding,
  holdingsOf,
  sameBucket,
  sumsOf,
  tokensOf,
  writtenMilli,
} from "./holding.ts";
import type { Lease, ResourceLease, SettledAmounts } from "./lease.ts";
import { LeasePart, type PartAccess, settleNow } from "./lease-part.ts";

/** What a lease consumes from. */
export interface LeaseTarget {
  readonly entityId: string;
  readonly resource: string;
  readonly limits?: readonly Limit[] | undefined;
  readonly onUnavailable?: OnUnavailable | undefined;
  readonly missingLimits?: MissingLimits | undefined;
}

/** What leases have in common. */
export interface LeaseHost {
  readonly buckets: BucketStore;
  /** Charges more of the same entity and resource, or throws; `undefined`: passed uncounted. */
  takeMore(
    target: LeaseTarget,
    amounts: AmountsByName,
    acquireId: string | undefined,
  ): Promise<Granted | undefined>;
  /** What to do when an adjustment cannot be written: `true` lets it pass with a warning. */
  adjustmentFailed(target: LeaseTarget, cause: RateLimiterUnavailable): boolean;
  /** Whether an event would reach a listener. */
  readonly isHeard: boolean;
  /** Whether a call waits for tokens, so that refunds are worth telling. */
  readonly isAwaited: boolean;
  tell(event: LimiterEvent): void;
  /** So many whole tokens of a bucket were given back. */
  refunded(bucket: { entityId: string; resource: string }, tokens: AmountsByName): void;
  /** Refuses names that none of the limits has, unless the target ignores those. */
  checkNames(
    target: LeaseTarget,
    field: string,
    amounts: AmountsByName,
    limits: readonly Limit[],
  ): void;
  /** Tells of amounts that could not be applied as they were given. */
  warn(warning: LeaseWarning): void;
}

/** What ending a lease returns when nothing had to be waited for. */
export const ENDED: Promise<void> = Promise.resolve();

/** Reads the bucket of a lease without its statuses, for other parts of this package. */
export const ONLY_BUCKET = Symbol("zae-limiter.only-bucket");

export class ActiveLease implements Lease {
  static readonly #access: PartAccess<ActiveLease> = {
    holdings: (lease) => lease.#holdings,
    refuseEnded: (lease) => lease.#refuseEnded(),
    consumeMore: (lease, target, amounts) => lease.#consumeMore(target, amounts),
  };
  readonly #host: LeaseHost;
  readonly #target: LeaseTarget;
  readonly #granted: Granted;
  /** Names the acquire in events; `undefined` where nothing listened to it. */
  readonly #acquireId: string | undefined;
  /** Created on first use: most leases are committed unchanged. */
  #made: Holding[] | undefined;
  #statuses: readonly LimitStatus[] | undefined;
  #ended: "committed" | "rolled back" | undefined;
  /** The write under way. Each one starts from what the one before it has written. */
  #lastWrite: Promise<void> | undefined;

  constructor(host: LeaseHost, target: LeaseTarget, granted: Granted, acquireId?: string) {
    this.#host = host;
    this.#target = target;
    this.#granted = granted;
    this.#acquireId = acquireId;
  }

  get degraded(): boolean {
    return false;
  }

  get consumed(): Amounts {
    return this.#own.consumed;
  }

  get statuses(): readonly LimitStatus[] {
    this.#statuses ??= statusesAfter(this.#granted.legs, balancesIn(this.#granted));
    return this.#statuses;
  }

  /**
   * The bucket that the acquire consumed from, as it left it; `undefined` where there are several,
   * or where only the statuses tell.
   *
   * @internal
   */
  get [ONLY_BUCKET](): OnlyBucket | undefined {
    return this.#granted.only;
  }

  get overdrawn(): readonly string[] {
    return this.#own.overdrawn;
  }

  get bypassed(): boolean {
    return this.#own.bypassed;
  }

  get resources(): readonly string[] {
    return [...new Set(this.#granted.legs.map(({ resource }) => resource))];
  }

  of(resource: string): ResourceLease {
    const { resources } = this;
    if (resource === this.#target.resource) return this.#own;
    if (!resources.includes(resource)) {
      const reason = `the lease has no "${resource}"; it has ${resources.join(", ")}`;
      throw new ValidationError("resource", resource, reason);
    }
    return this.#partOf({ ...this.#target, resource, limits: undefined });
  }

  get isEnded(): boolean {
    return this.#ended !== undefined;
  }

  consume(amounts: Amounts): Promise<void> {
    return this.#own.consume(amounts);
  }

  adjust(amounts: Amounts): void {
    this.#own.adjust(amounts);
  }

  release(amounts: Amounts): void {
    this.#own.release(amounts);
  }

  settle(amounts: SettledAmounts): void {
    this.#refuseEnded();
    // Most leases hold one bucket, and need no part for it.
    if (!settleNow(this.#holdings, amounts, this.#target)) this.#own.settle(amounts);
  }

  async flush(): Promise<void> {
    this.#refuseEnded();
    await this.#flush();
  }

  commit(): Promise<void> {
    if (this.isEnded) return Promise.reject(new LeaseExpiredError());
    this.#ended = "committed";
    // Without holdings nothing was adjusted.
    if (this.#made === undefined) return ENDED;
    return this.#lastWrite === undefined && this.#adjustNow() ? ENDED : this.#flush();
  }

  #flush(): Promise<void> {
    return this.#inTurn(() => this.#writePending());
  }

  async rollback(): Promise<void> {
    this.#refuseEnded();
    this.#ended = "rolled back";
    await this.#inTurn(async () => {
      const holdings = this.#holdings.map(copyOf);
      for (const { heldMilli, pendingMilli, unsureMilli } of this.#holdings) {
        heldMilli.fill(0);
        pendingMilli.fill(0);
        unsureMilli.fill(0);
      }
      this.#tellRefund(holdings);
      await this.#restore(holdings);
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.isEnded ? ENDED : this.commit();
  }

  [INSPECT](...style: InspectStyle): string {
    const { entityId, resource } = this.#target;
    const { consumed, degraded } = this;
    const state = this.#ended ?? "open";
    return inspected("Lease", { entityId, resource, state, consumed, degraded }, style);
  }

  /** The first is the one of the entity itself that was consumed from first. */
  get #holdings(): Holding[] {
    this.#made ??= holdingsOf(this.#granted);
    return this.#made;
  }

  /** The resource that was acquired first. */
  get #own(): LeasePart<ActiveLease> {
    return this.#partOf(this.#target);
  }

  #partOf(target: LeaseTarget): LeasePart<ActiveLease> {
    return new LeasePart(this.#host, this, ActiveLease.#access, target);
  }

  async #consumeMore(target: LeaseTarget, amounts: AmountsByName): Promise<boolean> {
    const granted = await this.#host.takeMore(target, amounts, this.#acquireId);
    if (!this.isEnded) {
      if (granted !== undefined) this.#hold(granted);
      return granted !== undefined;
    }
    // The lease has ended meanwhile: what came too late is refunded at once.
    if (granted !== undefined) {
      const late = holdingsOf(granted);
      this.#tellRefund(late);
      await this.#restore(late);
    }
    throw new LeaseExpiredError();
  }

  #refuseEnded(): void {
    if (this.isEnded) throw new LeaseExpiredError();
  }

  /** One after the other, whether those before went well or not. */
  #inTurn(write: () => Promise<void>): Promise<void> {
    const written = this.#lastWrite === undefined ? write() : this.#lastWrite.then(write);
    this.#lastWrite = written.catch(() => {});
    return written;
  }

  /** What is held of one shard is one holding, so that it is settled by one write. */
  #hold(granted: Granted): void {
    for (const taken of holdingsOf(granted)) {
      const same = this.#holdings.find((holding) => sameBucket(holding, taken));
      if (same === undefined) {
        this.#holdings.push(taken);
        continue;
      }
      for (const [at, amount] of taken.heldMilli.entries()) add(same.heldMilli, at, amount);
    }
  }

  async #writePending(): Promise<void> {
    const due = this.#holdings.filter(isPending);
    const deltas = due.map((holding) => ({ ...holding, heldMilli: [...holding.pendingMilli] }));
    const [only] = due;
    if (only !== undefined && due.length === 1) return this.#writeOnly(only, deltas);
    const results = await Promise.allSettled(due.map((holding) => this.#writeOne(holding)));
    this.#tellRefunded(deltas, -1);
    this.#tellAdjusted(deltas.filter((_, at) => isWritten(results[at])));
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  /** Writes what is pending without a promise, where the bucket is in this process. */
  #adjustNow(): boolean {
    const holdings = this.#holdings;
    const holding = holdings[0];
    if (holding === undefined || holdings.length > 1) return !holdings.some(isPending);
    if (!isPending(holding)) return true;
    const { entityId, resource, shard, config, pendingMilli, heldMilli } = holding;
    const adjustment = { entityId, resource, shard, config, deltasMilli: pendingMilli };
    if (!this.#host.buckets.fastPath.adjust(adjustment)) return false;
    if (this.#host.isHeard || this.#host.isAwaited) {
      const deltas = [{ ...holding, heldMilli: pendingMilli }];
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
    const adjustment = { ...holding, deltasMilli };
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

  async #restore(holdings: readonly Holding[]): Promise<void> {
    const due = holdings.filter(({ heldMilli }) => heldMilli.some((held) => held !== 0));
    await Promise.all(
      due.map((holding) =>
        this.#host.buckets.refund({
          ...holding,
          deltasMilli: holding.heldMilli.map((held) => -held),
        }),
      ),
    );
    this.#tellRefunded(due, 1);
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
