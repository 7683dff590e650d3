/**
 * The port of the hot path, in the domain's verbs. One store serves one namespace.
 *
 * A *leg* is one entity's part of a call: an acquire that cascades has a leg for the entity and
 * one for each ancestor. Tokens are consumed from all legs or none. Balances are in
 * milli-tokens and aligned with the limits of their leg.
 */

import type { Deadline } from "../domain/deadline.ts";
import type { Limit } from "../domain/limit.ts";
import type { ConfigSource } from "../domain/precedence.ts";
import type { UnsupportedLimit } from "../domain/unsupported-limit.ts";
import type { Operation, OperationResult } from "../records/operation-record.ts";
import type { Item } from "../storage/item.ts";

/** The parent that an entity cascades to. */
export interface Link {
  readonly cascade: boolean;
  readonly parentId: string | undefined;
}

/** Where the limits of a leg came from: a stored level, or the call itself. */
export type LimitSource = ConfigSource | "override";

/** The limits an entity has for a resource. */
export interface BucketConfig {
  readonly limits: readonly Limit[];
  readonly source: LimitSource;
  /** The config version that the limits are at least as new as. */
  readonly version: number;
  /** Apply even to a bucket with a higher version: these limits were just read. */
  readonly forced?: boolean;
  /** Limits of the same level that only the Python library can enforce. */
  readonly unsupported?: readonly UnsupportedLimit[];
  /** Whether a stored level lets acquires cascade; absent: the entity record decides. */
  readonly cascade?: boolean;
  /** Everything is granted: what is consumed is counted, and balances stay as they are. */
  readonly bypass?: true;
}

export interface Leg {
  readonly entityId: string;
  readonly resource: string;
  readonly config: BucketConfig;
  /** Milli-tokens, aligned with `config.limits`; `gatesOf` tells which of them can be refused. */
  readonly amountsMilli: readonly number[];
  readonly link: Link;
  /** The link was read in the course of this call, so a new bucket may be created with it. */
  readonly linkIsFresh: boolean;
}

/** What one shard gave, where no single one had enough. */
export interface ShardPart {
  readonly shard: number;
  /** Milli-tokens, aligned with the limits of the leg. */
  readonly amountsMilli: readonly number[];
}

export interface LegOutcome {
  /** What was consumed, and where: adjustments and refunds go there. Nearly always one part. */
  readonly parts: readonly ShardPart[];
  /** As stored; it may have changed since the leg was made. */
  readonly link: Link;
  /** Right after the consume, shards summed; of shards it did not touch, as last seen. */
  readonly balancesMilli: readonly number[];
}

export type ConsumeResult =
  | { readonly outcome: "granted"; readonly legs: readonly LegOutcome[] }
  | {
      readonly outcome: "refused";
      /** Per leg, as they are. */
      readonly balancesMilli: readonly (readonly number[])[];
      /** Decided by cached states; balances of other legs may have been read for it. */
      readonly local: boolean;
    }
  /** A bucket was built from newer limits than a leg has: read them again. */
  | { readonly outcome: "outdated" }
  /** Entities cascade otherwise than the legs say: make the legs from these links, leg by leg. */
  | { readonly outcome: "relinked"; readonly links: readonly Link[] };

/** Limits that were found in the memory of limits. */
export interface ConfigMemory {
  readonly config: BucketConfig;
  /** Of the memory: in another one they may be others. */
  readonly generation: number;
  readonly untilMs: number;
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
}

/** What a lease changes after the fact. Positive: consumed more; negative: refunded. */
export interface Adjustment {
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
  readonly config: BucketConfig;
  /** Milli-tokens, aligned with `config.limits`. */
  readonly deltasMilli: readonly number[];
  /** -1 for a refund that makes an acquire void, so that usage does not count it. */
  readonly acquires?: number;
}

/** The adjustments that refund all that was consumed for a leg. */
export function refundOf(leg: Leg, parts: readonly ShardPart[]): Adjustment[] {
  return parts.map(({ shard, amountsMilli }, at) => ({
    entityId: leg.entityId,
    resource: leg.resource,
    shard,
    config: leg.config,
    deltasMilli: amountsMilli.map((amount) => -amount),
    acquires: at === 0 && amountsMilli.some((amount) => amount > 0) ? -1 : 0,
  }));
}

/** One limit of one bucket, as it is stored. */
export interface StoredState {
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
  readonly shardCount: number;
  readonly limitName: string;
  readonly capacityMilli: number;
  readonly refillMilli: number;
  readonly periodMs: number;
  readonly balanceMilli: number;
  readonly consumedMilli: number | bigint;
  readonly refilledAtMs: number;
}

/** What a deletion of buckets has removed. */
export interface DeletedBuckets {
  readonly count: number;
  /** The latest base time among them; 0 where no stream tells of buckets. */
  readonly lastBaseMs: number;
}

export interface BucketCallOptions {
  /** When the call ends, retries included; the store's own setting when absent. */
  readonly deadline?: Deadline;
}

export interface LinkOptions extends BucketCallOptions {
  /** Whether a stored level says that acquires cascade; asked where the bucket does not say. */
  readonly policy?: () => Promise<boolean | undefined>;
  /** Ask the store, past what this process has cached for longer than a moment. */
  readonly fresh?: boolean;
}

export interface ConsumeOptions extends BucketCallOptions {
  /** `false`: read each bucket before consuming, instead of trusting its cached state. */
  readonly speculative?: boolean;
  /** A consume that still waits for others leaves when the signal aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Called when a leg was refunded because another one was refused or failed. */
  readonly onRefunded?: ((leg: Leg) => void) | undefined;
}

/** Tokens could not be refunded; they stay consumed. */
export interface RefundWarning {
  readonly kind: "restore_failed";
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
  /** Milli-tokens per limit that stay consumed. */
  readonly amountsMilli: Readonly<Record<string, number>>;
  readonly cause: unknown;
}

/** A bucket has as many shards as there can be: more traffic will be throttled. */
export interface ShardsWarning {
  readonly kind: "shards_exhausted";
  readonly entityId: string;
  readonly resource: string;
  readonly shardCount: number;
}

export type BucketWarning = RefundWarning | ShardsWarning;

/** Returns the warning for an adjustment that was a refund. */
export function refundWarning(adjustment: Adjustment, cause: unknown): RefundWarning {
  const { entityId, resource, shard, config, deltasMilli } = adjustment;
  const amountsMilli = Object.fromEntries(
    config.limits
      .map(({ name }, at) => [name, -(deltasMilli[at] ?? 0)] as const)
      .filter(([, amount]) => amount !== 0),
  );
  return { kind: "restore_failed", entityId, resource, shard, amountsMilli, cause };
}

/** What the levels say about a bucket, for clients of the Python library. */
export interface FlagStamps {
  /** Absent: stamps of switches stay as they are. */
  readonly state?: "enabled" | "disabled" | "bypass";
  /** Absent: the stamps of the owner stay as they are. */
  readonly owner?: OwnerStamps;
}

/** Which parent a bucket cascades to, and the generation of its entity that says so. */
export interface OwnerStamps {
  readonly link: Link;
  readonly generation: number;
  readonly incarnation: string;
  /** A policy or a move says so, and not just the entity: then Python has to know. */
  readonly isStamped: boolean;
}

/** The buckets to stamp: of an entity, of a resource, or of an entity for a resource. */
export interface StampScope {
  readonly entityId?: string | undefined;
  readonly resource?: string | undefined;
  /** What the levels say about a bucket, as it is stored now. */
  readonly stampsOf: (entityId: string, resource: string) => Promise<FlagStamps>;
  readonly onStamped: () => void;
}

/** A change of balances by an operator, made once per key. */
export interface BalanceOperation extends Operation {
  /** Milli-tokens to add to a limit, at most up to full; `undefined` leaves it alone. */
  readonly additionOf: (limitName: string) => number | undefined;
  /** The items that record the operation, the one of its key first; written with the balances. */
  readonly recordsOf: (
    result: OperationResult,
    made: { readonly incarnation: string; readonly nowMs: number },
  ) => readonly Item[];
}

export interface BucketStore {
  /** The store is in this process, with its records: nothing it does can hang. */
  readonly embedded?: boolean;
  /** Aborts when the store is closed. */
  readonly closed: AbortSignal;
  /** Version of parent links; incremented when this process changes one. */
  readonly relinks: number;
  /** Returns the parent link of an entity, from its bucket or its record. */
  linkOf(entityId: string, resource: string, options?: LinkOptions): Promise<Link>;
  /**
   * Consumes from an entity and its ancestors on the fast path, by limits that were cached in this
   * generation of the limit cache: the stored ones, or this very list. `undefined`, with nothing
   * done: use the slow path. `ignoresMissing` passes over names that the entity has no limit for.
   */
  consumeFast?(
    entityId: string,
    resource: string,
    consume: Readonly<Record<string, number>>,
    generation: number,
    limits: readonly Limit[] | undefined,
    ignoresMissing: boolean,
  ): FastOutcome | Promise<FastOutcome | undefined> | undefined;
  /** Says which limits are in force for a bucket, so that the fast path can use them. */
  remember?(entityId: string, resource: string, memory: ConfigMemory): void;
  /** Consumes from all legs or none. */
  consume(legs: readonly Leg[], options?: ConsumeOptions): Promise<ConsumeResult>;
  /**
   * Never refuses. A bucket that has expired is created again where something is consumed, unless
   * its entity or namespace was deleted; a refund to a bucket that is gone does nothing.
   */
  adjust(adjustment: Adjustment, options?: BucketCallOptions): Promise<void>;
  /** The same on the fast path, for a bucket in this process; false, with nothing done: adjust. */
  adjustNow?(adjustment: Adjustment): boolean;
  /** Refunds, and never throws: a failure is repeated, then reported as a warning. */
  refund(adjustment: Adjustment, options?: BucketCallOptions): Promise<void>;
  /** The balances of each leg, shards summed; a bucket that is not there is full. */
  read(legs: readonly Leg[], options?: BucketCallOptions): Promise<readonly (readonly number[])[]>;
  /** The buckets of an entity. */
  list(entityId: string, resource?: string): Promise<StoredState[]>;
  /** The buckets of a resource. */
  listResource(resource: string): AsyncIterable<StoredState>;
  /** All buckets of the namespace; the shards of a bucket need not follow each other. */
  listAll(): AsyncIterable<StoredState>;
  /** Brings live buckets of an entity in line with limits that were just stored. */
  reconfigure(entityId: string, resource: string, config: BucketConfig): Promise<void>;
  /**
   * Tells live buckets of an entity which parent it has from now on. Returns whether all were told:
   * those that carry stamps of the Python library are left to `stamp`.
   */
  relink(entityId: string, link: Link): Promise<boolean>;
  /** Writes what the levels say into live buckets, where clients of the Python library read it. */
  stamp?(scope: StampScope): Promise<void>;
  /** Resets or tops up the balances of a bucket, all shards or none, once per key. */
  operate(operation: BalanceOperation): Promise<OperationResult>;
  /** Removes all buckets of the namespace that are not items of their own. */
  deleteAll(): Promise<void>;
  /** Removes all buckets of an entity. */
  deleteEntity(entityId: string): Promise<DeletedBuckets>;
  /** Adds usage that is counted in the buckets to its snapshots, where no aggregator does it. */
  settleUsage?(scope: { readonly entityId?: string; readonly resource?: string }): Promise<void>;
  /** Waits for refunds in the background. */
  close(): Promise<void>;
}
