/**
 * Resets and top-ups of all shards of a bucket: one transaction with the record that makes them
 * happen once. Balances change by a difference, so consumes of other clients are not undone.
 */

import { hasSlots, shareOf } from "../../../core/bucket.ts";
import { tooBusy } from "../../../domain/errors/unavailability.ts";
import type { StoredLimit } from "../../../records/bucket-item.ts";
import { bucketKey, entityKey } from "../../../records/keys.ts";
import {
  asRead,
  incarnationOf,
  madeBefore,
  type OperationResult,
  operationKey,
} from "../../../records/operation-record.ts";
import { VALID_UNTIL } from "../../../records/period-attributes.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import type { Item } from "../../../storage/item.ts";
import type { Write } from "../../../storage/item-store.ts";
import type { BalanceOperation } from "../../bucket-admin.ts";
import { NO_AMOUNTS } from "../../leg.ts";
import { balanceIn, levelIn, type PeriodLevel, toppedUp } from "../../periods.ts";
import { splitByRoom } from "../../top-up.ts";
import {
  allowanceAt,
  hasEnded,
  mustOpen,
  type Place,
  setPeriod,
  setSessionStart,
  storedFrom,
  storedLevel,
} from "../plan/period-plan.ts";
import { planOpening } from "../plan/rebase.ts";
import {
  type BalanceAt,
  balanceOf,
  balancesAt,
  decoded,
  isPinned,
  mustWalk,
  type SeenBucket,
} from "../plan/seen-bucket.ts";
import { WritePlan } from "../plan/write-plan.ts";
import type { CachedStates } from "../state/cached-states.ts";
import type { BucketRules } from "../table-traits.ts";

const ATTEMPTS_MAX = 20;
/** Until then a limit that is filled is stored as clients without remainders understand it. */
const EXACT_ATTEMPTS = 10;

export class BucketOperations {
  readonly #context: RecordContext;
  readonly #states: CachedStates;
  readonly #rules: BucketRules;

  constructor(context: RecordContext, states: CachedStates, rules: BucketRules) {
    this.#context = context;
    this.#states = states;
    this.#rules = rules;
  }

  /** Makes the operation, or returns the earlier result when it was made before. */
  async make(operation: BalanceOperation): Promise<OperationResult> {
    const { store, namespaceId, clock } = this.#context;
    const { entityId, resource } = operation;
    const keys = [
      operationKey(namespaceId, operation),
      entityKey(namespaceId, entityId),
      bucketKey(namespaceId, entityId, resource, 0),
    ];
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const [record, entity, first] = await store.getMany(keys, { consistent: true });
      const nowMs = clock();
      const incarnation = incarnationOf(entity);
      const before = madeBefore(record, operation, incarnation, nowMs);
      if (before !== undefined) return before;
      const shards = await this.#shardsOf(operation, decoded(first), nowMs);
      if (await this.#openDue(shards, nowMs)) continue;
      const isExact = attempt <= EXACT_ATTEMPTS;
      const { writes, result } = this.#plan(operation, shards, nowMs, isExact);
      const [recordItem, ...others] = operation.recordsOf(result, { incarnation, nowMs });
      const { ok } = await store.transact([
        { put: recordItem as Item, condition: asRead(record) },
        ...others.map((put) => ({ put })),
        ...writes,
      ]);
      for (const { shard } of shards) {
        this.#states.forget(bucketKey(namespaceId, entityId, resource, shard).PK);
      }
      if (ok) return result;
    }
    throw tooBusy("The bucket changed too often to be written in time");
  }

  /** Returns the shards that exist; none of an expired bucket, which would be full again. */
  async #shardsOf(
    { entityId, resource }: BalanceOperation,
    first: SeenBucket | undefined,
    nowMs: number,
  ): Promise<SeenBucket[]> {
    if (first === undefined || (first.ttl !== undefined && first.ttl * 1000 <= nowMs)) return [];
    if (first.shardCount === 1) return [first];
    const { store, namespaceId } = this.#context;
    const keys = Array.from({ length: first.shardCount }, (_, shard) =>
      bucketKey(namespaceId, entityId, resource, shard),
    );
    const items = await store.getMany(keys, { consistent: true });
    return items.flatMap((item) => decoded(item) ?? []);
  }

  /**
   * Opens periods that are due, leaves sessions that have ended behind, and passes the boundaries
   * of windows; returns whether any was.
   */
  async #openDue(shards: readonly SeenBucket[], nowMs: number): Promise<boolean> {
    const { store, namespaceId } = this.#context;
    const isDue = (bucket: SeenBucket) =>
      mustOpen(bucket, NO_AMOUNTS, nowMs) ||
      mustWalk(bucket, nowMs) ||
      (!isPinned(bucket) && hasEnded(bucket, nowMs));
    const due = shards.filter(isDue);
    for (const bucket of due) {
      const { entityId, resource, shard } = bucket;
      const { change, condition } = planOpening(bucket, nowMs, this.#rules);
      const key = bucketKey(namespaceId, entityId, resource, shard);
      await store.update(key, change, condition);
      this.#states.forget(key.PK);
    }
    return due.length > 0;
  }

  #plan(
    { additionOf }: BalanceOperation,
    shards: readonly SeenBucket[],
    nowMs: number,
    isExact: boolean,
  ): { writes: Write[]; result: OperationResult } {
    const balances = shards.map((shard) => balancesAt(shard, nowMs));
    const plans = shards.map((shard) => {
      const plan = new WritePlan();
      plan.requireSeen(shard, nowMs);
      return plan;
    });
    const amounts: Record<string, number> = {};
    for (const name of new Set(balances.flatMap((limits) => [...limits.keys()]))) {
      const addition = additionOf(name);
      if (addition === undefined || shards.some((shard) => areSlots(shard, name))) continue;
      if (shards.some(({ limits }) => limits.get(name)?.period !== undefined)) {
        amounts[name] = addToPeriods(plans, shards, name, addition, nowMs);
        continue;
      }
      const rooms = balances.map((limits) => {
        const balance = limits.get(name);
        return balance === undefined ? 0 : balance.share.capacityMilli - balanceOf(balance);
      });
      const parts = splitByRoom(addition, rooms);
      parts.forEach((part, at) => {
        const [plan, balance] = [plans[at], balances[at]?.get(name)];
        if (plan === undefined || balance === undefined) return;
        const isFilled = part >= (rooms[at] as number);
        if (isExact && isFilled && isFullByRemainder(balance, part)) fill(plan, name, balance);
        else plan.add(`b_${name}_tk`, part);
      });
      amounts[name] = Math.floor(parts.reduce((sum, part) => sum + part, 0) / 1000);
    }
    const { namespaceId } = this.#context;
    const writes = plans.flatMap((plan, at): Write[] => {
      if (plan.isEmpty) return [];
      const { entityId, resource, shard } = shards[at] as SeenBucket;
      const update = bucketKey(namespaceId, entityId, resource, shard);
      return [{ update, change: plan.change, condition: plan.condition }];
    });
    return { writes, result: { shards: shards.length, amounts } };
  }
}

/** Whether a limit is of slots: they come back when the calls that hold them end. */
function areSlots({ limits }: SeenBucket, name: string): boolean {
  const rate = limits.get(name)?.rate;
  return rate !== undefined && hasSlots(rate);
}

/** Adds to a limit with periods, shard by shard; returns the whole tokens that it has more. */
function addToPeriods(
  plans: readonly WritePlan[],
  shards: readonly SeenBucket[],
  name: string,
  additionMilli: number,
  nowMs: number,
): number {
  let sum = 0;
  shards.forEach((shard, at) => {
    const stored = shard.limits.get(name);
    const plan = plans[at];
    if (stored === undefined || plan === undefined) return;
    const part = Number.isFinite(additionMilli)
      ? shareOf(additionMilli, at, shards.length)
      : additionMilli;
    sum += planAddition(plan, shard, name, stored, part, nowMs);
  });
  return Math.floor(sum / 1000);
}

/** Whether a limit is full with the addition, and only because of its remainder. */
function isFullByRemainder({ stored, share, accruedMin }: BalanceAt, part: number): boolean {
  return stored.tokensMilli + accruedMin + part < share.capacityMilli;
}

/**
 * Fills a limit without its remainder, which clients of the Python library know nothing of: they
 * would miss a part of a token, and refuse a call for all that the limit has. The write fails if
 * other clients have consumed from the limit meanwhile.
 */
function fill(plan: WritePlan, name: string, { stored, share, accruedMin }: BalanceAt): void {
  plan.require({ is: "=", name: `b_${name}_tk`, value: stored.tokensMilli });
  plan.require({ is: "=", name: `b_${name}_rr`, value: stored.remainder });
  plan.set(`b_${name}_tk`, share.capacityMilli - accruedMin);
  plan.remove(`b_${name}_rr`);
}

/**
 * Plans the addition of an operator to one limit whose period is not due: `Infinity` fills it, and
 * ends a session. Returns the milli-tokens that it has more.
 */
function planAddition(
  plan: WritePlan,
  place: Place,
  name: string,
  stored: StoredLimit,
  additionMilli: number,
  nowMs: number,
): number {
  const level = storedLevel(place, stored) as PeriodLevel;
  const allowance = allowanceAt(place, stored.rate);
  const { rule } = allowance;
  const heldMilli = balanceIn(level, allowance, nowMs);
  const isReset = !Number.isFinite(additionMilli);
  const over = nowMs >= level.endMs;
  // Makes clients of the Python library read the item again.
  if (isReset) plan.set(VALID_UNTIL, 0);
  if (isReset && rule.kind === "session") {
    if (over) return 0;
    setSessionStart(plan, name, nowMs - rule.seconds * 1000);
    return allowance.amountMilli - heldMilli;
  }
  const opened = over ? levelIn(level, allowance, nowMs) : level;
  const after = toppedUp(opened, allowance, additionMilli);
  const period = storedFrom(after, allowance);
  if (over) plan.set(`b_${name}_tk`, after.tokensMilli);
  else plan.add(`b_${name}_tk`, after.tokensMilli - stored.tokensMilli);
  setPeriod(plan, name, rule, period, place.shardCount);
  if (isReset) plan.add(`b_${name}_rn`, 1);
  return after.tokensMilli - heldMilli;
}
