/**
 * A bucket as it is stored: one item per entity, resource and shard, with all its limits.
 *
 * Per limit `b_{name}_tk|cp|ra|rp|tc`: balance, capacity, refill amount, refill period and what was
 * consumed in total, in milli-tokens and milliseconds. `rf` is the time the balances refer to.
 * Ours, and ignored by the Python library: `b_{name}_rr`, the remainder of the last refill,
 * `cv`/`cs`, version and source of the config the parameters came from, `ac`, how many acquires
 * consumed something, and `wm`, the meter of writes to the item.
 */

import type { Rate } from "../core/bucket.ts";
import { RESERVED_LIMIT } from "../domain/names.ts";
import type { Item, Value } from "../storage/item.ts";
import { flagAt, numberAt, textAt, valueAt } from "./fields.ts";
import {
  BUCKET_PREFIX,
  bucketKey,
  entityPartition,
  inNamespace,
  resourcePartition,
} from "./keys.ts";

/** One limit of a bucket. */
export interface StoredLimit {
  readonly tokensMilli: number;
  readonly rate: Rate;
  /** May exceed what a number holds. `undefined` in items that never counted. */
  readonly totalConsumedMilli: number | bigint | undefined;
  readonly remainder: number;
}

/** One shard of a bucket. */
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
}

/** What one item takes per second: the most that DynamoDB lets one partition take. */
export const WRITES_RATE: Rate = {
  capacityMilli: 1_000_000,
  refillMilli: 1_000_000,
  periodMs: 1000,
};

/** How many acquires took something; ours, for those who count usage. Other writers leave it. */
export const ACQUIRES = "ac";

const BALANCE_PATTERN = /^b_(.+)_tk$/;

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
    ...limitAttributes(bucket),
  };
}

/** The bucket in an item; `undefined` when the item is none, such as a stub without its keys. */
export function decodeBucket(item: Item): StoredBucket | undefined {
  const entityId = textAt(item, "entity_id");
  const resource = textAt(item, "resource");
  const refilledAtMs = numberAt(item, "rf");
  if (entityId === undefined || resource === undefined || refilledAtMs === undefined) {
    return undefined;
  }
  const limits = new Map<string, StoredLimit>();
  for (const attribute of Object.keys(item)) {
    const names = attributesOf(attribute);
    const limit = names === undefined ? undefined : limitAt(item, names);
    if (names !== undefined && limit !== undefined) limits.set(names.limit, limit);
  }
  const writes = limits.get(RESERVED_LIMIT);
  limits.delete(RESERVED_LIMIT);
  return {
    entityId,
    resource,
    shard: Number(item.PK.slice(item.PK.lastIndexOf("#") + 1)),
    shardCount: numberAt(item, "shard_count") ?? 1,
    refilledAtMs,
    cascade: flagAt(item, "cascade"),
    parentId: textAt(item, "parent_id"),
    ttl: numberAt(item, "ttl"),
    configVersion: numberAt(item, "cv") ?? 0,
    configSource: textAt(item, "cs"),
    limits,
    writes,
    meterMs: numberAt(item, "wm"),
  };
}

function limitAttributes(bucket: StoredBucket): Record<string, Value> {
  const attributes: Record<string, Value> = {};
  const all = new Map(bucket.limits);
  if (bucket.writes !== undefined) all.set(RESERVED_LIMIT, bucket.writes);
  for (const [name, limit] of all) {
    attributes[`b_${name}_tk`] = limit.tokensMilli;
    attributes[`b_${name}_cp`] = limit.rate.capacityMilli;
    attributes[`b_${name}_ra`] = limit.rate.refillMilli;
    attributes[`b_${name}_rp`] = limit.rate.periodMs;
    attributes[`b_${name}_tc`] = limit.totalConsumedMilli ?? 0;
    if (limit.remainder !== 0) attributes[`b_${name}_rr`] = limit.remainder;
  }
  return attributes;
}

/** The attributes of one limit. */
interface LimitAttributes {
  readonly limit: string;
  readonly tokens: string;
  readonly capacity: string;
  readonly refill: string;
  readonly period: string;
  readonly consumed: string;
  readonly remainder: string;
}

/** By the name of the balance; every answer of the store has the same few. */
const knownAttributes = new Map<string, LimitAttributes>();
const KNOWN_MAX = 1000;

/** Nothing for an attribute that is no balance. */
function attributesOf(balance: string): LimitAttributes | undefined {
  if (!balance.startsWith("b_") || !balance.endsWith("_tk")) return undefined;
  const known = knownAttributes.get(balance);
  if (known !== undefined) return known;
  const limit = BALANCE_PATTERN.exec(balance)?.[1];
  if (limit === undefined) return undefined;
  const names: LimitAttributes = {
    limit,
    tokens: balance,
    capacity: `b_${limit}_cp`,
    refill: `b_${limit}_ra`,
    period: `b_${limit}_rp`,
    consumed: `b_${limit}_tc`,
    remainder: `b_${limit}_rr`,
  };
  if (knownAttributes.size >= KNOWN_MAX) knownAttributes.clear();
  knownAttributes.set(balance, names);
  return names;
}

/** A limit whose parameters are incomplete is as good as absent: it starts anew with its config. */
function limitAt(item: Item, names: LimitAttributes): StoredLimit | undefined {
  const tokensMilli = numberAt(item, names.tokens);
  const capacityMilli = numberAt(item, names.capacity) ?? 0;
  const refillMilli = numberAt(item, names.refill) ?? 0;
  const periodMs = numberAt(item, names.period) ?? 0;
  if (tokensMilli === undefined || capacityMilli <= 0 || refillMilli <= 0 || periodMs <= 0) {
    return undefined;
  }
  const consumed = valueAt(item, names.consumed);
  const remainder = numberAt(item, names.remainder) ?? 0;
  return {
    tokensMilli,
    rate: { capacityMilli, refillMilli, periodMs },
    totalConsumedMilli:
      typeof consumed === "number" || typeof consumed === "bigint" ? consumed : undefined,
    remainder,
  };
}
