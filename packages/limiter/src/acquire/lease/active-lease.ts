/** A lease on what was consumed from buckets. */

import { INSPECT, type InspectStyle, inspected } from "../../base/inspect.ts";
import { LeaseExpiredError, ValidationError } from "../../domain/errors/errors.ts";
import type { LimitStatus } from "../../domain/limit-status.ts";
import type { BucketName } from "../../records/keys.ts";
import type { Amounts, AmountsByName } from "../acquire-request.ts";
import { partsOfBucket, statusesAfter } from "../decision.ts";
import { type Granted, type Holding, holdingsOf, oldestShownMs, seenIn } from "./holding.ts";
import type { Lease, ResourceLease, SettledAmounts } from "./lease.ts";
import { ENDED, LeaseHoldings } from "./lease-holdings.ts";
import type { LeaseHost, LeaseTarget } from "./lease-host.ts";
import { LeasePart, type PartAccess } from "./lease-part.ts";

/** Reads what a lease holds, for other parts of this package. */
export const HELD = Symbol("zae-limiter.held");
/** Returns the parts of the call that consumed from a bucket, for other parts of this package. */
export const PARTS_OF = Symbol("zae-limiter.parts-of");
/** Reads how old the statuses of a lease are, for other parts of this package. */
export const SHOWN_AT_MS = Symbol("zae-limiter.shown-at-ms");

export class ActiveLease implements Lease {
  static readonly #access: PartAccess<ActiveLease> = {
    holdings: (lease) => lease.#held(),
    refuseEnded: (lease) => lease.#refuseEnded(),
    consumeMore: (lease, target, part, amounts) => lease.#consumeMore(target, part, amounts),
    flush: (lease) => lease.#held().flushSoon(),
  };
  readonly #host: LeaseHost;
  readonly #target: LeaseTarget;
  readonly #granted: Granted;
  /** Names the acquire in events; `undefined` where nothing listened to it. */
  readonly #acquireId: string | undefined;
  /** Created on first use: most leases are committed unchanged. */
  #holdings: LeaseHoldings | undefined;
  #statuses: readonly LimitStatus[] | undefined;
  #ended: "committed" | "rolled back" | undefined;
  /** Ends the watch over its slots, where they may be held for some time only. */
  #watch: AbortController | undefined;

  constructor(host: LeaseHost, target: LeaseTarget, granted: Granted, acquireId?: string) {
    this.#host = host;
    this.#target = target;
    this.#granted = granted;
    this.#acquireId = acquireId;
    if (granted.heldFromMs !== undefined) this.#watchSlots();
  }

  get degraded(): boolean {
    return false;
  }

  get consumed(): Amounts {
    return this.#own().consumed;
  }

  get statuses(): readonly LimitStatus[] {
    this.#statuses ??= statusesAfter(this.#granted.legs, seenIn(this.#granted));
    return this.#statuses;
  }

  /**
   * Epoch milliseconds at which the store showed its oldest balance; `undefined`: just now.
   *
   * @internal
   */
  get [SHOWN_AT_MS](): number | undefined {
    return oldestShownMs(this.#granted);
  }

  /**
   * Returns the parts of the call that consumed from a bucket.
   *
   * @internal
   */
  [PARTS_OF](bucket: BucketName): readonly number[] {
    return partsOfBucket(this.#granted.legs, this.#granted.shares, bucket);
  }

  /**
   * The call it was granted for, and its holdings.
   *
   * @internal
   */
  get [HELD](): { readonly target: LeaseTarget; readonly holdings: readonly Holding[] } {
    return { target: this.#target, holdings: this.#held().all };
  }

  get overdrawn(): readonly string[] {
    return this.#own().overdrawn;
  }

  get bypassed(): boolean {
    return this.#own().bypassed;
  }

  get resources(): readonly string[] {
    const { resource, also = [] } = this.#target;
    return [...new Set([resource, ...also.map((part) => part.resource)])];
  }

  of(resource: string, { entityId }: { readonly entityId?: string } = {}): ResourceLease {
    const { also = [] } = this.#target;
    const parts = [this.#target, ...also];
    const named = parts.filter((part) => part.resource === resource);
    const own = named.filter((part) => part.entityId === (entityId ?? this.#target.entityId));
    const [found] = own.length === 0 && named.length === 1 && entityId === undefined ? named : own;
    if (found !== undefined) return this.#partAt(parts.indexOf(found));
    const has = parts.map((part) => `"${part.resource}" of "${part.entityId}"`).join(", ");
    const wanted = entityId === undefined ? `"${resource}"` : `"${resource}" of "${entityId}"`;
    const reason =
      named.length > 1 && entityId === undefined
        ? `the lease has ${wanted} of several entities: pass { entityId }; it has ${has}`
        : `the lease has no ${wanted}; it has ${has}`;
    throw new ValidationError("resource", resource, reason);
  }

  get isEnded(): boolean {
    return this.#ended !== undefined;
  }

  consume(amounts: Amounts): Promise<void> {
    return this.#own().consume(amounts);
  }

  adjust(amounts: Amounts): void {
    this.#own().adjust(amounts);
  }

  release(amounts: Amounts): void {
    this.#own().release(amounts);
  }

  settle(amounts: SettledAmounts): void {
    this.#own().settle(amounts);
  }

  async flush(): Promise<void> {
    this.#refuseEnded();
    await this.#held().flush();
  }

  commit(): Promise<void> {
    if (this.isEnded) return Promise.reject(new LeaseExpiredError());
    this.#ended = "committed";
    this.#watch?.abort();
    const hasSlots = this.#granted.heldFromMs !== undefined;
    return hasSlots || this.#holdings !== undefined ? this.#held().end() : ENDED;
  }

  async rollback(): Promise<void> {
    this.#refuseEnded();
    this.#ended = "rolled back";
    this.#watch?.abort();
    await this.#held().refund();
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

  #held(): LeaseHoldings {
    this.#holdings ??= new LeaseHoldings(
      this.#host,
      this.#target,
      this.#acquireId,
      holdingsOf(this.#granted),
      this.#granted.heldFromMs,
    );
    return this.#holdings;
  }

  /** Returns the part of the request itself. */
  #own(): LeasePart<ActiveLease> {
    return new LeasePart(this.#host, this, ActiveLease.#access, this.#target, 0);
  }

  /** Returns a part by its place: 0 is the request itself, then come those of `also`. */
  #partAt(part: number): LeasePart<ActiveLease> {
    const other = part === 0 ? undefined : this.#target.also?.[part - 1];
    if (other === undefined) return this.#own();
    const { entityId, resource, limits } = other;
    const { onUnavailable, missingLimits, also } = this.#target;
    const totals = limits === undefined ? this.#target.totals : false;
    const target = { entityId, resource, limits, onUnavailable, missingLimits, totals, also };
    return new LeasePart(this.#host, this, ActiveLease.#access, target, part);
  }

  async #consumeMore(target: LeaseTarget, part: number, amounts: AmountsByName): Promise<boolean> {
    const granted = await this.#host.consumeMore(target, amounts, this.#acquireId);
    if (!this.isEnded) {
      if (granted !== undefined) this.#held().add(granted, part);
      if (granted?.heldFromMs !== undefined) this.#watchSlots();
      return granted !== undefined;
    }
    // The lease has ended by now: what came too late is refunded at once.
    if (granted !== undefined) await this.#held().refundLate(granted, part);
    throw new LeaseExpiredError();
  }

  /** Gives slots back that are held for longer than the call may hold them. */
  #watchSlots(): void {
    const { maxHoldMs } = this.#target;
    if (maxHoldMs === undefined || this.#watch !== undefined) return;
    const watch = new AbortController();
    this.#watch = watch;
    const ended = this.#host.timer.sleep(maxHoldMs, watch.signal, true).then(() => {
      this.#watch = undefined;
      if (!watch.signal.aborted) this.#held().endHold();
    });
    // A store that is closed by then gives nothing back: that is no failure of this process.
    ended.catch(() => {});
  }

  #refuseEnded(): void {
    if (this.isEnded) throw new LeaseExpiredError();
  }
}
