/** The lease of a call that passed while the store was down: it counts nothing. */

import { TOKENS_MAX } from "../domain/check.ts";
import { LeaseExpiredError } from "../domain/errors.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import { checkAmounts } from "./acquire-request.ts";
import type { Lease } from "./lease.ts";

export class DegradedLease implements Lease {
  readonly degraded = true;
  readonly consumed: Readonly<Record<string, number>> = Object.freeze({});
  readonly statuses: readonly LimitStatus[] = Object.freeze([]);
  #settled = false;

  get isSettled(): boolean {
    return this.#settled;
  }

  async consume(amounts: Readonly<Record<string, number>>): Promise<void> {
    this.#refuseSettled();
    checkAmounts("consume", amounts, 0);
  }

  adjust(amounts: Readonly<Record<string, number>>): void {
    this.#refuseSettled();
    checkAmounts("adjust", amounts, -TOKENS_MAX);
  }

  release(amounts: Readonly<Record<string, number>>): void {
    this.#refuseSettled();
    checkAmounts("release", amounts, -TOKENS_MAX);
  }

  async flush(): Promise<void> {
    this.#refuseSettled();
  }

  async commit(): Promise<void> {
    this.#refuseSettled();
    this.#settled = true;
  }

  async rollback(): Promise<void> {
    this.#refuseSettled();
    this.#settled = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#settled = true;
  }

  #refuseSettled(): void {
    if (this.#settled) throw new LeaseExpiredError();
  }
}
