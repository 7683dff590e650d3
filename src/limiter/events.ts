/** What a limiter tells about itself. Nothing is computed while nobody listens. */

import type { BucketWarning } from "../buckets/bucket-store.ts";
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
  | { readonly type: "restored"; readonly entityId: string; readonly resource: string }
  /** A bucket takes more writes than one partition can, and was split. */
  | {
      readonly type: "split";
      readonly entityId: string;
      readonly resource: string;
      readonly shardCount: number;
    }
  /** One request to the store, with the capacity it used. */
  | { readonly type: "call"; readonly call: StoreCall };

/** Something went wrong that no error could tell, because the call itself was answered. */
export type LimiterWarning =
  | BucketWarning
  | {
      readonly kind: "adjustment_failed";
      readonly entityId: string;
      readonly resource: string;
      readonly cause: unknown;
    };
