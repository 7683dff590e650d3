/** No ghosts, and no more shards than there may be. */

import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { Landing } from "@zae-limiter/testing/table/call.ts";
import { isBucket, type ShardImage } from "./bucket-image.ts";
import { type BucketLanding, shardsMadeBy } from "./ledger.ts";
import { isStub } from "./merged-shard.ts";
import { Violation } from "./violation.ts";

const SHARDS_MAX = 64;
const SPLIT_PAUSE_MS = 1000;

/** Attributes that every bucket has: its keys in the indexes, its entity and its resource. */
const REQUIRED = [
  ...["GSI2PK", "GSI2SK", "GSI3PK", "GSI3SK", "GSI4PK", "GSI4SK"],
  ...["entity_id", "resource", "rf", "cascade", "shard_count"],
];
const LIMIT_SUFFIXES = ["tk", "cp", "ra", "rp", "tc"];

export class Shape {
  readonly #splitAtMs = new Map<string, number>();
  readonly #toleranceMs: number;
  readonly #counts = new Map<string, number>();
  /** Number of shards that each shard of a bucket counts. */
  readonly #shards = new Map<string, Map<number, number>>();
  /** The most shards that any bucket has had. */
  shardsMax = 1;
  /** Number of splits. A split by more than two counts as several splits by two. */
  splits = 0;
  merges = 0;

  /** `toleranceMs`: by how much the clocks of the processes differ. */
  constructor(toleranceMs: number) {
    this.#toleranceMs = toleranceMs;
  }

  shardsOf(bucket: string): number {
    return this.#counts.get(bucket) ?? 1;
  }

  landed(landings: readonly Landing[], parsed: readonly BucketLanding[]): void {
    for (const { key, after } of landings)
      if (after !== undefined && isBucket(key) && !isStub(after)) refuseGhost(after);
    for (const landing of parsed) {
      const { before, after, merged } = landing;
      if (after === undefined) this.#forget(before);
      else if (merged === undefined) this.#follow(landing, after, parsed);
      else this.#merged(after, merged.image);
    }
  }

  #merged(after: ShardImage, gone: ShardImage): void {
    refuseOddCount(after);
    this.merges += 1;
    const shards = this.#shardsIn(after.bucket);
    shards.set(after.shard, after.count);
    shards.delete(gone.shard);
    if (after.shard !== 0) return;
    this.#counts.set(after.bucket, after.count);
    this.#splitAtMs.delete(after.bucket);
    // Clients go by the first shard: what it does not count must be gone.
    for (const [shard, count] of shards) {
      if (count <= after.count || !isBorn(shard, shards)) continue;
      const detail = `counts ${count} shards, and the first one ${after.count}`;
      throw new Violation("shards", `${after.bucket} ${shard}`, detail);
    }
  }

  #shardsIn(bucket: string): Map<number, number> {
    const shards = this.#shards.get(bucket) ?? new Map<number, number>();
    this.#shards.set(bucket, shards);
    return shards;
  }

  /** Removes a bucket. The one that comes in its place is another, which may split at once. */
  #forget(before: ShardImage | undefined): void {
    if (before !== undefined) this.#shards.get(before.bucket)?.delete(before.shard);
    if (before?.shard !== 0) return;
    this.#shards.delete(before.bucket);
    this.#splitAtMs.delete(before.bucket);
    this.#counts.delete(before.bucket);
  }

  #follow(
    { before, plannedMs }: BucketLanding,
    after: ShardImage,
    all: readonly BucketLanding[],
  ): void {
    refuseOddCount(after);
    this.shardsMax = Math.max(this.shardsMax, after.count);
    this.#shardsIn(after.bucket).set(after.shard, after.count);
    if (before === undefined || before.count === after.count) return;
    const factor = after.count / before.count;
    const made = shardsMadeBy({ before, after }, all).length;
    // Another library doubles without making the shard: this one makes all it announces.
    if (factor < 2 || (factor > 2 && made !== factor - 1)) {
      const detail = `from ${before.count} to ${after.count} at once, and ${made} were made`;
      throw new Violation("shards", after.id, detail);
    }
    this.splits += factor - 1;
    if (after.shard === 0) this.#noteSplit(after, plannedMs);
  }

  #noteSplit({ bucket, count }: ShardImage, plannedMs: number): void {
    this.#counts.set(bucket, count);
    const last = this.#splitAtMs.get(bucket) ?? Number.NEGATIVE_INFINITY;
    this.#splitAtMs.set(bucket, plannedMs);
    if (plannedMs - last >= SPLIT_PAUSE_MS - this.#toleranceMs) return;
    throw new Violation("shards", bucket, `split twice within ${plannedMs - last} ms`);
  }
}

/** Whether a shard counts: its origin was split, and was not merged with it since. */
function isBorn(shard: number, counts: ReadonlyMap<number, number>): boolean {
  if (shard === 0) return true;
  const before = 2 ** Math.floor(Math.log2(shard));
  return (counts.get(shard - before) ?? 0) > before && isBorn(shard - before, counts);
}

function refuseOddCount({ id, shard, count }: ShardImage): void {
  if (count > SHARDS_MAX || !isPowerOfTwo(count)) {
    throw new Violation("shards", id, `it says that there are ${count}`);
  }
  if (shard >= count) throw new Violation("shards", id, `it is beyond the ${count} that there are`);
}

/** Refuses a partial item, as an update of a deleted one leaves behind. */
export function refuseGhost(item: Item): void {
  const missing = REQUIRED.filter((name) => item[name] === undefined);
  for (const attribute in item) {
    const name = /^b_(.+)_tk$/.exec(attribute)?.[1];
    if (name === undefined) continue;
    for (const suffix of LIMIT_SUFFIXES) {
      if (item[`b_${name}_${suffix}`] === undefined) missing.push(`b_${name}_${suffix}`);
    }
  }
  if (missing.length > 0) throw new Violation("ghosts", item.PK, `it has no ${missing.join(", ")}`);
}

function isPowerOfTwo(count: number): boolean {
  return Number.isInteger(Math.log2(count));
}
