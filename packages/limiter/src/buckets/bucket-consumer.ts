/**
 * The port of consuming: what an acquire and its lease ask of the buckets of one namespace.
 *
 * Each actor calls it in this order:
 *
 * 1. An acquire calls `linkOf` for the entity and each ancestor that no cached link leads to, and
 *    makes a leg of each. A change of `relinks` makes the links that it has cached outdated.
 * 2. It calls `consume` with all legs. At "outdated" it reads the limits again, at "relinked" it
 *    makes the legs again; then it calls `consume` again, four times at most.
 * 3. Granted, its lease calls `adjust` for each part that `consume` returned, any number of times,
 *    and `refund` for those that it gives back when it ends.
 * 4. `available` makes legs like an acquire, and calls `read`.
 * 5. `closeShared` calls `close` last. `closed` aborts first, which ends waiting acquires.
 */

import type { Deadline } from "../base/time.ts";
import type { Limit } from "../domain/limit.ts";
import type { BucketName } from "../records/keys.ts";
import type { Adjustment, BucketConfig, Leg, LegOutcome, Link, SeenPeriods } from "./leg.ts";

export type ConsumeResult =
  | { readonly outcome: "granted"; readonly legs: readonly LegOutcome[] }
  | {
      readonly outcome: "refused";
      readonly balancesMilli: readonly (readonly number[])[];
      /** Leg by leg, as in `SeenBalances`. */
      readonly periods?: readonly (SeenPeriods | undefined)[] | undefined;
      /** Decided by cached states; balances of other legs may have been read for it. */
      readonly local: boolean;
      /** The legs without a bucket: what they cascade to may be older than all other states. */
      readonly withoutBucket?: readonly Leg[];
      /** When the store showed the oldest state that decided; absent: just now. */
      readonly shownAtMs?: number;
    }
  /** A bucket was built from newer limits than a leg has: read them again. */
  | { readonly outcome: "outdated" }
  /** Entities cascade otherwise than the legs say: make the legs from these links, leg by leg. */
  | { readonly outcome: "relinked"; readonly links: readonly Link[] };

/** Balances of legs, as a peek finds them. */
export interface SeenBalances {
  readonly balancesMilli: readonly (readonly number[])[];
  /** Leg by leg; absent: no leg has limits with periods. */
  readonly periods?: readonly (SeenPeriods | undefined)[] | undefined;
}

/** The balances of one leg in one shard, or in all of them. */
export interface SeenShard {
  readonly balancesMilli: readonly number[];
  readonly periods?: SeenPeriods | undefined;
  /** How many shards the bucket has; absent: this is the sum of all. */
  readonly shardCount?: number;
}

/** A request as the caller wrote it, for a call that may be ordinary. */
export interface PlainRequest {
  readonly entityId: string;
  readonly resource: string;
  readonly consume: Readonly<Record<string, number>>;
  /** Checked limits of the call; absent: the stored limits. */
  readonly limits?: readonly Limit[] | undefined;
}

/** A consume that was decided at once. */
export interface Outcome {
  readonly granted: boolean;
  readonly entityId: string;
  readonly resource: string;
  readonly legs: readonly Leg[];
  readonly outcomes: readonly LegOutcome[];
  /** Leg by leg: after a grant, what is left; else what there is. */
  readonly balancesMilli: readonly (readonly number[])[];
  readonly periods: readonly (SeenPeriods | undefined)[];
}

/** How long the limits of a call stay as they are, as far as the limit cache knows. */
export interface KnownLimits {
  /** The generation of the cache: in another one there may be other limits. */
  readonly generation: number;
  /** Epoch milliseconds at which they have to be read again. */
  readonly untilMs: number;
  /** No entity of the call has a total: calls that count totals may go by these limits too. */
  readonly withoutTotals: boolean;
}

export interface BucketCallOptions {
  /** When the call ends, retries included; the store's own setting when absent. */
  readonly deadline?: Deadline;
}

/** Options of an adjustment. */
export interface AdjustOptions extends BucketCallOptions {
  /** Makes an adjustment happen once, where its outcome may stay unknown. */
  readonly token?: string;
}

export interface LinkOptions extends BucketCallOptions {
  /** Whether a stored level says that acquires cascade; asked where the bucket does not say. */
  readonly policy?: () => Promise<boolean | undefined>;
  /** Asks the store instead of using a state that was cached for longer than a moment. */
  readonly fresh?: boolean;
}

export interface ConsumeOptions extends BucketCallOptions {
  /** Present when all limits are cached: calls by the same limits may then be ordinary. */
  readonly known?: KnownLimits | undefined;
  /** `false`: read each bucket before consuming, instead of trusting its cached state. */
  readonly speculative?: boolean;
  /** The call waits when it is refused, so it may go by what was known for a second only. */
  readonly waits?: boolean | undefined;
  /** A consume that still waits for others leaves when the signal aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Called each time that a step of an embedded store runs; an error ends it, unwritten. */
  readonly onRun?: (() => void) | undefined;
  /** Called when a leg was refunded because another one was refused or failed. */
  readonly onRefunded?: ((leg: Leg) => void) | undefined;
}

export interface BucketConsumer {
  /** Whether the store is in this process, with its records: nothing it does can hang. */
  readonly embedded: boolean;
  /** Aborts when the store is closed. */
  readonly closed: AbortSignal;
  /** Version of parent links; incremented when this process changes one. */
  readonly relinks: number;
  /**
   * Decides an ordinary call at once, by the limits of a call that was granted before, in the same
   * generation of the limit cache. A promise: together with other calls of this turn. `undefined`,
   * with nothing done: not ordinary, use `consume`. `ignoresMissing` passes over names that the
   * entity has no limit for. `totals`: the call counts totals, so it is ordinary only without any.
   */
  tryNow(
    request: PlainRequest,
    generation: number,
    ignoresMissing: boolean,
    totals: boolean,
  ): Outcome | Promise<Outcome | undefined> | undefined;
  /** Returns the parent link of an entity, from its bucket or its record. */
  linkOf(entityId: string, resource: string, options?: LinkOptions): Promise<Link>;
  /** Consumes from all legs or none; no promise where cached states refuse. */
  consume(legs: readonly Leg[], options?: ConsumeOptions): ConsumeResult | Promise<ConsumeResult>;
  /**
   * Adjusts and never refuses. A bucket that has expired is created again where something is
   * consumed, unless its entity or namespace was deleted; a refund to a bucket that is gone does
   * nothing. Returns `undefined` when it is written already, as in `refund`.
   */
  adjust(adjustment: Adjustment): Promise<void> | undefined;
  /** Refunds, and never throws: a failure is repeated, then reported as a warning. */
  refund(adjustment: Adjustment): Promise<void> | undefined;
  /** Returns the balances of each leg, shards summed; a bucket that is not there is full. */
  read(legs: readonly Leg[], options?: BucketCallOptions): Promise<SeenBalances>;
  /**
   * Returns the shards of a bucket as this process has seen them last, without a request; absent
   * where a store has no shards.
   */
  lastSeen?(bucket: BucketName, config: BucketConfig): readonly SeenShard[];
  /** Waits for refunds in the background. */
  close(): Promise<void>;
}
