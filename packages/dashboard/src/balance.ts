/** One limit of a bucket as the page shows it. */

import type { StoredState } from "@zae-limiter/limiter/buckets/bucket-admin.ts";
import { startOf } from "@zae-limiter/limiter/buckets/periods.ts";
import { hasSlots } from "@zae-limiter/limiter/core/bucket.ts";
import { emptyAtMs } from "@zae-limiter/limiter/core/forecast.ts";
import { floorDiv } from "@zae-limiter/limiter/core/integers.ts";
import { onlyCounts } from "@zae-limiter/limiter/domain/counter.ts";
import { resetText } from "@zae-limiter/limiter/domain/quota-text.ts";
import { localIso, localText } from "@zae-limiter/limiter/domain/zone.ts";
import type { BalanceJson } from "./wire.ts";

const MINUTE_MS = 60_000;
/** Beyond this length of a period, the day is enough. */
const LONG_MS = 2 * 86_400_000;

/** Returns the balance of one shard, as if it were the whole bucket. */
export function balanceOf(state: StoredState): BalanceJson {
  const { entityId, resource, limitName, shardCount, period } = state;
  const empty = emptyText(state);
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
    ...(empty === undefined ? {} : { empty }),
  };
}

/** Returns `empty on 2026-11-19 at this pace`, where the period has more than that left. */
function emptyText({ rule, period, balanceMilli }: StoredState): string | undefined {
  if (rule === undefined || period === undefined || balanceMilli <= 0) return undefined;
  const { endMs, atMs } = period;
  const startMs = startOf(rule, endMs);
  const used = period.grantedMilli - balanceMilli;
  const emptyMs = emptyAtMs({ available: balanceMilli, used, startMs, endMs }, atMs);
  if (emptyMs === undefined) return undefined;
  const zone = rule.kind === "quota" ? rule.timeZone : "UTC";
  const isLong = endMs - startMs > LONG_MS;
  const time = isLong
    ? localIso(zone, emptyMs).slice(0, 10)
    : localText(zone, Math.floor(emptyMs / MINUTE_MS) * MINUTE_MS);
  return `empty on ${time} at this pace`;
}

/** Returns the period of two shards with what both have granted. */
function sumOf(one: StoredState["period"], other: StoredState["period"]): StoredState["period"] {
  if (one === undefined || other === undefined) return one ?? other;
  return { ...one, grantedMilli: one.grantedMilli + other.grantedMilli };
}

/**
 * Adds up the shards of each bucket, without limits that only count; a state has the capacity and
 * rate of the whole bucket.
 */
export function wholeBalances(states: Iterable<StoredState>): BalanceJson[] {
  const whole = new Map<string, StoredState>();
  for (const state of states) {
    if (onlyCounts(state)) continue;
    const key = `${state.resource}\n${state.limitName}\n${state.entityId}`;
    const known = whole.get(key);
    const balanceMilli = state.balanceMilli + (known?.balanceMilli ?? 0);
    const holders = { ...known?.holders };
    for (const [id, slots] of Object.entries(state.holders ?? {})) {
      holders[id] = (holders[id] ?? 0) + slots;
    }
    const period = sumOf(state.period, known?.period);
    whole.set(key, {
      ...state,
      period,
      balanceMilli: state.rule ? balanceMilli : Math.min(state.capacityMilli, balanceMilli),
      holders,
    });
  }
  return [...whole.values()].map(balanceOf);
}
