/** Which records are from before a deletion: those the aggregator does not count. */

import { deletedUntilMs } from "@zae-limiter/limiter/records/entities/deletion-mark.ts";
import { deletionKey } from "@zae-limiter/limiter/records/keys.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Consumption } from "./consumption.ts";
import type { ShardTally, SnapshotTally } from "./usage-fold.ts";

/** The entity of a bucket or a snapshot. */
export interface Owner {
  readonly namespaceId: string;
  readonly entityId: string;
}

/** The marks of deletions, as they were at one time. */
export class Deletions {
  /** No deletion is known. */
  static readonly NONE = new Deletions(new Map());
  readonly #untilMs: ReadonlyMap<string, number>;

  private constructor(untilMs: ReadonlyMap<string, number>) {
    this.#untilMs = untilMs;
  }

  /** Reads the marks of these entities and of their namespaces. */
  static async read(
    store: ItemStore,
    owners: Iterable<Owner>,
    options: { readonly consistent: boolean },
  ): Promise<Deletions> {
    const partitions = new Map(
      [...owners].flatMap(({ namespaceId, entityId }) =>
        [deletionKey(namespaceId), deletionKey(namespaceId, entityId)].map((key) => [key.PK, key]),
      ),
    );
    if (partitions.size === 0) return Deletions.NONE;
    const marks = await store.getMany([...partitions.values()], options);
    return new Deletions(
      new Map(
        marks.flatMap((mark) => (mark === undefined ? [] : [[mark.PK, deletedUntilMs(mark)]])),
      ),
    );
  }

  /** Whether its namespace is purged, and with it all that belongs to it. */
  isPurged(owner: Owner): boolean {
    return this.untilMs(owner) === Number.POSITIVE_INFINITY;
  }

  /** Buckets of this entity with a base time up to here are from before its deletion. */
  untilMs({ namespaceId, entityId }: Owner): number {
    return Math.max(
      this.#untilMs.get(deletionKey(namespaceId).PK) ?? Number.NEGATIVE_INFINITY,
      this.#untilMs.get(deletionKey(namespaceId, entityId).PK) ?? Number.NEGATIVE_INFINITY,
    );
  }
}

/** A tally, divided by a deletion. */
interface DividedTally {
  /** The part to count; `undefined` when that is nothing. */
  readonly kept: SnapshotTally | undefined;
  /** Shards with records from before the deletion, which are in order. */
  readonly dropped: readonly ShardTally[];
}

/** Divides a tally into what came before a deletion and what came after. */
export function dividedAt(tally: SnapshotTally, untilMs: number): DividedTally {
  const isDropped = ({ baseMs }: Consumption) => baseMs <= untilMs;
  if (!tally.shards.some(({ entries }) => entries.some(isDropped))) {
    return { kept: tally, dropped: [] };
  }
  const part = (wanted: boolean) =>
    tally.shards.flatMap(({ shard, entries }) => {
      const some = entries.filter((entry) => isDropped(entry) === wanted);
      return some.length === 0 ? [] : [{ shard, entries: some }];
    });
  const shards = part(false);
  return { kept: shards.length === 0 ? undefined : { ...tally, shards }, dropped: part(true) };
}
