/**
 * Attributes of the Python library on config items and buckets that this library reads, keeps and
 * never changes.
 *
 * A limit of a bucket that resets or follows a schedule is recognised by them: a bucket has
 * defaults for all its limits in `rsched` and `sched`, and per limit `b_{name}_rsched` and
 * `b_{name}_sched`, where `-` means none although the item has a default.
 */

import type { UnsupportedKind } from "../domain/errors/unsupported-limit.ts";
import { type Item, numberAt, textAt, type Value, valueAt } from "../storage/item.ts";
import {
  NO_SCHEDULE,
  type PeriodAttributes,
  RESETS,
  ruleIn,
  scheduleIn,
  WINDOWS,
} from "./period-attributes.ts";

const NONE: ReadonlyMap<string, UnsupportedKind> = new Map();

/** The names of the attributes that show whether a limit of a bucket follows a schedule. */
export interface SchedulingAttributes {
  readonly refill: string;
  readonly sessionSeconds: string;
  readonly resets: string;
  readonly windows: string;
  readonly periods: PeriodAttributes;
}

/**
 * Returns the kind of a limit of a bucket that this version cannot enforce: a rate that resets, one
 * that follows windows, and a quota whose resets cannot be read.
 */
export function unsupportedInBucket(
  item: Item,
  names: SchedulingAttributes,
): UnsupportedKind | undefined {
  const isRefilled = numberAt(item, names.refill) !== 0;
  if (!isRefilled) {
    if (ruleIn(item, names.periods) !== undefined) return undefined;
    const isSession = valueAt(item, names.sessionSeconds) !== undefined;
    return isSession ? "session quota" : "calendar quota";
  }
  if (isScheduled(item, names.resets, RESETS)) return "calendar quota";
  const isUnread =
    isScheduled(item, names.windows, WINDOWS) && scheduleIn(item, names) === undefined;
  return isUnread ? "schedule" : undefined;
}

/** Attributes of a bucket from the Python library, besides those of both libraries. */
export interface PythonPart {
  /** The limits that this version cannot enforce; they are in no other list of the bucket. */
  readonly unsupported: ReadonlyMap<string, UnsupportedKind>;
  /** Attributes that a split copies to the new shards. */
  readonly stamps: Readonly<Record<string, Value>>;
  /** The item has default resets, or default windows, for its limits. */
  readonly resets: boolean;
  readonly windows: boolean;
}

/** Returns `undefined` for a bucket without any of these attributes, as most are. */
export function pythonPart(
  item: Item,
  limitNames: Iterable<string>,
  unsupported: ReadonlyMap<string, UnsupportedKind> | undefined,
): PythonPart | undefined {
  const stamps = stampsIn(item, limitNames);
  const resets = valueAt(item, RESETS) !== undefined;
  const windows = valueAt(item, WINDOWS) !== undefined;
  if (unsupported === undefined && stamps === undefined && !resets && !windows) return undefined;
  return { unsupported: unsupported ?? NONE, stamps: stamps ?? {}, resets, windows };
}

/** Returns the part of a new bucket that has only stamps. */
export function stamped(stamps: Readonly<Record<string, Value>>): PythonPart {
  return { unsupported: NONE, stamps, resets: false, windows: false };
}

/** Returns attributes that keep the item's default schedules away from a limit of this library. */
export function unscheduled(
  part: PythonPart | undefined,
  limitName: string,
): Record<string, Value> {
  return {
    ...(part?.resets === true ? { [`b_${limitName}_rsched`]: NO_SCHEDULE } : {}),
    ...(part?.windows === true ? { [`b_${limitName}_sched`]: NO_SCHEDULE } : {}),
  };
}

/** Everything that a limit of a bucket may have from the Python library, besides its numbers. */
export const PYTHON_LIMIT_SUFFIXES = [
  "sched",
  "rsched",
  "soft",
  "gc",
  "ws",
  "wa",
  "rsa",
  "wtc",
  "tu",
  "rn",
] as const;

/** Attributes that hold for a bucket as a whole: a split copies them to the new shards. */
const STAMPS = ["disabled", "bypass", "pgen", "pinc"] as const;

/**
 * Names of a bucket's attributes that only the Python library writes, of the bucket or of a limit.
 */
const OF_BUCKET: ReadonlySet<string> = new Set([RESETS, WINDOWS, ...STAMPS]);
const OF_LIMIT = new RegExp(`^b_.+_(?:${PYTHON_LIMIT_SUFFIXES.join("|")})$`);

/** Returns whether only the Python library gives this name to an attribute of a bucket. */
export function isPythonAttribute(name: string): boolean {
  return OF_BUCKET.has(name) || OF_LIMIT.test(name);
}

/** Returns the time until which a limit of a bucket counts as soft; absent: it is hard. */
export function softStamp(limitName: string): string {
  return `b_${limitName}_soft`;
}

/**
 * Returns the stamps of a bucket, for the shards that are made of it; `undefined` when it has none.
 */
function stampsIn(
  item: Item,
  limitNames: Iterable<string>,
): Readonly<Record<string, Value>> | undefined {
  let stamps: Record<string, Value> | undefined;
  const take = (name: string) => {
    const value = valueAt(item, name);
    if (value === undefined) return;
    stamps ??= {};
    stamps[name] = value;
  };
  for (const name of STAMPS) take(name);
  for (const limitName of limitNames) take(softStamp(limitName));
  return stamps;
}

function isScheduled(item: Item, own: string, common: string): boolean {
  const schedule = valueAt(item, own) ?? valueAt(item, common);
  return schedule !== undefined && schedule !== NO_SCHEDULE;
}

/** How a level answers whether a resource is switched off; absent: the next level answers. */
export type DisabledFlag = boolean | "bypass";

export function disabledIn(item: Item | undefined): DisabledFlag | undefined {
  const value = valueAt(item, "disabled");
  if (typeof value === "boolean") return value;
  if (value === undefined) return undefined;
  return textAt(item, "disabled") === "bypass" ? "bypass" : false;
}

/** Whether a level says that acquires cascade; absent: the next level answers. */
export function cascadeIn(item: Item | undefined): boolean | undefined {
  const value = valueAt(item, "cascade");
  return typeof value === "boolean" ? value : undefined;
}
