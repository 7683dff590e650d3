/**
 * What a limiter tells about itself. Nothing is computed while nobody listens.
 *
 * A limiter hears of its own calls: what was acquired, rejected, degraded and restored. Splits and
 * warnings belong to buckets, so all limiters of the namespace on this repository hear of them.
 * Requests belong to the store, so all limiters on it hear of them, whichever namespace they are
 * for, and also of those the repository makes for itself.
 */

import type { BucketWarning } from "../buckets/bucket-store.ts";
import type { RecordWarning } from "../records/record-warning.ts";
import type { RepositoryInternals, RepositoryListener } from "../repository/internals.ts";
import type { StoreCall } from "../storage/item-store.ts";

/**
 * Something that happened.
 *
 * @example
 * ```ts
 * import { RateLimiter, type LimiterEvent } from 'zae-limiter';
 * const seen: LimiterEvent[] = [];
 * const limiter = await RateLimiter.open('memory:', { events: (event) => seen.push(event) });
 * await limiter.acquire({
 *   entityId: 'key-1', resource: 'gpt-4', limits: ['rpm:10'], consume: { rpm: 1 },
 * });
 * console.log(seen.some((event) => event.type === 'acquired')); // true
 * await limiter.close();
 * ```
 */
export type LimiterEvent =
  /** By an acquire, or by `consume` of a lease. */
  | { readonly type: "acquired"; readonly entityId: string; readonly resource: string }
  | {
      readonly type: "rejected";
      readonly entityId: string;
      readonly resource: string;
      /** Refused without a call, from what an earlier one had shown. */
      readonly local: boolean;
      readonly retryAfterSeconds: number;
    }
  | {
      readonly type: "degraded";
      readonly entityId: string;
      readonly resource: string;
      readonly cause: unknown;
    }
  /** What was taken is given back: by a rollback, or because another leg was refused or failed. */
  | { readonly type: "restored"; readonly entityId: string; readonly resource: string }
  /** A bucket takes more writes than one partition can, and was split. */
  | {
      readonly type: "split";
      readonly entityId: string;
      readonly resource: string;
      readonly shardCount: number;
    }
  /**
   * One request to the store, with the capacity it used. Buckets in memory and SQLite need none:
   * there it is records alone that are asked for.
   */
  | { readonly type: "call"; readonly call: StoreCall };

/** Something went wrong that no error could tell, because the call itself was answered. */
export type LimiterWarning = BucketWarning | LeaseWarning | RecordWarning;

/** What went wrong with the amounts of a lease. */
export type LeaseWarning =
  | {
      readonly kind: "adjustment_failed";
      readonly entityId: string;
      readonly resource: string;
      readonly cause: unknown;
    }
  | {
      /** `amount_missing`: none was given, so nothing changes. `amount_negative`: counted as 0. */
      readonly kind: "amount_missing" | "amount_negative";
      readonly entityId: string;
      readonly resource: string;
      readonly limitName: string;
      readonly operation: "adjust" | "release" | "settle";
      /** What was given. */
      readonly amount: unknown;
    };

/** Internal: tells a listener of the calls of a limiter that is already in use; the result ends it. */
export const LISTEN: unique symbol = Symbol("zae-limiter listen");

/** Listens to what happens behind the calls of a limiter; the result ends it. */
export function listen(
  { listeners, listen: listenToCalls }: RepositoryInternals,
  events: ((event: LimiterEvent) => void) | undefined,
  onWarning: ((warning: LimiterWarning) => void) | undefined,
): () => void {
  // Limiters that nobody listens to may be made by the thousand.
  if (events === undefined && onWarning === undefined) return () => {};
  const listener: RepositoryListener = {
    onWarning,
    onSplit: events && ((notice) => events({ type: "split", ...notice })),
  };
  listeners.add(listener);
  const leave = events && listenToCalls((call) => events({ type: "call", call }));
  return () => {
    listeners.delete(listener);
    leave?.();
  };
}
