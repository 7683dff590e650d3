/**
 * Whether a live bucket has the limits that a call expects.
 *
 * A bucket takes limits only from a newer config than the one it was built from. Limits given with
 * a call work like a config change of that bucket, except that they remove nothing: the next call
 * without them puts the stored ones back, and a limit that comes back finds its balance. A bucket
 * that was made by limits of a call has no stored ones yet, so the first of them replace nothing.
 */

import type { Rate } from "../core/bucket.ts";
import type { BucketConfig, LimitSource } from "./bucket-store.ts";

/** What a bucket was built from. */
export interface BuiltFrom {
  readonly version: number;
  readonly source: LimitSource | string | undefined;
  rateOf(limitName: string): Rate | undefined;
  limitNames(): Iterable<string>;
}

export type ConfigMatch = "same" | "apply" | "outdated";

export function matchConfig(bucket: BuiltFrom, config: BucketConfig): ConfigMatch {
  const override = config.source === "override";
  const newer = config.forced === true || config.version > bucket.version;
  if (!override && !newer && config.version < bucket.version) return "outdated";
  let differs = false;
  for (const { name, rate } of config.limits) {
    const stored = bucket.rateOf(name);
    if (stored === undefined) return "apply";
    differs ||= !sameRate(stored, rate);
  }
  if (override) return differs ? "apply" : "same";
  if (newer) return differs || hasStale(bucket, config) ? "apply" : "same";
  return differs && bucket.source === "override" ? "apply" : "same";
}

/** The limits a bucket loses when the config is applied. */
export function staleNames(bucket: BuiltFrom, config: BucketConfig): string[] {
  if (config.source === "override") return [];
  if (config.forced !== true && config.version <= bucket.version) return [];
  if (bucket.version === 0 && bucket.source === "override") return [];
  const names = new Set(config.limits.map(({ name }) => name));
  return [...bucket.limitNames()].filter((name) => !names.has(name));
}

/**
 * Whether a call that is refused brings its limits to the bucket all the same. Without it a bucket
 * that is only ever asked for more than it could hold before would never come to hold it. Stored
 * limits are in force whoever is refused; those of a call only where they take nothing away.
 */
export function appliesAnyway(bucket: BuiltFrom, config: BucketConfig): boolean {
  if (config.source !== "override") return true;
  return config.limits.every(({ name, rate }) => {
    const stored = bucket.rateOf(name);
    return stored === undefined || isAtLeast(rate, stored);
  });
}

function isAtLeast(rate: Rate, other: Rate): boolean {
  return (
    rate.capacityMilli >= other.capacityMilli &&
    rate.refillMilli / rate.periodMs >= other.refillMilli / other.periodMs
  );
}

function hasStale(bucket: BuiltFrom, config: BucketConfig): boolean {
  return staleNames(bucket, config).length > 0;
}

export function sameRate(left: Rate, right: Rate): boolean {
  return (
    left.capacityMilli === right.capacityMilli &&
    left.refillMilli === right.refillMilli &&
    left.periodMs === right.periodMs
  );
}
