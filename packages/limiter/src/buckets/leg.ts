/**
 * The parts of a call, as all stores of buckets understand them.
 *
 * A *leg* is one entity's part of a call: an acquire that cascades has a leg for the entity and
 * one for each ancestor. Balances are in milli-tokens and aligned with the limits of their leg.
 */

import type { UnsupportedLimit } from "../domain/errors/unsupported-limit.ts";
import type { Limit } from "../domain/limit.ts";
import type { ConfigSource } from "../domain/precedence.ts";

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
  /** When the store showed the oldest of them; absent: just now. */
  readonly shownAtMs?: number | undefined;
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
