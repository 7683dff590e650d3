/**
 * A bucket as it is stored: one item per entity, resource and shard, with all its limits.
 *
 * Per limit `b_{name}_tk|cp|ra|rp|tc`: balance, capacity, refill amount, refill period and what was
 * consumed in total, in milli-tokens and milliseconds. `rf` is the time the balances refer to.
 * Slots have attributes of their own, in `slot-attributes.ts`.
 *
 * Ours, and ignored by the Python library: `b_{name}_rr`, the remainder of the last refill,
 * `cv`/`cs`, version and source of the config the parameters came from, `ac`, how many acquires
 * consumed something, `wm`, the meter of writes to the item, and `mv`, the copy that wrote it.
 */

import { hasSlots, type Rate, SHARDS_MAX } from "../core/bucket.ts";
import { PERIOD_SECONDS_MAX, show, TOKENS_MAX } from "../domain/check.ts";
import { DamagedRecordError } from "../domain/errors/errors.ts";
import type { UnsupportedKind } from "../domain/errors/unsupported-limit.ts";
import { RESERVED_LIMIT } from "../domain/names.ts";
import {
  flagAt,
  type Item,
  integerAt,
  isIntegerIn,
  keyOf,
  textAt,
  type Value,
  valueAt,
} from "../storage/item.ts";
import { type BucketShape, type LimitAttributes, shapeOf } from "./bucket-shape.ts";
import {
  BUCKET_PREFIX,
  bucketKey,
  entityPartition,
  inNamespace,
  parseShard,
  resourcePartition,
} from "./keys.ts";
import {
  newPeriodAttributes,
  periodIn,
  rateWith,
  ruleIn,
  type StoredPeriod,
  scheduleIn,
} from "./period-attributes.ts";
import { type PythonPart, pythonPart, unsupportedInBucket } from "./python-attributes.ts";
import type { RecordContext } from "./record-context.ts";
import {
  freeOf,
  marksIn,
  NO_MARKS,
  type SlotMarks,
  slotAttributes,
  slotCapacityOf,
} from "./slot-attributes.ts";

export interface StoredLimit {
  readonly tokensMilli: number;
  readonly rate: Rate;
  /** May exceed what a number holds. `undefined` in items that never counted. */
  readonly totalConsumedMilli: number | bigint | undefined;
  readonly remainder: number;
  /** Present in a quota and in a session. */
  readonly period?: StoredPeriod | undefined;
  /** Present in a limit of slots: the entries that hold some. */
  readonly marks?: SlotMarks | undefined;
}

export interface StoredBucket {
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
  readonly shardCount: number;
  /** The time that the balances refer to. */
  readonly refilledAtMs: number;
  readonly cascade: boolean;
  readonly parentId: string | undefined;
  /** Epoch seconds. */
  readonly ttl: number | undefined;
  readonly configVersion: number;
  readonly configSource: string | undefined;
  /** Without `wcu`. */
  readonly limits: ReadonlyMap<string, StoredLimit>;
  /** The Python library's meter of writes to this item (`b_wcu_*`); ours is `meterMs`. */
  readonly writes: StoredLimit | undefined;
  /** Epoch milliseconds; absent until this library has written to the item twice. */
  readonly meterMs: number | undefined;
  /** The stored count, where it is more than there can be: most of those shards do not exist. */
  readonly announced?: number | undefined;
  /** The item has no count of shards: it was made before there were any. */
  readonly isUncounted?: boolean | undefined;
  /** Absent where the Python library has added nothing of its own. */
  readonly python?: PythonPart | undefined;
  /** Whether a limit waits for the end of its period. */
  readonly hasPaused?: boolean | undefined;
}

/** Writes that one item takes per second: the most that DynamoDB lets one partition take. */
export const WRITES_RATE: Rate = {
  capacityMilli: 1_000_000,
  refillMilli: 1_000_000,
  periodMs: 1000,
};

/** Number of acquires that consumed; usage aggregation reads it. The Python library ignores it. */
export const ACQUIRES = "ac";

/** The meter of writes to the item, which every write of ours that consumes moves. */
export const METER = "wm";

/** Written by a copy from another store, with a new text each time: its totals are no usage. */
export const MOVED = "mv";

/** Period of all limits to which nothing accrues. */
const PERIOD_RATE_MS = 1000;
const MILLI_MAX = Number.MAX_SAFE_INTEGER;
const TOKENS_MILLI_MAX = 1000 * TOKENS_MAX;
const PERIOD_MS_MAX = 1000 * PERIOD_SECONDS_MAX;
/** The last moment that a `Date` can hold. */
const TIME_MS_MAX = 8_640_000_000_000_000;
/** The Python library up to 0.12 doubles the count without bound, and without making shards. */
const ANNOUNCED_MAX = 2 ** 30;

export function encodeBucket(namespaceId: string, bucket: StoredBucket): Item {
  const { entityId, resource, shard } = bucket;
  const id = `${BUCKET_PREFIX}${entityId}#${resource}#${shard}`;
  return {
    ...bucketKey(namespaceId, entityId, resource, shard),
    ...inNamespace(namespaceId, id),
    GSI2PK: resourcePartition(namespaceId, resource),
    GSI2SK: `${BUCKET_PREFIX}${entityId}#${shard}`,
    GSI3PK: entityPartition(namespaceId, entityId),
    GSI3SK: `${BUCKET_PREFIX}${resource}#${shard}`,
    entity_id: entityId,
    resource,
    rf: bucket.refilledAtMs,
    cascade: bucket.cascade,
    shard_count: bucket.shardCount,
    ...(bucket.parentId === undefined ? {} : { parent_id: bucket.parentId }),
    ...(bucket.ttl === undefined ? {} : { ttl: bucket.ttl }),
    ...(bucket.configVersion === 0 ? {} : { cv: bucket.configVersion }),
    ...(bucket.configSource === undefined ? {} : { cs: bucket.configSource }),
    ...(bucket.meterMs === undefined ? {} : { wm: bucket.meterMs }),
    ...bucket.python?.stamps,
    ...limitAttributes(bucket),
  };
}

/**
 * Returns the bucket in an item; `undefined` when the item is not a bucket, such as a stub without
 * its keys.
 *
 * Any client that may acquire may write any attribute, so every number has a range, and the key
 * decides which bucket it is. An invalid item is a `DamagedRecordError`. A limit with invalid
 * parameters counts as absent: it starts over with its config.
 */
export function decodeBucket(item: Item): StoredBucket | undefined {
  const refilledAtMs = boundedAt(item, "rf", 0, TIME_MS_MAX);
  if (refilledAtMs === undefined) return undefined;
  const entityId = textAt(item, "entity_id") ?? "";
  const resource = textAt(item, "resource") ?? "";
  const shard = shardIn(item, entityId, resource);
  const limits = new Map<string, StoredLimit>();
  let unsupported: Map<string, UnsupportedKind> | undefined;
  const names = Object.keys(item);
  const shape = shapeOf(names);
  for (const each of shape.limits) {
    const capacityMilli = integerAt(item, each.capacity, 1, TOKENS_MILLI_MAX);
    const periodMs = integerAt(item, each.period, 1, PERIOD_MS_MAX);
    // The Python library counts a balance without these as absent, too.
    if (capacityMilli === undefined || periodMs === undefined) continue;
    const kind = unsupportedAt(item, each, shape);
    if (kind !== undefined) {
      unsupported ??= new Map();
      unsupported.set(each.limit, kind);
      continue;
    }
    const limit = limitAt(item, each, capacityMilli, periodMs, refilledAtMs, shape);
    if (limit !== undefined) limits.set(each.limit, limit);
  }
  setAside(limits, unsupported);
  readSlots(item, names, shape.slots, limits);
  const { shardCount, announced, isUncounted } = countIn(item);
  const writes = limits.get(RESERVED_LIMIT);
  limits.delete(RESERVED_LIMIT);
  return {
    entityId,
    resource,
    shard,
    shardCount,
    announced,
    isUncounted,
    refilledAtMs,
    cascade: flagAt(item, "cascade"),
    parentId: textAt(item, "parent_id"),
    ttl: boundedAt(item, "ttl", 0, TIME_MS_MAX),
    configVersion: boundedAt(item, "cv", 1, Number.MAX_SAFE_INTEGER) ?? 0,
    configSource: textAt(item, "cs"),
    limits,
    writes,
    meterMs: boundedAt(item, "wm", 0, TIME_MS_MAX),
    hasPaused: shape.hasPaused ? true : undefined,
    python:
      shape.hasPython || unsupported !== undefined
        ? pythonPart(item, limits.keys(), unsupported)
        : undefined,
  };
}

/**
 * Returns the bucket in an item of a list, where one damaged record must not hide all others:
 * `undefined` when it is none, and with a warning when it is damaged.
 */
export function listedBucket(
  item: Item | undefined,
  onWarning?: RecordContext["onWarning"],
): StoredBucket | undefined {
  try {
    return item === undefined ? undefined : decodeBucket(item);
  } catch (cause) {
    if (!(cause instanceof DamagedRecordError)) throw cause;
    onWarning?.({ kind: "damaged_record", key: keyOf(item as Item), cause });
    return undefined;
  }
}

/** Returns a whole number in its range, or `undefined`; anything else is a damaged record. */
export function boundedAt(item: Item, name: string, min: number, max: number): number | undefined {
  const value = valueAt(item, name);
  if (value === undefined) return undefined;
  if (isIntegerIn(value, min, max)) return value;
  const expected = `must be a whole number from ${min} to ${max}`;
  throw new DamagedRecordError(item.PK, name, `${expected}, got ${show(value)}`);
}

/** Returns the count of shards, a power of two. Old Python clients announce more than exist. */
function countIn(item: Item): Pick<StoredBucket, "shardCount" | "announced" | "isUncounted"> {
  const stored = boundedAt(item, "shard_count", 1, ANNOUNCED_MAX);
  const count = stored ?? 1;
  if ((count & (count - 1)) !== 0) {
    throw new DamagedRecordError(item.PK, "shard_count", `must be a power of two, got ${count}`);
  }
  return {
    shardCount: Math.min(count, SHARDS_MAX),
    announced: count > SHARDS_MAX ? count : undefined,
    isUncounted: stored === undefined ? true : undefined,
  };
}

/** Returns the number in the key, which must be that of this entity and resource. */
function shardIn({ PK }: Item, entityId: string, resource: string): number {
  const entityAt = PK.indexOf("/") + 1 + BUCKET_PREFIX.length;
  const resourceAt = entityAt + entityId.length + 1;
  const shardAt = resourceAt + resource.length + 1;
  const matches =
    entityId !== "" &&
    resource !== "" &&
    PK.startsWith(BUCKET_PREFIX, entityAt - BUCKET_PREFIX.length) &&
    PK.startsWith(entityId, entityAt) &&
    PK.startsWith(resource, resourceAt) &&
    PK[resourceAt - 1] === "#" &&
    PK[shardAt - 1] === "#";
  const shard = matches ? parseShard(PK, shardAt) : undefined;
  if (shard !== undefined) return shard;
  throw new DamagedRecordError(PK, "the key", "does not name the entity, resource and shard");
}

/** Reads the limits of slots; one with invalid numbers counts as absent. */
function readSlots(
  item: Item,
  names: readonly string[],
  limitNames: readonly string[],
  limits: Map<string, StoredLimit>,
): void {
  if (limitNames.length === 0) return;
  const marks = marksIn(item, names);
  for (const name of limitNames) {
    const free = integerAt(item, freeOf(name), -TOKENS_MAX, TOKENS_MAX);
    const capacity = integerAt(item, slotCapacityOf(name), 1, TOKENS_MAX);
    if (free === undefined || capacity === undefined || limits.has(name)) continue;
    limits.set(name, {
      tokensMilli: free * 1000,
      rate: { capacityMilli: capacity * 1000, refillMilli: 0, periodMs: PERIOD_RATE_MS },
      totalConsumedMilli: undefined,
      remainder: 0,
      marks: marks.get(name) ?? NO_MARKS,
    });
  }
}

function limitAttributes(bucket: StoredBucket): Record<string, Value> {
  const attributes: Record<string, Value> = {};
  const all = new Map(bucket.limits);
  if (bucket.writes !== undefined) all.set(RESERVED_LIMIT, bucket.writes);
  for (const [name, { tokensMilli, rate, marks = NO_MARKS }] of bucket.limits) {
    if (!hasSlots(rate)) continue;
    all.delete(name);
    const [free, capacity] = [tokensMilli / 1000, rate.capacityMilli / 1000];
    Object.assign(attributes, slotAttributes(name, { free, capacity, marks }));
  }
  let isTimed = false;
  for (const [name, limit] of all) {
    attributes[`b_${name}_tk`] = limit.tokensMilli;
    attributes[`b_${name}_cp`] = limit.rate.capacityMilli;
    attributes[`b_${name}_ra`] = limit.rate.refillMilli;
    attributes[`b_${name}_rp`] = limit.rate.periodMs;
    attributes[`b_${name}_tc`] = limit.totalConsumedMilli ?? 0;
    if (limit.remainder !== 0) attributes[`b_${name}_rr`] = limit.remainder;
    if (limit.period !== undefined || limit.rate.schedule !== undefined) isTimed = true;
  }
  if (isTimed) {
    all.delete(RESERVED_LIMIT);
    Object.assign(attributes, newPeriodAttributes(all, bucket));
  }
  return attributes;
}

/** Takes out limits with windows: next to a limit that is not enforced the base time stays. */
function setAside(
  limits: Map<string, StoredLimit>,
  unsupported: Map<string, UnsupportedKind> | undefined,
): void {
  if (unsupported === undefined) return;
  for (const [name, { rate }] of limits) {
    if (rate.schedule === undefined) continue;
    unsupported.set(name, "schedule");
    limits.delete(name);
  }
}

/** Returns the kind of a limit that only the Python library enforces; nearly none is one. */
function unsupportedAt(
  item: Item,
  names: LimitAttributes,
  { hasPython }: BucketShape,
): UnsupportedKind | undefined {
  if (!hasPython && valueAt(item, names.refill) !== 0) return undefined;
  // The meter of writes follows no schedule, and has no mark that says so.
  if (names.limit === RESERVED_LIMIT) return undefined;
  return unsupportedInBucket(item, names);
}

/** Returns the limit of a quota or a session: nothing accrues in it. */
function periodLimitAt(
  item: Item,
  names: LimitAttributes,
  capacityMilli: number,
  refilledAtMs: number,
): StoredLimit | undefined {
  const tokensMilli = integerAt(item, names.tokens, -MILLI_MAX, MILLI_MAX);
  const rule = ruleIn(item, names.periods);
  if (tokensMilli === undefined || rule === undefined) return undefined;
  return {
    tokensMilli,
    rate: { capacityMilli, refillMilli: 0, periodMs: PERIOD_RATE_MS, rule },
    totalConsumedMilli: totalAt(item, names),
    remainder: 0,
    period: periodIn(item, names.periods, rule, refilledAtMs),
  };
}

function totalAt(item: Item, { consumed }: LimitAttributes): number | bigint | undefined {
  const total = valueAt(item, consumed);
  const isTotal = typeof total === "bigint" || Number.isSafeInteger(total);
  return isTotal ? (total as number | bigint) : undefined;
}

/** Returns the windows of a limit; the meter of writes has none, whatever the item says. */
function scheduleOf(item: Item, names: LimitAttributes, { hasPython }: BucketShape) {
  return hasPython && names.limit !== RESERVED_LIMIT ? scheduleIn(item, names) : undefined;
}

/** Returns a limit; one with incomplete parameters counts as absent, and starts from its config. */
function limitAt(
  item: Item,
  names: LimitAttributes,
  capacityMilli: number,
  periodMs: number,
  refilledAtMs: number,
  shape: BucketShape,
): StoredLimit | undefined {
  if (valueAt(item, names.refill) === 0) {
    return periodLimitAt(item, names, capacityMilli, refilledAtMs);
  }
  const tokensMilli = integerAt(item, names.tokens, -MILLI_MAX, MILLI_MAX);
  const refillMilli = integerAt(item, names.refill, 1, TOKENS_MILLI_MAX);
  if (tokensMilli === undefined || refillMilli === undefined) return undefined;
  const stored = valueAt(item, names.remainder);
  const remainder = stored === undefined ? 0 : stored;
  // Writes compare the remainder with the one that was read: an invalid one never matches.
  if (!isIntegerIn(remainder, 0, MILLI_MAX)) return undefined;
  return {
    tokensMilli,
    rate: rateWith({ capacityMilli, refillMilli, periodMs }, scheduleOf(item, names, shape)),
    totalConsumedMilli: totalAt(item, names),
    remainder,
  };
}
