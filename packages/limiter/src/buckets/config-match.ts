/**
 * Whether a live bucket has the limits that a call expects.
 *
 * A bucket takes limits from a newer config than the one it was built from, or from one that was
 * read after the bucket was seen (`forced`). The Python library changes limits without counting the
 * version, and sets the counter back: where the limits differ and the version does not say which
 * are newer, they are read again. Where they are the same, versions do not matter.
 *
 * Limits given with a call work like a config change of that bucket, except that they remove
 * nothing: the next call without them puts the stored ones back, and a limit that comes back finds
 * its balance. A bucket that was made by limits of a call has no stored ones yet, so the first of
 * them replace nothing.
 */

import { hasSlots, type Rate } from "../core/bucket.ts";
import { sameRule } from "../core/period-rule.ts";
import { sameSchedule } from "../core/rate-schedule.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { type UnsupportedKind, UnsupportedLimitError } from "../domain/errors/unsupported-limit.ts";
import type { LimitKind } from "../domain/limit-spec.ts";
import type { BucketConfig, LimitSource } from "./leg.ts";

/** The config that a bucket was built from. */
export interface BuiltFrom {
  readonly version: number;
  readonly source: LimitSource | string | undefined;
  rateOf(limitName: string): Rate | undefined;
  limitNames(): Iterable<string>;
  /** Returns the kind of a limit that only Python can enforce; `undefined` for other limits. */
  unsupported?(limitName: string): UnsupportedKind | undefined;
}

export type ConfigMatch = "same" | "apply" | "outdated";

export function matchConfig(bucket: BuiltFrom, config: BucketConfig): ConfigMatch {
  if (config.source === "override") return matchOverride(bucket, config);
  const difference = differenceOf(bucket, config);
  if (config.forced === true) return difference === "none" ? "same" : "apply";
  // Only limits that were just read may replace what Python enforces.
  if (difference === "unsupported") return "outdated";
  if (config.version > bucket.version) return difference === "none" ? "same" : "apply";
  if (config.version < bucket.version) return difference === "none" ? "same" : "outdated";
  if (difference === "missing") return "apply";
  if (difference !== "rates") return "same";
  return bucket.source === "override" ? "apply" : "outdated";
}

/** In what way a bucket is not what a config says. */
type Difference = "none" | "unsupported" | "missing" | "rates" | "others";

function differenceOf(bucket: BuiltFrom, config: BucketConfig): Difference {
  let difference: Difference = "none";
  for (const { name, rate } of config.limits) {
    if (bucket.unsupported?.(name) !== undefined) return "unsupported";
    const stored = bucket.rateOf(name);
    if (stored === undefined) difference = "missing";
    else if (difference === "none" && !sameRate(stored, rate)) difference = "rates";
  }
  if (difference !== "none") return difference;
  return hasOthers(bucket, config) ? "others" : "none";
}

function matchOverride(bucket: BuiltFrom, { limits }: BucketConfig): ConfigMatch {
  let match: ConfigMatch = "same";
  for (const { name, rate } of limits) {
    const kind = bucket.unsupported?.(name);
    if (kind !== undefined) throw new UnsupportedLimitError({ name, kind }, "this bucket");
    const stored = bucket.rateOf(name);
    if (stored !== undefined && kindOf(stored) !== kindOf(rate)) refuseKind(name, stored, rate);
    if (stored === undefined || !sameRate(stored, rate)) match = "apply";
  }
  return match;
}

function refuseKind(name: string, stored: Rate, given: Rate): never {
  const reason =
    `the bucket has "${name}" as a ${kindOf(stored)}, and this call gives it as a ` +
    `${kindOf(given)}: only stored limits change the kind of a limit`;
  throw new ValidationError("limits", name, reason);
}

/** Returns the names of the limits that a bucket loses when the config is applied. */
export function staleNames(bucket: BuiltFrom, config: BucketConfig): string[] {
  if (config.source === "override") return [];
  if (config.forced !== true && config.version <= bucket.version) return [];
  if (bucket.version === 0 && bucket.source === "override") return [];
  const names = new Set(config.limits.map(({ name }) => name));
  return [...bucket.limitNames()].filter((name) => !names.has(name));
}

/**
 * Returns whether a refused call applies its limits to the bucket all the same. Otherwise a bucket
 * whose requests all exceed the old capacity would never get the new one. Stored limits always
 * apply; limits of a call only where they take nothing away.
 */
export function appliesAnyway(bucket: BuiltFrom, config: BucketConfig): boolean {
  if (config.source !== "override") return true;
  return config.limits.every(({ name, rate }) => {
    const stored = bucket.rateOf(name);
    return stored === undefined || isAtLeast(rate, stored);
  });
}

function isAtLeast(rate: Rate, other: Rate): boolean {
  if (kindOf(rate) !== kindOf(other) || !sameRule(rate.rule, other.rule)) return false;
  if (!sameSchedule(rate.schedule, other.schedule)) return false;
  if (rate.refillMilli === 0) return rate.capacityMilli >= other.capacityMilli;
  return (
    rate.capacityMilli >= other.capacityMilli &&
    rate.refillMilli / rate.periodMs >= other.refillMilli / other.periodMs
  );
}

/** Whether the bucket has limits that the config does not, apart from those of earlier calls. */
function hasOthers(bucket: BuiltFrom, config: BucketConfig): boolean {
  if (bucket.version === 0 && bucket.source === "override") return false;
  for (const name of bucket.limitNames()) if (!hasLimit(config, name)) return true;
  return false;
}

function hasLimit({ limits }: BucketConfig, name: string): boolean {
  for (const limit of limits) if (limit.name === name) return true;
  return false;
}

/** Whether two limits have the same numbers, and the same periods or windows, if any. */
export function sameRate(left: Rate, right: Rate): boolean {
  return (
    left.capacityMilli === right.capacityMilli &&
    left.refillMilli === right.refillMilli &&
    left.periodMs === right.periodMs &&
    sameRule(left.rule, right.rule) &&
    sameSchedule(left.schedule, right.schedule)
  );
}

/** Returns the kind of a limit by its rate; `undefined` without a limit. */
export function kindOf(rate: Parameters<typeof hasSlots>[0] | undefined): LimitKind | undefined {
  if (rate === undefined) return undefined;
  return rate.rule?.kind ?? (hasSlots(rate) ? "concurrency" : "rate");
}
