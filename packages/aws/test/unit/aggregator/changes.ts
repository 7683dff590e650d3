/** Changes of bucket items, made by hand. */

import { orderOf, type StreamChange } from "@zae-limiter/aws/aggregator/stream-change.ts";
import type { Item, Value } from "@zae-limiter/limiter/storage/item.ts";

export const NAMESPACE = "ns1";
export const AT = Date.parse("2024-01-01T14:35:22Z");

/** The fields of a bucket item that matter to a test; the rest is as usual. */
export interface BucketFields {
  readonly entity?: string;
  readonly resource?: string;
  readonly shard?: number;
  readonly shards?: number;
  readonly rf?: number;
  readonly acquires?: number;
  /** Consumed in total, by limit. */
  readonly tc?: Readonly<Record<string, number | bigint>>;
  /** Balances, by limit; full when not given. */
  readonly tk?: Readonly<Record<string, number>>;
  readonly more?: Readonly<Record<string, Value>>;
}

/** A bucket with limits of 100,000 tokens a minute. */
export function bucketItem(fields: BucketFields = {}): Item {
  const { entity = "user-1", resource = "gpt-4", shard = 0, tc = {}, tk = {} } = fields;
  const limits = Object.entries(tc).flatMap(([name, total]) => [
    [`b_${name}_tk`, tk[name] ?? 100_000_000],
    [`b_${name}_cp`, 100_000_000],
    [`b_${name}_ra`, 100_000_000],
    [`b_${name}_rp`, 60_000],
    [`b_${name}_tc`, total],
  ]);
  return {
    PK: `${NAMESPACE}/BUCKET#${entity}#${resource}#${shard}`,
    SK: "#STATE",
    entity_id: entity,
    resource,
    rf: fields.rf ?? AT,
    cascade: false,
    shard_count: fields.shards ?? 1,
    ...(fields.acquires === undefined ? {} : { ac: fields.acquires }),
    ...(Object.fromEntries(limits) as Record<string, Value>),
    ...fields.more,
  };
}

let next = 1000;

/** The change from one image to another. */
export function change(
  before: Item | undefined,
  after: Item | undefined,
  details: { readonly atMs?: number; readonly sequence?: number } = {},
): StreamChange {
  const { atMs = AT, sequence = next++ } = details;
  const id = String(sequence).padStart(21, "0");
  const { PK = "", SK = "" } = after ?? before ?? {};
  return { id, order: orderOf("", id), key: { PK, SK }, before, after, atMs };
}
