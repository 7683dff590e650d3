/** The lease of a call that passed while the store was down: it counts nothing. */

import { INSPECT, type InspectStyle, inspected } from "../../base/inspect.ts";
import { LeaseExpiredError } from "../../domain/errors/errors.ts";
import type { LimitStatus } from "../../domain/limit-status.ts";
import { type Amounts, checkAmounts, readCorrections } from "../acquire-request.ts";
import type { Lease, ResourceLease, SettledAmounts } from "./lease.ts";

export class DegradedLease implements Lease {
  readonly degraded = true;
  readonly consumed: Readonly<Record<string, number>> = Object.freeze({});
  readonly statuses: readonly LimitStatus[] = Object.freeze([]);
  readonly overdrawn: readonly string[] = Object.freeze([]);
  readonly bypassed = false;
  readonly resources: readonly string[] = Object.freeze([]);
  #ended = false;

  get isEnded(): boolean {
    return this.#ended;
  }

  async consume(amounts: Amounts): Promise<void> {
    this.#refuseEnded();
    checkAmounts("consume", amounts);
  }

  adjust(amounts: Amounts): void {
    this.#check("adjust", amounts);
  }

  release(amounts: Amounts): void {
    this.#check("release", amounts);
  }

  settle(amounts: SettledAmounts): void {
    this.#check("settle", amounts);
  }

  /** Returns the lease itself: the part of a resource counts nothing either. */
  of(_resource: string, _options?: { readonly entityId?: string }): ResourceLease {
    return this;
  }

  async flush(): Promise<void> {
    this.#refuseEnded();
  }

  async commit(): Promise<void> {
    this.#refuseEnded();
    this.#ended = true;
  }

  async rollback(): Promise<void> {
    this.#refuseEnded();
    this.#ended = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
  }

  [INSPECT](...style: InspectStyle): string {
    const { degraded, consumed } = this;
    const state = this.#ended ? "ended" : "open";
    return inspected("Lease", { state, degraded, consumed }, style);
  }

  /** Validates amounts without a warning: nothing is counted, so nothing is reported either. */
  #check(operation: string, amounts: SettledAmounts): void {
    this.#refuseEnded();
    readCorrections(operation, amounts ?? {}, 1, () => {});
  }

  #refuseEnded(): void {
    if (this.#ended) throw new LeaseExpiredError();
  }
}
