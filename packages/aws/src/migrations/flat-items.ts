/**
 * To 0.7.0: attributes lie in the item itself, and all limits of a bucket in one item.
 *
 * Earlier, most records kept their attributes in a map called `data`, and each limit of a bucket
 * was an item with a refill time of its own.
 */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { accruedMilli, type Rate } from "@zae-limiter/limiter/core/bucket.ts";
import { isPlainObject } from "@zae-limiter/limiter/domain/check.ts";
import { numberAt, valueAt } from "@zae-limiter/limiter/records/fields.ts";
import { type Item, keyOf, type Value } from "@zae-limiter/limiter/storage/item.ts";
import { ITEM_ABSENT, type Write } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Migration, MigrationTable, Rule } from "./migration.ts";
import { asRead, isOurs, type OldBucket, oldBucket, partitionOf, removal } from "./old-keys.ts";

const DATA = "data";

/** One limit of a bucket, as an item. */
interface LimitItem {
  readonly tokensMilli: number;
  readonly refilledAtMs: number;
  readonly rate: Rate;
  readonly attributes: Readonly<Record<string, Value>>;
}

const limitsOfBuckets: Rule = {
  name: "limits of buckets",
  concerns: (item) => oldBucket(item)?.limit !== undefined,
  writes: async (item, table) => {
    const limit = limitIn(flat(item), oldBucket(item)?.limit ?? "");
    // A limit without parameters limits nothing: the next acquire creates a new one.
    const moved = limit === undefined ? [] : await intoBucket(item, limit, table);
    return [...moved, removal(item)];
  },
};

const nestedAttributes: Rule = {
  name: "nested attributes",
  concerns: (item) => isOurs(partitionOf(item.PK)) && isNested(item),
  writes: (item) => [
    {
      update: keyOf(item),
      change: { setIfAbsent: attributesIn(item), remove: [DATA] },
      condition: [{ is: "exists", name: DATA }],
    },
  ],
};

export const toFlatItems: Migration = {
  version: "0.7.0",
  description: "attributes in the item itself, all limits of a bucket in one item",
  rules: [limitsOfBuckets, nestedAttributes],
};

async function intoBucket(
  item: Item,
  limit: LimitItem,
  { store }: MigrationTable,
): Promise<Write[]> {
  const { entityId, resource, limit: name } = oldBucket(item) as OldBucket;
  const { namespaceId } = partitionOf(item.PK);
  const key = { PK: item.PK, SK: `#BUCKET#${resource}` };
  const bucket = await store.get(key, { consistent: true });
  const ttl = numberAt(item, "ttl");
  if (bucket === undefined) {
    const put: Item = {
      ...key,
      entity_id: entityId,
      resource,
      rf: limit.refilledAtMs,
      ...limit.attributes,
      GSI2PK: `${namespaceId === undefined ? "" : `${namespaceId}/`}RESOURCE#${resource}`,
      GSI2SK: `BUCKET#${entityId}`,
      ...defined({ ttl }),
    };
    return [{ put, condition: [ITEM_ABSENT] }];
  }
  const balance = `b_${name}_tk`;
  if (valueAt(bucket, balance) !== undefined) return [];
  const refilledAtMs = numberAt(bucket, "rf") ?? 0;
  const kept = numberAt(bucket, "ttl");
  return [
    {
      update: key,
      change: {
        set: {
          ...limit.attributes,
          [balance]: tokensAt(limit, refilledAtMs),
          ...(ttl === undefined || kept === undefined ? {} : { ttl: Math.max(ttl, kept) }),
        },
        // A bucket without a time to live keeps none.
        ...(ttl === undefined && kept !== undefined ? { remove: ["ttl"] } : {}),
      },
      condition: asRead(bucket),
    },
  ];
}

/** Returns the balance at the time that all limits of a bucket share, rounded down. */
function tokensAt({ tokensMilli, refilledAtMs, rate }: LimitItem, atMs: number): number {
  const tokens = tokensMilli + accruedMilli(rate, atMs - refilledAtMs, 0);
  return Math.min(Math.max(tokensMilli, rate.capacityMilli), tokens);
}

function limitIn(item: Item, name: string): LimitItem | undefined {
  const tokensMilli = numberAt(item, "tokens_milli");
  const refilledAtMs = numberAt(item, "last_refill_ms");
  const capacityMilli = numberAt(item, "capacity_milli") ?? 0;
  const refillMilli = numberAt(item, "refill_amount_milli") ?? 0;
  const periodMs = numberAt(item, "refill_period_ms") ?? 0;
  if (tokensMilli === undefined || refilledAtMs === undefined) return undefined;
  if (capacityMilli <= 0 || refillMilli <= 0 || periodMs <= 0) return undefined;
  const burstMilli = numberAt(item, "burst_milli") ?? capacityMilli;
  return {
    tokensMilli,
    refilledAtMs,
    rate: { capacityMilli: Math.max(burstMilli, capacityMilli), refillMilli, periodMs },
    attributes: {
      [`b_${name}_tk`]: tokensMilli,
      [`b_${name}_cp`]: capacityMilli,
      [`b_${name}_bx`]: burstMilli,
      [`b_${name}_ra`]: refillMilli,
      [`b_${name}_rp`]: periodMs,
      [`b_${name}_tc`]: valueAt(item, "total_consumed_milli") ?? 0,
    },
  };
}

export function flat(item: Item): Item {
  return isNested(item) ? { ...attributesIn(item), ...item } : item;
}

function isNested(item: Item): boolean {
  return isPlainObject(valueAt(item, DATA));
}

function attributesIn(item: Item): Record<string, Value> {
  const { PK, SK, ...attributes } = valueAt(item, DATA) as Record<string, Value>;
  return attributes as Record<string, Value>;
}
