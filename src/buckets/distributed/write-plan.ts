/** Collects one UpdateItem: what it changes and under which conditions. */

import { invariant } from "../../domain/check.ts";
import type { Value } from "../../storage/item.ts";
import type { Change, Condition, Test } from "../../storage/item-store.ts";

import { accruedUp, type BalanceAt, isEven } from "./balance-at.ts";
import { REBASES, type SeenBucket } from "./seen-bucket.ts";

/**
 * Passes when there is no item, or a stub that a merge or the Python library left behind: every
 * bucket has a base time.
 */
export const NO_BUCKET: Test = { is: "absent", name: "rf" };

/** Passes when there is a bucket. */
export const BUCKET_EXISTS: Test = { is: "exists", name: "rf" };

export class WritePlan {
  readonly #set: Record<string, Value> = {};
  readonly #add: Record<string, number> = {};
  readonly #remove: string[] = [];
  readonly #tests: Test[] = [];

  set(name: string, value: Value): void {
    this.#set[name] = value;
  }

  add(name: string, amount: number): void {
    invariant(this.#add[name] === undefined, "a write adds to an attribute once");
    invariant(Number.isSafeInteger(amount), "a write adds safe integers");
    if (amount !== 0) this.#add[name] = amount;
  }

  remove(...names: string[]): void {
    this.#remove.push(...names);
  }

  /** Requires at least `value`. Balances are safe integers, so a bound beyond them is left out. */
  atLeast(name: string, value: number): void {
    if (value > -Number.MAX_SAFE_INTEGER) this.#tests.push({ is: ">=", name, value });
  }

  /** Nothing above `value`. */
  atMost(name: string, value: number): void {
    if (value < Number.MAX_SAFE_INTEGER) this.#tests.push({ is: "<=", name, value });
  }

  /** There is enough of the limit. */
  requireEnough(limitName: string, balance: BalanceAt, amount: number): void {
    const { stored, accruedMilli, accruedMin } = balance;
    const loose = stored.tokensMilli >= amount - accruedMin;
    this.atLeast(`b_${limitName}_tk`, amount - (loose ? accruedMin : accruedMilli));
    if (!loose) this.requireRemainder(limitName, balance);
  }

  /** The limit is not beyond `capacityMilli`. */
  requireLow(limitName: string, balance: BalanceAt, capacityMilli: number): void {
    const { stored, accruedMax } = balance;
    const up = accruedUp(balance);
    // What looks beyond it is a guess, and the exact remainder would not make it better.
    const { tokensMilli } = stored;
    const loose = tokensMilli <= capacityMilli - accruedMax || tokensMilli > capacityMilli - up;
    this.atMost(`b_${limitName}_tk`, capacityMilli - (loose && !isEven(balance) ? accruedMax : up));
    if (!loose) this.requireRemainder(limitName, balance);
  }

  /** The limit has `capacityMilli` or more. */
  requireFull(limitName: string, balance: BalanceAt, capacityMilli: number): void {
    const { stored, accruedMilli, accruedMin } = balance;
    const loose = stored.tokensMilli >= capacityMilli - accruedMin;
    this.atLeast(`b_${limitName}_tk`, capacityMilli - (loose ? accruedMin : accruedMilli));
    if (!loose) this.requireRemainder(limitName, balance);
  }

  /** The remainder is the one that was seen. */
  requireRemainder(limitName: string, balance: BalanceAt): void {
    if (isEven(balance)) return;
    const { remainder } = balance.stored;
    const name = `b_${limitName}_rr`;
    const test: Test = { is: "=", name, value: remainder, orAbsent: remainder === 0 };
    if (!this.#tests.some((other) => other.name === name)) this.#tests.push(test);
  }

  /** 0 is not stored. Others may have set one meanwhile, unless it never changes. */
  setRemainder(limitName: string, balance: BalanceAt, remainder: number): void {
    const name = `b_${limitName}_rr`;
    if (remainder > 0) this.set(name, remainder);
    else if (!isEven(balance)) this.remove(name);
  }

  require(...tests: Test[]): void {
    this.#tests.push(...tests);
  }

  /**
   * The item is the one that was seen: same epoch, same limits, same number of shards. Balances
   * are not compared, so concurrent takes do not disturb each other.
   */
  requireSeen(bucket: SeenBucket, nowMs: number): void {
    const { refilledAtMs, rebases, configVersion, ttl } = bucket;
    const shardCount = bucket.announced ?? bucket.shardCount;
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
export function asSeen(name: string, value: number): Test {
  return value === 0 ? { is: "absent", name } : { is: "=", name, value };
}
