/** Live buckets, as operators see them. */

import { defined } from "../base/defined.ts";
import { floorDiv } from "../core/integers.ts";
import { checkFields, checkFlag } from "../domain/check.ts";
import { Limit } from "../domain/limit.ts";
import { checkEntityId, checkLimitName, checkResource } from "../domain/names.ts";
import type { EntityRecords } from "../records/entities/entities.ts";
import type {
  BalanceOperations,
  BucketOperationResult,
  ResetRequest,
  TopUpRequest,
} from "./balance-operations.ts";
import type { StoredState } from "./bucket-admin.ts";
import type { BucketStore } from "./bucket-store.ts";
import { kindOf } from "./config-match.ts";

/**
 * One limit of one bucket, in whole tokens.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:');
 * await limiter.acquire({
 *   entityId: 'key-1', resource: 'gpt-4', limits: ['rpm:10'], consume: { rpm: 3 },
 * });
 * const [state] = await limiter.repository.buckets.list('key-1');
 * console.log(state?.tokens, state?.totalConsumed); // 7 3
 * await limiter.close();
 * ```
 */
export interface BucketState {
  readonly entityId: string;
  readonly resource: string;
  readonly limitName: string;
  /** The limit that the bucket was last written with, in the window that is open now. */
  readonly limit: Limit;
  /** Rounded down; negative in debt. */
  readonly tokens: number;
  /** The most this shard can hold. */
  readonly capacity: number;
  /** Net of all refunds. */
  readonly totalConsumed: number;
  /** The number of this shard, from 0. */
  readonly shard: number;
  /** How many shards the bucket has. */
  readonly shardCount: number;
  /** Epoch milliseconds of the last write that moved the balance in time. */
  readonly lastRefillMs: number;
  /** The number of slots that each process has, by the id of the holder; absent where none are. */
  readonly holders?: Readonly<Record<string, number>>;
}

/** How full the buckets of one entity are. */
export interface EntityCapacity {
  readonly entityId: string;
  /** The most its bucket can hold. */
  readonly capacity: number;
  /** Whole tokens that its bucket has now. */
  readonly available: number;
  /** How much of the capacity is used, in percent. */
  readonly utilizationPct: number;
}

/** How full all buckets of a resource are, for one limit. */
export interface ResourceCapacity {
  readonly resource: string;
  readonly limitName: string;
  /** The sum of the capacities. */
  readonly totalCapacity: number;
  /** The sum of the tokens that are there now. */
  readonly totalAvailable: number;
  /** How much of all capacity is used, in percent. */
  readonly utilizationPct: number;
  /** Each entity with a bucket of this resource. */
  readonly entities: readonly EntityCapacity[];
}

/**
 * Reads live buckets, and changes their balances.
 *
 * @example
 * ```ts
 * import { Repository } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * const capacity = await repo.buckets.capacity('gpt-4', 'rpm');
 * console.log(capacity.totalCapacity); // 0
 * await repo.close();
 * ```
 */
export class BucketRecords {
  readonly #buckets: BucketStore;
  readonly #entities: EntityRecords;
  readonly #operations: BalanceOperations;

  constructor(buckets: BucketStore, entities: EntityRecords, operations: BalanceOperations) {
    this.#buckets = buckets;
    this.#entities = entities;
    this.#operations = operations;
  }

  /**
   * Fills the limits of a bucket and forgives its debt; consumption in total stays counted. Where
   * there is no bucket there is nothing to fill. All shards are changed or none, once per key.
   */
  reset(request: ResetRequest): Promise<BucketOperationResult> {
    return this.#operations.reset(request);
  }

  /**
   * Adds tokens to limits of a bucket: a rate takes what it has room for, a quota or a session all
   * until its period ends. All shards or none, once per key.
   */
  topUp(request: TopUpRequest): Promise<BucketOperationResult> {
    return this.#operations.topUp(request);
  }

  /** Returns the buckets of an entity, one entry per shard and limit. */
  async list(entityId: string, options: { resource?: string } = {}): Promise<BucketState[]> {
    checkEntityId(entityId);
    checkFields("options", options, ["resource"]);
    if (options.resource !== undefined) checkResource(options.resource);
    return (await this.#buckets.list(entityId, options.resource)).map(stateOf);
  }

  /** Sums what all entities have left of one limit of a resource. */
  async capacity(
    resource: string,
    limitName: string,
    options: { parentsOnly?: boolean } = {},
  ): Promise<ResourceCapacity> {
    checkResource(resource);
    checkLimitName(limitName);
    checkFields("options", options, ["parentsOnly"]);
    checkFlag("parentsOnly", options.parentsOnly);
    const found = new Map<string, { capacityMilli: number; availableMilli: number }>();
    for await (const state of this.#buckets.listResource(resource)) {
      if (state.limitName !== limitName) continue;
      const known = found.get(state.entityId)?.availableMilli ?? 0;
      const availableMilli = Math.min(state.capacityMilli, known + state.balanceMilli);
      found.set(state.entityId, { capacityMilli: state.capacityMilli, availableMilli });
    }
    const entities: EntityCapacity[] = [];
    for (const [entityId, { capacityMilli, availableMilli }] of found) {
      if (options.parentsOnly === true && !(await this.#isParent(entityId))) continue;
      const capacity = floorDiv(capacityMilli, 1000);
      const available = floorDiv(availableMilli, 1000);
      entities.push({ entityId, capacity, available, utilizationPct: used(capacity, available) });
    }
    const totalCapacity = entities.reduce((sum, { capacity }) => sum + capacity, 0);
    const totalAvailable = entities.reduce((sum, { available }) => sum + available, 0);
    return {
      resource,
      limitName,
      totalCapacity,
      totalAvailable,
      utilizationPct: used(totalCapacity, totalAvailable),
      entities,
    };
  }

  async #isParent(entityId: string): Promise<boolean> {
    return (await this.#entities.get(entityId))?.isParent === true;
  }
}

function used(capacity: number, available: number): number {
  return capacity === 0 ? 0 : ((capacity - available) / capacity) * 100;
}

/** Returns whole tokens; a window may leave less than one. */
function wholeTokens(milli: number): number {
  return milli === 0 ? 0 : Math.max(1, floorDiv(milli, 1000));
}

function stateOf(state: StoredState): BucketState {
  const { entityId, resource, limitName, shard, shardCount } = state;
  const limit = Limit.custom({
    name: limitName,
    capacity: wholeTokens(state.capacityMilli),
    refillAmount: wholeTokens(state.refillMilli),
    refillPeriodSeconds: floorDiv(state.periodMs, 1000),
    ...(state.rule === undefined ? {} : { rule: state.rule }),
    kind: kindOf(state),
  });
  return {
    entityId,
    resource,
    limitName,
    limit,
    tokens: floorDiv(state.balanceMilli, 1000),
    capacity: limit.capacity,
    totalConsumed: Number(state.consumedMilli) / 1000,
    shard,
    shardCount,
    lastRefillMs: state.refilledAtMs,
    ...defined({ holders: state.holders }),
  };
}
