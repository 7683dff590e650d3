/** One limit of a bucket as the page shows it. */

import type { StoredState } from "@zae-limiter/limiter/buckets/bucket-admin.ts";
import { hasSlots } from "@zae-limiter/limiter/core/bucket.ts";
import { floorDiv } from "@zae-limiter/limiter/core/integers.ts";
import { resetText } from "@zae-limiter/limiter/domain/quota-text.ts";
import type { BalanceJson } from "./wire.ts";

/** Returns the balance of one shard, as if it were the whole bucket. */
export function balanceOf(state: StoredState): BalanceJson {
  const { entityId, resource, limitName, shardCount, period } = state;
  return {
    entityId,
    resource,
    limitName,
    available: floorDiv(state.balanceMilli, 1000),
    capacity: floorDiv(state.capacityMilli, 1000),
    refillPerSecond: state.refillMilli / state.periodMs,
    shardCount,
    ...(hasSlots(state) ? { holders: state.holders ?? {} } : {}),
    ...(state.rule === undefined ? {} : { resets: resetText(state.rule) }),
    ...(period === undefined
      ? {}
      : { resetsInSeconds: Math.max(0, period.endMs - period.atMs) / 1000 }),
  };
}

/** Adds up the shards of each bucket; a state has the capacity and rate of the whole bucket. */
export function wholeBalances(states: Iterable<StoredState>): BalanceJson[] {
  const whole = new Map<string, StoredState>();
  for (const state of states) {
    const key = `${state.resource}\n${state.limitName}\n${state.entityId}`;
    const known = whole.get(key);
    const balanceMilli = state.balanceMilli + (known?.balanceMilli ?? 0);
    const holders = { ...known?.holders };
    for (const [id, slots] of Object.entries(state.holders ?? {})) {
      holders[id] = (holders[id] ?? 0) + slots;
    }
    whole.set(key, {
      ...state,
      balanceMilli: Math.min(state.capacityMilli, balanceMilli),
      holders,
    });
  }
  return [...whole.values()].map(balanceOf);
}
