/** A lease on what was consumed from buckets. */

import { INSPECT, type InspectStyle, inspected } from "../../base/inspect.ts";
import type { OnlyBucket } from "../../buckets/fast-path.ts";
import { LeaseExpiredError, ValidationError } from "../../domain/errors/errors.ts";
import type { LimitStatus } from "../../domain/limit-status.ts";
import type { Amounts, AmountsByName } from "../amounts.ts";
import { statusesAfter } from "../decision.ts";
import { balancesIn, type Granted, type Holding, holdingsOf, oldestShownMs } from "./holding.ts";
import type { Lease, ResourceLease, SettledAmounts } from "./lease.ts";
import { ENDED, LeaseHoldings } from "./lease-holdings.ts";
import type { LeaseHost, LeaseTarget } from "./lease-host.ts";
import { LeasePart, type PartAccess } from "./lease-part.ts";
import { addSettled, settledDeltas } from "./settled-amounts.ts";

/** Reads the bucket of a lease without its statuses, for other parts of this package. */
export const ONLY_BUCKET = Symbol("zae-limiter.only-bucket");
/** Reads what a lease holds, for other parts of this package. */
export const HELD = Symbol("zae-limiter.held");
/** Reads how old the statuses of a lease are, for other parts of this package. */
export const SHOWN_AT_MS = Symbol("zae-limiter.shown-at-ms");

export class ActiveLease implements Lease {
  static readonly #access: PartAccess<ActiveLease> = {
    holdings: (lease) => lease.#held().all,
    refuseEnded: (lease) => lease.#refuseEnded(),
    consumeMore: (lease, target, amounts) => lease.#consumeMore(target, amounts),
  };
  readonly #host: LeaseHost;
  readonly #target: LeaseTarget;
  readonly #granted: Granted;
  /** Names the acquire in events; `undefined` where nothing listened to it. */
  readonly #acquireId: string | undefined;
  /** Created on first use: most leases are committed unchanged. */
  #holdings: LeaseHoldings | undefined;
  /** What `settle` has changed while there were no holdings, and whether it is written. */
  #settledMilli: readonly number[] | undefined;
  #isSettled = false;
  #statuses: readonly LimitStatus[] | undefined;
  #ended: "committed" | "rolled back" | undefined;

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
    return this.#own().consumed;
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

  /**
   * When the store showed the oldest balance of its statuses; `undefined`: just now.
   *
   * @internal
   */
  get [SHOWN_AT_MS](): number | undefined {
    return oldestShownMs(this.#granted);
  }

  /**
   * What it was granted for, and what it holds.
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
    return [...new Set(this.#granted.legs.map(({ resource }) => resource))];
  }

  of(resource: string): ResourceLease {
    const { resources } = this;
    if (resource === this.#target.resource) return this.#own();
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
    return this.#own().consume(amounts);
  }

  adjust(amounts: Amounts): void {
    this.#own().adjust(amounts);
  }

  release(amounts: Amounts): void {
    this.#own().release(amounts);
  }

  settle(amounts: SettledAmounts): void {
    this.#refuseEnded();
    if (!this.#settleOnly(amounts)) this.#own().settle(amounts);
  }

  async flush(): Promise<void> {
    this.#refuseEnded();
    await this.#held().flush();
  }

  commit(): Promise<void> {
    if (this.isEnded) return Promise.reject(new LeaseExpiredError());
    this.#ended = "committed";
    if (this.#holdings === undefined && this.#writeSettled()) return ENDED;
    return this.#held().commit();
  }

  async rollback(): Promise<void> {
    this.#refuseEnded();
    this.#ended = "rolled back";
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

  /** Settles the one bucket that most leases hold; false, with nothing done: for all else. */
  #settleOnly(amounts: SettledAmounts): boolean {
    const { only } = this.#granted;
    if (this.#holdings !== undefined || only === undefined) return false;
    const deltas = settledDeltas(only, amounts, this.#settledMilli);
    if (deltas !== undefined) this.#settledMilli = deltas;
    return deltas !== undefined;
  }

  /** Writes what was settled; false, with nothing done: where listeners or waiters hear of it. */
  #writeSettled(): boolean {
    const deltas = this.#settledMilli;
    if (deltas === undefined) return true;
    const { isHeard, isAwaited, buckets } = this.#host;
    if (isHeard || isAwaited) return false;
    this.#isSettled = buckets.fastPath.adjust(this.#granted.only as OnlyBucket, deltas, 0);
    return this.#isSettled;
  }

  #held(): LeaseHoldings {
    this.#holdings ??= this.#hold();
    return this.#holdings;
  }

  #hold(): LeaseHoldings {
    const holdings = holdingsOf(this.#granted);
    const deltas = this.#settledMilli;
    if (deltas !== undefined) addSettled(holdings[0] as Holding, deltas, this.#isSettled);
    return new LeaseHoldings(this.#host, this.#target, this.#acquireId, holdings);
  }

  /** The resource that was acquired first. */
  #own(): LeasePart<ActiveLease> {
    return this.#partOf(this.#target);
  }

  #partOf(target: LeaseTarget): LeasePart<ActiveLease> {
    return new LeasePart(this.#host, this, ActiveLease.#access, target);
  }

  async #consumeMore(target: LeaseTarget, amounts: AmountsByName): Promise<boolean> {
    const granted = await this.#host.consumeMore(target, amounts, this.#acquireId);
    if (!this.isEnded) {
      if (granted !== undefined) this.#held().add(holdingsOf(granted));
      return granted !== undefined;
    }
    // The lease has ended meanwhile: what came too late is refunded at once.
    if (granted !== undefined) await this.#held().refundLate(holdingsOf(granted));
    throw new LeaseExpiredError();
  }

  #refuseEnded(): void {
    if (this.isEnded) throw new LeaseExpiredError();
  }
}
