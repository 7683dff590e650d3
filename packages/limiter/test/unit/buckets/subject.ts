/** The stores under test, and what they really hold: read past them, from what is stored. */

import type { BucketStore } from "@zae-limiter/limiter/buckets/bucket-store.ts";
import { DistributedBucketStore } from "@zae-limiter/limiter/buckets/distributed/distributed-bucket-store.ts";
import { SHARDS_MAX } from "@zae-limiter/limiter/buckets/distributed/shards/shards.ts";
import { DYNAMODB_TRAITS } from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { EmbeddedBucketStore } from "@zae-limiter/limiter/buckets/embedded/embedded-bucket-store.ts";
import { MemoryBucketTable } from "@zae-limiter/limiter/buckets/embedded/memory-table.ts";
import { UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { shareOf } from "@zae-limiter/limiter/core/bucket.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { lehmer } from "@zae-limiter/test-support/lehmer.ts";
import { busyTimer } from "@zae-limiter/test-support/table.ts";
import { bucketWith, limitsIn } from "./embedded/bucket-of.ts";
import { type Fraction, fraction, plus, smaller, ZERO } from "./fraction.ts";

export const ENTITY = "entity";
export const RESOURCE = "resource";
const NAMESPACE = "ns";

/** The stored state of a limit. */
export interface Held {
  /** Not cut at the capacity. */
  readonly level: Fraction;
  readonly capacityMilli: number;
  readonly consumed: bigint;
}

export interface Subject {
  readonly clients: readonly BucketStore[];
  /** Only reads, and has its own cached states. */
  readonly observer: BucketStore;
  /** Returns the balances at a time; `undefined` when there is no bucket. */
  held(nowMs: number): ReadonlyMap<string, Held> | undefined;
  /** Removes expired buckets, as a store does by itself. */
  sweep(): Promise<void>;
}

export interface SubjectOptions {
  /** One per client. */
  readonly clocks: readonly (() => number)[];
  readonly clock: () => number;
  readonly ttlMultiplier: number;
}

/** Every client has its own views and its own clock. */
export function distributedSubject(options: SubjectOptions): Subject {
  const store = new MemoryItemStore({ clock: options.clock });
  const random = lehmer(1);
  const open = (clock: () => number) =>
    new DistributedBucketStore(
      { store, namespaceId: NAMESPACE, clock, random },
      {
        ...DYNAMODB_TRAITS,
        ttlMultiplier: options.ttlMultiplier,
        timeoutMs: 2000,
        timer: busyTimer(),
        onWarning: refuseWarning,
      },
    );
  const key = bucketKey(NAMESPACE, ENTITY, RESOURCE, 0);
  let swept = 0;
  return {
    clients: options.clocks.map(open),
    observer: open(options.clock),
    held: (nowMs) => {
      if (store.readNow(key) === undefined) return undefined;
      // A clock that was set back may make a shard seem saturated: then there are several.
      const shards = Array.from({ length: SHARDS_MAX }, (_, shard) =>
        store.readNow(bucketKey(NAMESPACE, ENTITY, RESOURCE, shard)),
      );
      return sumOf(
        shards.flatMap((item) => item ?? []),
        nowMs,
      );
    },
    sweep: async () => {
      // The store drops what has expired along with other writes.
      swept += 1;
      await store.put({ PK: "other", SK: `${swept}` });
    },
  };
}

/** All shards together, each up to its share. */
function sumOf(items: readonly Item[], nowMs: number): Map<string, Held> {
  if (items.length === 1) return heldIn(items[0] as Item, nowMs);
  const sums = new Map<string, Held>();
  for (const item of items) {
    const shard = Number(item.PK.slice(item.PK.lastIndexOf("#") + 1));
    for (const [name, held] of heldIn(item, nowMs)) {
      const { capacityMilli } = held;
      const share = fraction(shareOf(capacityMilli, shard, Number(item.shard_count)));
      const known = sums.get(name) ?? { level: ZERO, capacityMilli, consumed: 0n };
      sums.set(name, {
        level: plus(known.level, smaller(share, held.level)),
        capacityMilli,
        consumed: known.consumed + held.consumed,
      });
    }
  }
  return sums;
}

/** One writer. */
export function embeddedSubject(options: SubjectOptions): Subject {
  const { clock, ttlMultiplier } = options;
  const table = new MemoryBucketTable({
    namespaceId: NAMESPACE,
    clock,
    countUsage: () => undefined,
    recordedLink: () => UNLINKED,
    // The model knows no bucket that a correction creates; test/contract/limiter has those.
    wasDeleted: () => true,
    items: { read: () => undefined, update: () => undefined },
    refuseClosed: () => undefined,
  });
  const store = new EmbeddedBucketStore(table, {
    clock,
    ttlMultiplier,
    onWarning: refuseWarning,
    ordinaryTable: table,
  });
  return {
    clients: [store],
    observer: store,
    held: (nowMs) => {
      const bucket = table.get(ENTITY, RESOURCE);
      // An expired bucket counts as gone, and is removed by the next call.
      if (bucket === undefined || (bucket.ttl ?? Number.POSITIVE_INFINITY) * 1000 <= nowMs) {
        return undefined;
      }
      return new Map(
        limitsIn(bucket).map(({ name, rate, level, consumedMilli }) => {
          const passed = BigInt(Math.max(0, nowMs - level.refilledAtMs));
          const parts = passed * BigInt(rate.refillMilli) + BigInt(level.remainder);
          const total = plus(fraction(level.tokensMilli), fraction(parts, rate.periodMs));
          const { capacityMilli } = rate;
          return [name, { level: total, capacityMilli, consumed: BigInt(consumedMilli) }];
        }),
      );
    },
    sweep: async () => {
      const other = bucketWith([], { version: 0, source: "system", usageHour: 0 });
      await table.step(() => table.set("other", RESOURCE, other));
    },
  };
}

/** Virtual refill of a shard, worked out from the attributes alone. */
export function heldIn(item: Item, nowMs: number): Map<string, Held> {
  const held = new Map<string, Held>();
  const shards = BigInt(item.shard_count as number);
  for (const attribute of Object.keys(item)) {
    const name = /^b_(.+)_tk$/.exec(attribute)?.[1];
    if (name === undefined || name === "wcu") continue;
    const at = (suffix: string) => BigInt((item[`b_${name}_${suffix}`] ?? 0) as number | bigint);
    const parts = BigInt(nowMs - (item.rf as number)) * at("ra") + at("rr");
    held.set(name, {
      level: plus(fraction(at("tk")), fraction(parts, at("rp") * shards)),
      capacityMilli: Number(at("cp")),
      consumed: at("tc"),
    });
  }
  return held;
}

function refuseWarning(): never {
  throw new Error("nothing fails here, so there is no warning");
}
