/**
 * Dollars by resource. Where an entity has a total in money, its bucket of the resource carries the
 * same name as a counter, so that usage is known by resource and not by the total alone.
 */

import type { BucketConfig } from "../buckets/leg.ts";
import { isMoney } from "../core/micro-dollars.ts";
import { counterOf } from "../domain/counter.ts";
import type { Limit } from "../domain/limit.ts";
import type { Resolution } from "../records/config/config-resolver.ts";
import type { AmountsByName } from "./acquire-request.ts";
import { configOf } from "./call-legs.ts";

const NONE: readonly string[] = Object.freeze([]);

/** The names of money among limits, by the list of the limits. */
const moneyOf = new WeakMap<readonly Limit[], readonly string[]>();
/** Limits with counters, by the list of the limits and the names that it lacks. */
const counted = new WeakMap<readonly Limit[], Map<string, readonly Limit[]>>();
const NO_LIMITS: readonly Limit[] = Object.freeze([]);

/** Returns the names of money that a total counts and a call consumes. */
export function moneyIn(
  total: Pick<BucketConfig, "limits"> | undefined,
  amounts: AmountsByName,
): readonly string[] {
  if (total === undefined) return NONE;
  let names = moneyOf.get(total.limits);
  if (names === undefined) {
    names = total.limits.map(({ name }) => name).filter(isMoney);
    moneyOf.set(total.limits, names);
  }
  return names.length === 0 ? NONE : names.filter((name) => amounts.has(name));
}

/** Returns the config of a resource with counters for names of money that it lacks. */
export function withCounters(
  config: BucketConfig | undefined,
  names: readonly string[],
  stored: Resolution,
  forced: boolean,
): BucketConfig | undefined {
  if (names.length === 0) return config;
  const limits = config?.limits ?? NO_LIMITS;
  const lacking = names.filter((name) => limits.every((limit) => limit.name !== name));
  if (lacking.length === 0) return config;
  const all = limitsWith(limits, lacking);
  return config === undefined ? configOf(stored, all, forced) : { ...config, limits: all };
}

/** Returns the same list each time, so that a bucket is seen to have the same limits. */
function limitsWith(limits: readonly Limit[], lacking: readonly string[]): readonly Limit[] {
  let known = counted.get(limits);
  if (known === undefined) {
    known = new Map();
    counted.set(limits, known);
  }
  const key = lacking.join(" ");
  const found = known.get(key) ?? [...limits, ...lacking.map(counterOf)];
  known.set(key, found);
  return found;
}
