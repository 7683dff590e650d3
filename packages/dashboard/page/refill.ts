/** Buckets refill between two walks over them; the page follows that. Pure. */

import type { BalanceJson, OverviewJson } from "../src/wire.ts";

/** Less than this share of the capacity is scarce. */
const SCARCE_SHARE = 0.2;

/** Returns what a limit of a bucket has some seconds after it was read. */
export function availableAfter(balance: BalanceJson, seconds: number): number {
  const { available, capacity, refillPerSecond, resets, resetsInSeconds } = balance;
  if (resetsInSeconds !== undefined && seconds >= resetsInSeconds) return capacity;
  // A quota may hold more than it grants: what it has carried, and top-ups.
  if (resets !== undefined) return available;
  return Math.min(capacity, available + refillPerSecond * seconds);
}

export function stateOf(available: number, capacity: number): "empty" | "scarce" | "fine" {
  if (available < 1) return "empty";
  return available < capacity * SCARCE_SHARE ? "scarce" : "fine";
}

/** Returns an overview some seconds later, without the listed buckets that have refilled. */
export function refilled(seen: OverviewJson, seconds: number): OverviewJson {
  const later = (balance: BalanceJson) => availableAfter(balance, seconds);
  const empty = seen.empty.filter(
    (balance) => stateOf(later(balance), balance.capacity) === "empty",
  );
  const scarce = seen.scarce.filter(
    (balance) => stateOf(later(balance), balance.capacity) !== "fine",
  );
  const paid = seen.empty.filter((balance) => balance.available < 0 && later(balance) >= 0);
  return {
    ...seen,
    empty,
    scarce,
    emptyCount: seen.emptyCount - (seen.empty.length - empty.length),
    scarceCount: seen.scarceCount - (seen.scarce.length - scarce.length),
    debtCount: seen.debtCount - paid.length,
  };
}
