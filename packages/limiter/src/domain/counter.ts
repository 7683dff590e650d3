/** Limits that only count: they refuse nothing, and their balance is always whole. */

import { TextMemo } from "../base/text-memo.ts";
import type { Rate } from "../core/bucket.ts";
import { TOKENS_MAX } from "./check.ts";
import { Limit } from "./limit.ts";

const MILLI_MAX = TOKENS_MAX * 1000;
const PERIOD_MS = 1000;

const known = new WeakSet<Limit>();
const counters = new TextMemo((name) => {
  const limit = Limit.custom({
    name,
    capacity: TOKENS_MAX,
    refillAmount: TOKENS_MAX,
    refillPeriodSeconds: 1,
    soft: true,
  });
  known.add(limit);
  return limit;
});

/** Returns a soft limit that no use brings below zero for longer than a second. */
export function counterOf(name: string): Limit {
  return counters.of(name);
}

/** Whether a limit only counts: it is none that a caller has to know. */
export function isCounter(limit: Limit): boolean {
  return limit.soft && known.has(limit);
}

/** Whether a limit that a bucket has stored only counts. */
export function onlyCounts({ capacityMilli, refillMilli, periodMs }: Omit<Rate, "rule">): boolean {
  return capacityMilli === MILLI_MAX && refillMilli === MILLI_MAX && periodMs === PERIOD_MS;
}
