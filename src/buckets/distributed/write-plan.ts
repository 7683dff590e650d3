/** Collects one UpdateItem: what it changes and under which conditions. */

import type { Value } from "../../storage/item.ts";
import type { Change, Condition, Test } from "../../storage/item-store.ts";

import { REBASES, type SeenBucket } from "./image.ts";

export class WritePlan {
  readonly #set: Record<string, Value> = {};
  readonly #add: Record<string, number> = {};
  readonly #remove: string[] = [];
  readonly #tests: Test[] = [];

  set(name: string, value: Value): void {
    this.#set[name] = value;
  }

  add(name: string, amount: number): void {
    if (amount !== 0) this.#add[name] = amount;
  }

  remove(...names: string[]): void {
    this.#remove.push(...names);
  }

  /** Nothing below `value`. No balance is beyond the safe integers, so a bound there says nothing. */
  atLeast(name: string, value: number): void {
    if (value > -Number.MAX_SAFE_INTEGER) this.#tests.push({ is: ">=", name, value });
  }

  /** Nothing above `value`. */
  atMost(name: string, value: number): void {
    if (value < Number.MAX_SAFE_INTEGER) this.#tests.push({ is: "<=", name, value });
  }

  require(...tests: Test[]): void {
    this.#tests.push(...tests);
  }

  /**
   * The item is the one that was seen: same epoch, same limits, same number of shards. Balances
   * are not compared, so concurrent takes do not disturb each other.
   */
  requireSeen(bucket: SeenBucket, nowMs: number): void {
    const { refilledAtMs, rebases, configVersion, shardCount, ttl } = bucket;
    const nowSeconds = Math.floor(nowMs / 1000);
    this.require(
      { is: "=", name: "rf", value: refilledAtMs },
      asSeen(REBASES, rebases),
      asSeen("cv", configVersion),
      { is: "=", name: "shard_count", value: shardCount, orAbsent: shardCount === 1 },
      ttl !== undefined && ttl <= nowSeconds
        ? { is: "=", name: "ttl", value: ttl }
        : { is: ">", name: "ttl", value: nowSeconds, orAbsent: true },
    );
  }

  get isEmpty(): boolean {
    return (
      this.#remove.length === 0 &&
      Object.keys(this.#set).length === 0 &&
      Object.keys(this.#add).length === 0
    );
  }

  get change(): Change {
    return { set: this.#set, add: this.#add, remove: this.#remove };
  }

  get condition(): Condition {
    return this.#tests;
  }
}

/** 0 is not stored. */
function asSeen(name: string, value: number): Test {
  return value === 0 ? { is: "absent", name } : { is: "=", name, value };
}
