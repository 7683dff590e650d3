/** What an acquire hands out: the right to use what was taken, and to settle what it really cost. */

import type { LimitStatus } from "../domain/limit-status.ts";

/**
 * What was taken, until it is settled.
 *
 * Commit or roll back each lease once; `run` and `await using` do it for you. Amounts are whole
 * numbers, and the net consumption of a lease never goes below zero.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:');
 * const lease = await limiter.acquire({
 *   entityId: 'key-1', resource: 'gpt-4', limits: ['tpm:1000'], consume: { tpm: 500 },
 * });
 * lease.adjust({ tpm: -180 }); // the answer was shorter than estimated
 * await lease.commit();
 * console.log(lease.consumed['tpm']); // 320
 * await limiter.close();
 * ```
 */
export interface Lease {
  /** Net, of this entity, as far as it is counted; parents are not added in. */
  readonly consumed: Readonly<Record<string, number>>;
  /** Right after the acquire: own entity, then parents. */
  readonly statuses: readonly LimitStatus[];
  /** The store was down and `allow` let the call pass: nothing is counted. */
  readonly degraded: boolean;
  /** Takes more, with the same check against the store; throws `RateLimitExceeded`. */
  consume(amounts: Readonly<Record<string, number>>): Promise<void>;
  /** + used more, - used less. Never refused, may go into debt; written at commit. */
  adjust(amounts: Readonly<Record<string, number>>): void;
  /** `adjust` with the sign turned. */
  release(amounts: Readonly<Record<string, number>>): void;
  /** Writes what was adjusted so far, for long streams. */
  flush(): Promise<void>;
  /** Writes what was adjusted and ends the lease. */
  commit(): Promise<void>;
  /** Gives everything back and ends the lease. */
  rollback(): Promise<void>;
  /** Commits, unless the lease is settled. */
  [Symbol.asyncDispose](): Promise<void>;
}
