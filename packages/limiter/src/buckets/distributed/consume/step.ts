/**
 * The types between the decision and the driver: a group of consumes (`Request`), its
 * outcomes so far (`History`), what to do next (`Step`) and its outcome (`StepOutcome`).
 */

import type { Random } from "../../../base/random.ts";
import type { RateLimiterUnavailable } from "../../../domain/errors/errors.ts";
import type { BucketName } from "../../../records/keys.ts";
import type { BucketConfig, LegOutcome, Link, SeenPeriods, ShardPart } from "../../leg.ts";
import type { SeenBucket } from "../plan/seen-bucket.ts";
import type { Guess, WritePlan } from "../plan/write-plan.ts";
import type { ShardSet } from "../shards/shards.ts";
import type { BucketStates } from "../state/bucket-states.ts";
import type { BucketRules } from "../table-traits.ts";

/** One consume of a group. */
export interface Member {
  /** Milli-tokens, aligned with the limits of the group. */
  readonly amountsMilli: readonly number[];
  readonly link: Link;
  /** The link was read in the course of this call, so a new bucket may be created with it. */
  readonly linkIsFresh: boolean;
}

/** Consumes of one bucket by the same limits. */
export interface Request {
  readonly name: BucketName;
  readonly config: BucketConfig;
  /** Consumes that have no answer yet, in the order in which they came. */
  readonly members: readonly Member[];
  /** Whether cached states have not refused any of them in this turn of the event loop. */
  readonly isCleared?: boolean;
}

/** The end of one consume. */
export type ConsumeAnswer =
  | ({ readonly kind: "consumed" } & LegOutcome)
  | {
      readonly kind: "refused";
      readonly balancesMilli: readonly number[];
      /** Whether cached states refused it, without a call. */
      readonly local: boolean;
    }
  /** The bucket was built from newer limits. */
  | { readonly kind: "outdated" };

export interface AnsweredMember {
  readonly member: Member;
  readonly answer: ConsumeAnswer;
}

/** A conditional update that consumes from one shard. */
export interface ShardWrite {
  readonly shard: number;
  readonly members: readonly Member[];
  readonly plan: WritePlan;
  readonly guesses: readonly Guess[];
  /** Guesses that are compared with the outcome. */
  readonly teaches: readonly Guess[];
  /** The state that the write was planned from, and the time it was planned for. */
  readonly from: SeenBucket;
  readonly atMs: number;
  /** It repeats a write that a later one has overtaken. */
  readonly repeats: boolean;
}

export type Step =
  | { readonly do: "answer"; readonly answers: readonly AnsweredMember[] }
  | { readonly do: "write"; readonly write: ShardWrite }
  | { readonly do: "create"; readonly members: readonly Member[]; readonly atMs: number }
  | { readonly do: "read"; readonly shard: number }
  | { readonly do: "read-all"; readonly count: number }
  /** Several shards in one transaction. */
  | ({ readonly do: "spread" } & Spread)
  /** Writes new limits to shards that refuse; when that fails, the next call tries. */
  | {
      readonly do: "limits";
      readonly plans: readonly { readonly shard: number; readonly plan: WritePlan }[];
      readonly balancesMilli: readonly number[];
    }
  /** The shard has too little; another one may have enough. */
  | { readonly do: "pass"; readonly shard: number }
  /** Creates a shard whose share is still in its origin. */
  | { readonly do: "create-shard"; readonly shard: number }
  /** Creates the shards that the Python library has announced and not created. */
  | { readonly do: "repair"; readonly bucket: SeenBucket }
  /** Splits a shard whose own meter is saturated. */
  | { readonly do: "split"; readonly bucket: SeenBucket }
  /** Reads a throttled shard, and splits it where its own traffic asks for that. */
  | { readonly do: "probe"; readonly shard: number; readonly cause: RateLimiterUnavailable }
  /** Waits; `cause` is the error of the call when there is no time to wait. */
  | { readonly do: "wait"; readonly ms: number; readonly cause?: RateLimiterUnavailable };

/** A consume that several shards give a part of. */
export interface Spread {
  readonly member: Member;
  readonly writes: readonly SpreadWrite[];
  /** The periods that it consumes in; absent where no limit has any. */
  readonly periods: SeenPeriods | undefined;
}

export interface SpreadWrite {
  readonly part: ShardPart;
  readonly plan: WritePlan;
  readonly link: Link;
}

export type StepOutcome =
  /** The store has shown a shard. */
  | {
      readonly of: "shown";
      readonly shard: number;
      readonly bucket: SeenBucket | undefined;
      /** When the store was asked: tokens that accrue later belong to later calls. */
      readonly askedMs: number;
      /** The write that another one has overtaken. */
      readonly overtaken?: ShardWrite;
    }
  | {
      readonly of: "written";
      readonly write: ShardWrite;
      readonly bucket: SeenBucket;
      /** The entry that has the slots of the members; absent: none takes any. */
      readonly entry?: string | undefined;
    }
  | { readonly of: "created"; readonly members: readonly Member[]; readonly bucket: SeenBucket }
  | { readonly of: "all"; readonly count: number; readonly shards: ShardSet<SeenBucket> }
  | ({ readonly of: "spread" } & Spread)
  | { readonly of: "limits"; readonly shard: number; readonly balancesMilli: readonly number[] }
  | { readonly of: "throttled"; readonly shard: number; readonly cause: RateLimiterUnavailable }
  | { readonly of: "probed"; readonly cause: RateLimiterUnavailable }
  /** Something has changed: decide again from what is known now. */
  | { readonly of: "changed" };

export interface History {
  /** When the members began to go from shard to shard. */
  readonly sinceMs: number;
  /** How many outcomes since then had no result. */
  readonly rounds: number;
  /** A pause has followed the last outcome. */
  readonly rested: boolean;
  /** The shards that had too little. */
  readonly tried: ReadonlySet<number>;
  readonly last: StepOutcome | undefined;
}

/** Everything that a decision may read besides the request and its history. */
export interface Situation {
  readonly states: BucketStates;
  readonly nowMs: number;
  readonly random: Random;
  readonly rules: BucketRules;
  /** Returns how long a group waits that was throttled, in milliseconds. */
  readonly throttledPauseMs: () => number;
  /** Returns whether shards of the bucket are announced, and were not created yet. */
  needsRepair(bucket: SeenBucket): boolean;
  /** Returns whether this process has just probed a throttled shard. */
  isProbed(shard: number): boolean;
}
