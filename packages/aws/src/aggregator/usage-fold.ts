/**
 * From changes to snapshots: pure, and the only place where consumption is added up.
 *
 * Everything that one batch adds to one snapshot becomes one tally, and so one write. Changes are
 * first gathered by bucket and hour, because every larger window is made of whole hours.
 */

import { entryOf } from "@zae-limiter/limiter/base/entry.ts";
import { type WindowType, windowStartMs } from "@zae-limiter/limiter/core/windows.ts";
import { parseBucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { UsageSubject } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { type Consumption, consumptionOf } from "./consumption.ts";
import type { StreamChange } from "./stream-change.ts";

/** A part of a tally: what one shard of the bucket consumed, in order. */
export interface ShardTally {
  readonly shard: number;
  readonly entries: readonly Consumption[];
}

/** The consumption that a batch adds to one snapshot. */
export interface SnapshotTally {
  readonly subject: UsageSubject;
  readonly type: WindowType;
  readonly startMs: number;
  readonly shards: readonly ShardTally[];
}

interface UsageFold {
  readonly tallies: readonly SnapshotTally[];
  /** Changes that look like a bucket's, but whose key is none. */
  readonly malformed: readonly StreamChange[];
}

interface Bucket {
  readonly subject: UsageSubject;
  /** Consumptions by the hour, then by the shard. */
  readonly hours: Map<number, Map<number, Consumption[]>>;
}

/** One item's place in the fold. */
interface Place {
  readonly bucket: Bucket;
  readonly shard: number;
}

const HOUR_MS = 3_600_000;

export function foldUsage(
  changes: Iterable<StreamChange>,
  windows: readonly WindowType[],
): UsageFold {
  const places = new Map<string, Place | undefined>();
  const buckets = new Map<string, Bucket>();
  const malformed: StreamChange[] = [];
  for (const change of changes) {
    const consumption = consumptionOf(change);
    if (consumption === undefined) continue;
    const { PK } = change.key;
    let place = places.get(PK);
    if (place === undefined) {
      place = placeOf(PK, buckets);
      if (place !== undefined) places.set(PK, place);
    }
    if (place === undefined) malformed.push(change);
    else gather(place, consumption);
  }
  const calendar = new Calendar(windows);
  const tallies = [...buckets.values()].flatMap((bucket) => talliesOf(bucket, calendar));
  return { tallies, malformed };
}

function placeOf(partition: string, buckets: Map<string, Bucket>): Place | undefined {
  const name = parseBucketKey(partition);
  if (name === undefined) return undefined;
  const { shard, ...subject } = name;
  const id = partition.slice(0, partition.lastIndexOf("#"));
  return { bucket: entryOf(buckets, id, () => ({ subject, hours: new Map() })), shard };
}

function gather({ bucket, shard }: Place, consumption: Consumption): void {
  const hour = Math.floor(consumption.atMs / HOUR_MS);
  const shards = entryOf(bucket.hours, hour, () => new Map());
  entryOf(shards, shard, () => []).push(consumption);
}

/** Returns the tallies; nearly always all changes of a bucket are of one hour, already gathered. */
function talliesOf({ subject, hours }: Bucket, calendar: Calendar): SnapshotTally[] {
  const tallies: SnapshotTally[] = [];
  const [only] = hours.size === 1 ? hours : [];
  const gathered = only === undefined ? undefined : mergedShards([only[1]]);
  calendar.windows.forEach((type, at) => {
    if (only !== undefined && gathered !== undefined) {
      const startMs = calendar.startsOf(only[0])[at] as number;
      tallies.push({ subject, type, startMs, shards: gathered });
      return;
    }
    const byStart = new Map<number, Map<number, Consumption[]>[]>();
    for (const [hour, shards] of hours) {
      const startMs = calendar.startsOf(hour)[at] as number;
      byStart.set(startMs, [...(byStart.get(startMs) ?? []), shards]);
    }
    for (const [startMs, parts] of byStart) {
      tallies.push({ subject, type, startMs, shards: mergedShards(parts) });
    }
  });
  return tallies;
}

/** The windows that an hour belongs to, computed once for all buckets. */
class Calendar {
  readonly windows: readonly WindowType[];
  readonly #starts = new Map<number, readonly number[]>();

  constructor(windows: readonly WindowType[]) {
    this.windows = windows;
  }

  startsOf(hour: number): readonly number[] {
    return entryOf(this.#starts, hour, () =>
      this.windows.map((type) => windowStartMs(type, hour * HOUR_MS)),
    );
  }
}

function mergedShards(parts: readonly Map<number, Consumption[]>[]): ShardTally[] {
  const [first, ...others] = parts;
  if (first !== undefined && others.length === 0) {
    return Array.from(first, ([shard, entries]) => ({ shard, entries: inOrder(entries) }));
  }
  const shards = new Set(parts.flatMap((part) => [...part.keys()]));
  return [...shards].map((shard) => ({
    shard,
    entries: inOrder(parts.flatMap((part) => part.get(shard) ?? [])),
  }));
}

/** Returns each change once, in order. A stream delivers in order, so sorting is rare. */
function inOrder(entries: readonly Consumption[]): readonly Consumption[] {
  const follows = (entry: Consumption, at: number) =>
    at === 0 || (entries[at - 1] as Consumption).order < entry.order;
  if (entries.every(follows)) return entries;
  const sorted = entries.toSorted((left, right) => (left.order < right.order ? -1 : 1));
  return sorted.filter((entry, at) => entry.order !== sorted[at - 1]?.order);
}
