/** Finds the buckets that a batch of changes has written to. Pure. */

import { type BucketPlace, parseBucketKey, STATE_SK } from "@zae-limiter/limiter/records/keys.ts";
import { type Item, textAt, valueAt } from "@zae-limiter/limiter/storage/item.ts";
import { consumptionOf } from "./consumption.ts";
import { type Milli, plus } from "./milli.ts";
import type { StreamChange } from "./stream-change.ts";

/** One item of a bucket. */
export interface BucketActivity {
  readonly name: BucketPlace;
  /** The item after its last change. */
  readonly item: Item;
  /** The record to blame when something about this bucket fails. */
  readonly lastId: string;
  /** Net consumption, by limit. */
  readonly consumedMilli: ReadonlyMap<string, Milli>;
  /** The most that one write consumed, by limit. */
  readonly largestMilli: ReadonlyMap<string, number>;
  /** How many writes there were, by the second they happened in. */
  readonly writesAtMs: ReadonlyMap<number, number>;
  /** Whether the number of shards has grown. */
  readonly grew: boolean;
}

const SECOND_MS = 1000;

export function bucketActivity(changes: Iterable<StreamChange>): BucketActivity[] {
  const found = new Map<string, Collected | undefined>();
  for (const change of changes) {
    const { PK, SK } = change.key;
    if (SK !== STATE_SK) continue;
    if (change.after === undefined || valueAt(change.after, "rf") === undefined) {
      // A bucket that is gone or was merged needs nothing; if it comes back, it starts over.
      found.delete(PK);
      continue;
    }
    const known = found.get(PK);
    const name = known?.name ?? parseBucketKey(PK);
    if (name === undefined || textAt(change.after, "entity_id") === undefined) continue;
    found.set(PK, collect(known, name, change, change.after));
  }
  return [...found.values()].flatMap((activity) => activity ?? []);
}

interface Collected extends BucketActivity {
  readonly consumedMilli: Map<string, Milli>;
  readonly largestMilli: Map<string, number>;
  readonly writesAtMs: Map<number, number>;
}

function collect(
  known: Collected | undefined,
  name: BucketPlace,
  change: StreamChange,
  item: Item,
): Collected {
  const consumedMilli = known?.consumedMilli ?? new Map<string, Milli>();
  const largestMilli = known?.largestMilli ?? new Map<string, number>();
  for (const [limit, milli] of consumptionOf(change)?.amountsMilli ?? []) {
    consumedMilli.set(limit, plus(consumedMilli.get(limit) ?? 0, milli));
    largestMilli.set(limit, Math.max(largestMilli.get(limit) ?? 0, Number(milli)));
  }
  const writesAtMs = known?.writesAtMs ?? new Map<number, number>();
  const atMs = Math.floor(change.atMs / SECOND_MS) * SECOND_MS;
  writesAtMs.set(atMs, (writesAtMs.get(atMs) ?? 0) + 1);
  const grew = known?.grew === true || shardCount(item) > shardCount(change.before);
  return { name, item, lastId: change.id, consumedMilli, largestMilli, writesAtMs, grew };
}

function shardCount(item: Item | undefined): number {
  const count = item?.shard_count;
  if (item === undefined) return Number.POSITIVE_INFINITY;
  return Number.isSafeInteger(count) ? (count as number) : 1;
}
