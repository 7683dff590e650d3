/** No ghosts, and no more shards than there may be. */

import type { Item } from "../../storage/item.ts";
import type { Landing } from "../table/call.ts";
import { isBucket, type ShardImage } from "./bucket-image.ts";
import type { BucketLanding } from "./ledger.ts";
import { Violation } from "./violation.ts";

const SHARDS_MAX = 64;
const SPLIT_PAUSE_MS = 1000;

/** What every bucket has: its keys in the indexes, and what it is the bucket of. */
const REQUIRED = [
  ...["GSI2PK", "GSI2SK", "GSI3PK", "GSI3SK", "GSI4PK", "GSI4SK"],
  ...["entity_id", "resource", "rf", "cascade", "shard_count"],
];
const LIMIT_SUFFIXES = ["tk", "cp", "ra", "rp", "tc"];

export class Shape {
  readonly #splitAtMs = new Map<string, number>();
  readonly #toleranceMs: number;
  readonly #counts = new Map<string, number>();
  /** The most shards that any bucket has had. */
  shardsMax = 1;
  splits = 0;

  /** `toleranceMs`: by how much the clocks of the processes differ. */
  constructor(toleranceMs: number) {
    this.#toleranceMs = toleranceMs;
  }

  /** How many shards a bucket has. */
  shardsOf(bucket: string): number {
    return this.#counts.get(bucket) ?? 1;
  }

  landed(landings: readonly Landing[], parsed: readonly BucketLanding[]): void {
    for (const { key, after } of landings)
      if (after !== undefined && isBucket(key)) refuseGhost(after);
    for (const { before, after, plannedMs } of parsed) {
      if (after === undefined) this.#forget(before);
      else this.#follow(before, after, plannedMs);
    }
  }

  /** Whatever comes in its place is another bucket, which may split at once. */
  #forget(before: ShardImage | undefined): void {
    if (before?.shard !== 0) return;
    this.#splitAtMs.delete(before.bucket);
    this.#counts.delete(before.bucket);
  }

  #follow(before: ShardImage | undefined, after: ShardImage, plannedMs: number): void {
    refuseOddCount(after);
    this.shardsMax = Math.max(this.shardsMax, after.count);
    if (before === undefined || before.count === after.count) return;
    if (after.count !== 2 * before.count) {
      const detail = `from ${before.count} to ${after.count} at once`;
      throw new Violation("shards", after.id, detail);
    }
    this.splits += 1;
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
