/** A lease on what was consumed from buckets. */

import { INSPECT, type InspectStyle, inspected } from "../../base/inspect.ts";
import { LeaseExpiredError, ValidationError } from "../../domain/errors/errors.ts";
import type { LimitStatus } from "../../domain/limit-status.ts";
import type { Amounts, AmountsByName } from "../acquire-request.ts";
import { statusesAfter } from "../decision.ts";
import { balancesIn, type Granted, type Holding, holdingsOf, oldestShownMs } from "./holding.ts";
import type { Lease, ResourceLease, SettledAmounts } from "./lease.ts";
import { ENDED, LeaseHoldings } from "./lease-holdings.ts";
import type { LeaseHost, LeaseTarget } from "./lease-host.ts";
import { LeasePart, type PartAccess } from "./lease-part.ts";

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
   * Epoch milliseconds at which the store showed its oldest balance; `undefined`: just now.
   *
   * @internal
   */
  get [SHOWN_AT_MS](): number | undefined {
    return oldestShownMs(this.#granted);
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
    this.#own().settle(amounts);
  }

  async flush(): Promise<void> {
    this.#refuseEnded();
    await this.#held().flush();
  }

  commit(): Promise<void> {
    if (this.isEnded) return Promise.reject(new LeaseExpiredError());
    this.#ended = "committed";
    return this.#holdings === undefined ? ENDED : this.#holdings.flush();
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

  #held(): LeaseHoldings {
    this.#holdings ??= new LeaseHoldings(
      this.#host,
      this.#target,
      this.#acquireId,
      holdingsOf(this.#granted),
    );
    return this.#holdings;
  }

  /** Returns the part of the resource that was acquired first. */
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
    // The lease has ended by now: what came too late is refunded at once.
    if (granted !== undefined) await this.#held().refundLate(holdingsOf(granted));
    throw new LeaseExpiredError();
  }

  #refuseEnded(): void {
    if (this.isEnded) throw new LeaseExpiredError();
  }
}
