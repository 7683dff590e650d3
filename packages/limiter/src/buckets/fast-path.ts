/**
 * The port of the fast path: calls that a bucket in this process decides in one step, by limits
 * that are cached. Each call may answer "not here", with nothing done; then the slow path decides.
 *
 * The protocol:
 *
 * 1. After the slow path has granted an acquire, `FastAcquire` calls `remember` for each bucket,
 *    with the limits and the generation of the limit cache that they were read in.
 * 2. The next acquire calls `consume` with the generation of now: limits of another generation are
 *    not used. At `undefined` it takes the slow path, which begins at 1 again.
 * 3. The lease of a granted acquire calls `adjust`; where that returns false, it calls `adjust` or
 *    `refund` of the slow path with the same amounts.
 */

import type { Limit } from "../domain/limit.ts";
import type { BucketConfig, Leg, LegOutcome } from "./leg.ts";

/** What the fast path reads of a request, which is the caller's own object. */
export interface FastRequest {
  readonly entityId: string;
  readonly resource: string;
  readonly consume: Readonly<Record<string, number>>;
  /** The very list the limits were cached with; absent: the stored limits. */
  readonly limits?: readonly Limit[] | undefined;
}

/** A consume from a single bucket, one without ancestors, as it is known without building legs. */
export interface OnlyBucket {
  readonly entityId: string;
  readonly resource: string;
  readonly config: BucketConfig;
  /** Milli-tokens consumed of each limit; each read returns a new list. */
  readonly amountsMilli: number[];
  /** Returns the milli-tokens consumed of a limit. */
  takenMilli(at: number): number;
  /** Returns the milli-tokens left of a limit. */
  leftMilli(at: number): number;
}

/** A bucket, and the limits that the amounts of an adjustment are aligned with. */
export interface AdjustedBucket {
  readonly entityId: string;
  readonly resource: string;
  readonly config: BucketConfig;
}

/** The result of a consume on the fast path. */
export interface FastOutcome {
  readonly granted: boolean;
  readonly entityId: string;
  readonly resource: string;
  readonly legs: readonly Leg[];
  readonly outcomes: readonly LegOutcome[];
  /** Leg by leg: after a grant, what is left; else what there is. */
  readonly balancesMilli: readonly (readonly number[])[];
  /** The bucket, where it is the only one; absent where ancestors were consumed from too. */
  readonly only?: OnlyBucket;
}

/** Limits as the limit cache has them. */
export interface CachedConfig {
  readonly config: BucketConfig;
  /** The generation of the limit cache; the limits are stale once the cache has moved on. */
  readonly generation: number;
  readonly untilMs: number;
}

export interface FastPath {
  /**
   * Consumes from an entity and its ancestors, by limits of this generation of the limit cache.
   * `undefined`, with nothing done: use the slow path. `ignoresMissing` passes over names that the
   * entity has no limit for.
   */
  consume(
    request: FastRequest,
    generation: number,
    ignoresMissing: boolean,
  ): FastOutcome | Promise<FastOutcome | undefined> | undefined;
  /**
   * Adjusts a bucket by so many milli-tokens of each limit; false, with nothing done: use the slow
   * path. `acquires` as in `Adjustment`.
   */
  adjust(bucket: AdjustedBucket, deltasMilli: readonly number[], acquires: number): boolean;
  /** Says which limits are in force for a bucket. */
  remember(entityId: string, resource: string, cached: CachedConfig): void;
}

/** The fast path of a store whose buckets are elsewhere. */
export const NO_FAST_PATH: FastPath = {
  consume: () => undefined,
  adjust: () => false,
  remember: () => {},
};
