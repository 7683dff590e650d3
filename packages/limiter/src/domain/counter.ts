/** Limits that only count: they refuse nothing, and their balance is always whole. */

import { TOKENS_MAX } from "./check.ts";
import { Limit } from "./limit.ts";

/** Returns a soft limit that no use brings below zero for longer than a second. */
export function counterOf(name: string): Limit {
  return Limit.custom({
    name,
    capacity: TOKENS_MAX,
    refillAmount: TOKENS_MAX,
    refillPeriodSeconds: 1,
    soft: true,
  });
}
