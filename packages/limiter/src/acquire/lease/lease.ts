/// <reference lib="esnext.disposable" preserve="true" />

/** The result of a grant: the right to use what was consumed, and to correct it afterwards. */

import type { LimitStatus } from "../../domain/limit-status.ts";
import type { Amounts } from "../acquire-request.ts";

/** Final amounts; an absent one keeps what was consumed. */
export type SettledAmounts<Names extends string = string> = Readonly<
  Partial<Record<Names, number | null | undefined>>
>;

/**
 * The part of a lease that belongs to one resource of an entity, and to the total of that entity.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:');
 * await limiter.repository.limits.setSystem(['rpm:10', 'tpm:1000']);
 * const lease = await limiter.acquire({
 *   entityId: 'key-1', resource: 'gpt-4', consume: { rpm: 1 },
 *   also: [{ resource: 'embeddings', consume: { tpm: 500 } }],
 * });
 * lease.of('embeddings').settle({ tpm: 320 });
 * await lease.commit();
 * console.log(lease.consumed['rpm'], lease.of('embeddings').consumed['tpm']); // 1 320
 * await limiter.close();
 * ```
 */
export interface ResourceLease<Names extends string = string> {
  /** Net, of this entity, as far as it is counted; parents and totals are not added in. */
  readonly consumed: Amounts<Names>;
  /** The soft limits, of the entity or an ancestor, that the acquire has left below zero. */
  readonly overdrawn: readonly string[];
  /** The limits of the entity are bypassed: what is consumed is counted, and leaves no balance. */
  readonly bypassed: boolean;
  /** Consumes more, with the same check against the store; throws `RateLimitExceeded`. */
  consume(amounts: Amounts<Names>): Promise<void>;
  /** Adds to what was used (negative: less). Never refused, may go into debt; written at commit. */
  adjust(amounts: Amounts<Names>): void;
  /**
   * Adjusts by the amounts with the opposite sign. Slots are given back at once: for them it starts
   * its own flush, and `commit` waits for it.
   */
  release(amounts: Amounts<Names>): void;
  /**
   * Sets the final amounts: `settle({ tpm: 730 })` is `adjust({ tpm: 730 - consumed })`.
   * Limits that are not named keep their amounts. The lease stays open, and may be settled again.
   */
  settle(amounts: SettledAmounts<Names>): void;
}

/**
 * The result of a grant, open until it is committed or rolled back.
 *
 * Commit or roll back each lease once; `run` and `await using` do it for you. The net consumption
 * of a lease never goes below zero. In `adjust`, `release` and `settle` fractions round to the
 * larger consumption, and an amount that is `undefined` or `NaN` changes nothing and is reported
 * as a warning: what a call cost may be unknown, and that must never refund it.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:');
 * const lease = await limiter.acquire({
 *   entityId: 'key-1', resource: 'gpt-4', limits: ['tpm:1000'], consume: { tpm: 500 },
 * });
 * lease.settle({ tpm: 320 }); // the answer was shorter than estimated
 * await lease.commit();
 * console.log(lease.consumed['tpm']); // 320
 * await limiter.close();
 * ```
 */
export interface Lease<Names extends string = string> extends ResourceLease<Names> {
  /** Right after the acquire: own entity, then parents. */
  readonly statuses: readonly LimitStatus[];
  /** The store was down and `allow` let the call pass: nothing is counted. */
  readonly degraded: boolean;
  /** The resources of the acquire: its own first, then those of `also`. */
  readonly resources: readonly string[];
  /**
   * Returns the part of one resource; the methods of the lease itself apply to the first one. A
   * resource that `also` names for several entities needs the `entityId`.
   */
  of(resource: string, options?: { readonly entityId?: string }): ResourceLease<Names>;
  /** Writes what was adjusted so far, for long streams. */
  flush(): Promise<void>;
  /** Writes what was adjusted and ends the lease. */
  commit(): Promise<void>;
  /** Refunds everything and ends the lease. */
  rollback(): Promise<void>;
  /** Commits, unless the lease has ended. */
  [Symbol.asyncDispose](): Promise<void>;
}
