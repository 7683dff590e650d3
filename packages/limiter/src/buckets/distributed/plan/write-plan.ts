/**
 * Collects one UpdateItem: what it changes and under which conditions. All plans for a bucket share
 * the change of one limit, the count of acquires, and the time to live.
 *
 * Each limit is *low* or *full*. A low one loses the amount, relative to the base time. A full one
 * is set to what is left, relative to the base time, so that the time beyond full is dropped, with
 * the remainder that makes it exact. The conditions are ranges of the stored balance, so concurrent
 * consumes commute; they hold for every remainder that another client may have set meanwhile, and
 * only a consume that comes within two milli-tokens of a bound insists on the one it has seen.
 * A plain "consume if the balance suffices" would grant twice the capacity after idling.
 */

import { hasSlots } from "../../../core/bucket.ts";
import { invariant } from "../../../domain/check.ts";
import { ACQUIRES, type StoredLimit } from "../../../records/bucket-item.ts";
import { attributesOf } from "../../../records/bucket-shape.ts";
import { freeOf } from "../../../records/slot-attributes.ts";
import type { Value } from "../../../storage/item.ts";
import type { Change, Condition, Test } from "../../../storage/item-store.ts";
import { bucketTtl, coveredMilli, type LeftOver } from "../../bucket-ttl.ts";
import { type AmountsByName, type BucketConfig, consumes } from "../../leg.ts";
import type { BucketRules } from "../table-traits.ts";
import {
  accruedUp,
  asSeen,
  type BalanceAt,
  balanceOf,
  boundedChange,
  isEven,
  isPinned,
  keptBy,
  looksFull,
  notExpired,
  REBASES,
  type SeenBucket,
  sameCount,
} from "./seen-bucket.ts";
import { planSlots } from "./slot-plan.ts";

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
  #slots: Map<string, number> | undefined;

  set(name: string, value: Value): void {
    this.#set[name] = value;
  }

  add(name: string, amount: number): void {
    invariant(this.#add[name] === undefined, "a write adds to an attribute once");
    invariant(Number.isSafeInteger(amount), "a write adds safe integers");
    if (amount !== 0) this.#add[name] = amount;
  }

  /** Removes attributes, except those that the write sets. */
  remove(...names: string[]): void {
    this.#remove.push(...names);
  }

  /** Requires at least `value`. Balances are safe integers, so a bound beyond them is left out. */
  atLeast(name: string, value: number): void {
    if (value > -Number.MAX_SAFE_INTEGER) this.#tests.push({ is: ">=", name, value });
  }

  /** Requires at most `value`. */
  atMost(name: string, value: number): void {
    if (value < Number.MAX_SAFE_INTEGER) this.#tests.push({ is: "<=", name, value });
  }

  /** Requires that there is enough of the limit. */
  requireEnough(limitName: string, balance: BalanceAt, amount: number): void {
    const { stored, accruedMilli, accruedMin } = balance;
    const loose = stored.tokensMilli >= amount - accruedMin;
    this.atLeast(attributesOf(limitName).tokens, amount - (loose ? accruedMin : accruedMilli));
    if (!loose) this.requireRemainder(limitName, balance);
  }

  /** Requires that the limit is not beyond `capacityMilli`. */
  requireLow(limitName: string, balance: BalanceAt, capacityMilli: number): void {
    const { stored, accruedMax } = balance;
    const up = accruedUp(balance);
    // A limit that seems beyond it is a guess, which the exact remainder would not improve.
    const { tokensMilli } = stored;
    const loose = tokensMilli <= capacityMilli - accruedMax || tokensMilli > capacityMilli - up;
    const accrued = loose && !isEven(balance) ? accruedMax : up;
    this.atMost(attributesOf(limitName).tokens, capacityMilli - accrued);
    if (!loose) this.requireRemainder(limitName, balance);
  }

  /** Requires that the limit has `capacityMilli` or more. */
  requireFull(limitName: string, balance: BalanceAt, capacityMilli: number): void {
    const { stored, accruedMilli, accruedMin } = balance;
    const loose = stored.tokensMilli >= capacityMilli - accruedMin;
    const accrued = loose ? accruedMin : accruedMilli;
    this.atLeast(attributesOf(limitName).tokens, capacityMilli - accrued);
    if (!loose) this.requireRemainder(limitName, balance);
  }

  /** Requires the remainder that was seen. */
  requireRemainder(limitName: string, balance: BalanceAt): void {
    if (isEven(balance)) return;
    const { remainder: name } = attributesOf(limitName);
    if (this.#tests.some((test) => test.name === name)) return;
    this.requireNumber(name, balance.stored.remainder);
  }

  /** Sets the remainder, which a limit that accrues whole milli-tokens never has. */
  setRemainder(limitName: string, balance: BalanceAt, remainder: number): void {
    if (remainder > 0 || !isEven(balance)) this.replaceRemainder(limitName, remainder);
  }

  /** Sets the remainder; 0 is not stored, and removes one that another client may have set. */
  replaceRemainder(limitName: string, remainder: number): void {
    const { remainder: name } = attributesOf(limitName);
    if (remainder > 0) this.set(name, remainder);
    else this.remove(name);
  }

  /** Requires the balance of a limit as it was seen. */
  requireBalance(limitName: string, { tokensMilli, remainder }: StoredLimit): void {
    this.require({ is: "=", name: `b_${limitName}_tk`, value: tokensMilli });
    this.requireNumber(`b_${limitName}_rr`, remainder);
  }

  /** Requires a number as it was seen; 0 may be stored, or absent. */
  requireNumber(name: string, value: number): void {
    this.require({ is: "=", name, value, orAbsent: value === 0 });
  }

  require(...tests: Test[]): void {
    this.#tests.push(...tests);
  }

  /**
   * Requires that the item is the one that was seen: same base time, same limits, same number of
   * shards, and not expired since. Balances are not compared, so concurrent consumes do not disturb
   * each other.
   */
  requireSeen(bucket: SeenBucket, nowMs: number): void {
    const { refilledAtMs, rebases, configVersion, ttl } = bucket;
    this.require(
      { is: "=", name: "rf", value: refilledAtMs },
      asSeen(REBASES, rebases),
      asSeen("cv", configVersion),
      sameCount(bucket),
      notExpired(ttl, Math.floor(nowMs / 1000)),
    );
  }

  /** Records slots that an entry of this process gets, or gives back where less than zero. */
  moveSlots(limitName: string, count: number): void {
    if (count === 0) return;
    this.#slots ??= new Map();
    this.#slots.set(limitName, count);
  }

  /** The slots that the write moves, by limit; `undefined`: none. */
  get slots(): ReadonlyMap<string, number> | undefined {
    return this.#slots;
  }

  get isEmpty(): boolean {
    return (
      this.#remove.length === 0 &&
      Object.keys(this.#set).length === 0 &&
      Object.keys(this.#add).length === 0
    );
  }

  get change(): Change {
    const remove = this.#remove.filter((name) => !Object.hasOwn(this.#set, name));
    return { set: this.#set, add: this.#add, remove };
  }

  get condition(): Condition {
    return this.#tests;
  }
}

/** How a limit that is consumed was judged. */
export interface Guess {
  readonly limitName: string;
  readonly full: boolean;
  /** The limit seemed full, so a consume of another client would have made a difference. */
  readonly lookedFull: boolean;
  /** The stored balance after the write, if the guess is right and no other client writes. */
  readonly tokensMilli: number;
  readonly remainder: number;
}

export interface PlanContext {
  readonly nowMs: number;
  readonly rules: BucketRules;
  /** Whether a limit that seems full counts as full: other clients may have consumed since. */
  readonly trustFull: (limitName: string) => boolean;
  /** An adjustment: never refused, may go into debt, and an amount below zero is a refund. */
  readonly force?: boolean | undefined;
  /** Whether consumes are only counted: balances stay as they are. */
  readonly bypass?: boolean;
  /** The limits that may go into debt. */
  readonly soft?: ReadonlySet<string> | undefined;
  /** The ends of the periods that an adjustment was consumed in, by limit. */
  readonly fromEndsMs?: ReadonlyMap<string, number> | undefined;
  /** How many acquires the write counts as; when absent, one if it consumes, none if forced. */
  readonly acquires?: number | undefined;
  /** Milliseconds that the write adds to the meter; those of a plain write when absent. */
  readonly costMs?: number | undefined;
}

/** Whether a limit must have what the write consumes of it. */
export function isGate({ force, soft }: PlanContext, limitName: string): boolean {
  return force !== true && soft?.has(limitName) !== true;
}

/** Counts the acquires, for the aggregator of usage. */
export function countAcquires(
  plan: WritePlan,
  amountsMilli: readonly number[],
  { acquires, force }: PlanContext,
): void {
  plan.add(ACQUIRES, acquires ?? (force !== true && consumes(amountsMilli) ? 1 : 0));
}

/** Plans the change of one limit by an amount; below zero it is a refund. */
export function planLimit(
  plan: WritePlan,
  name: string,
  balance: BalanceAt,
  amount: number,
  context: PlanContext,
): Guess {
  invariant(Number.isSafeInteger(amount), "an amount is a safe integer of milli-tokens");
  if (hasSlots(balance.stored.rate)) return planSlots(plan, name, balance.stored, amount, context);
  const { tokens, consumed } = attributesOf(name);
  plan.add(consumed, amount);
  if (context.bypass === true) return planCount(plan, name, balance);
  if (balance.stored.period !== undefined)
    return planInPeriod(plan, name, balance, amount, context);
  if (amount < 0) return planRefund(plan, name, balance, -amount);
  const { stored, share } = balance;
  const { capacityMilli } = share;
  const lookedFull = looksFull(balance);
  const full = lookedFull && context.trustFull(name);
  if (full) {
    const { wholeRemainder: remainder } = balance;
    const accruedMilli = balance.accruedMin + (remainder > 0 ? 1 : 0);
    const tokensMilli = capacityMilli - accruedMilli - amount;
    plan.set(tokens, tokensMilli);
    plan.setRemainder(name, balance, remainder);
    plan.requireFull(name, balance, capacityMilli);
    // Without a remainder the prediction keeps the one that was seen: the write may not remove it.
    const expected = remainder === 0 ? stored.remainder : remainder;
    return { limitName: name, full, lookedFull, tokensMilli, remainder: expected };
  }
  plan.add(tokens, boundedChange(stored.tokensMilli, -amount));
  if (isGate(context, name)) plan.requireEnough(name, balance, amount);
  plan.requireLow(name, balance, capacityMilli);
  const { remainder } = stored;
  return { limitName: name, full, lookedFull, tokensMilli: stored.tokensMilli - amount, remainder };
}

/** Changes a balance inside its period; that it is still the same is required of the whole item. */
function planInPeriod(
  plan: WritePlan,
  name: string,
  { stored }: BalanceAt,
  amount: number,
  context: PlanContext,
): Guess {
  const { tokens } = attributesOf(name);
  plan.add(tokens, boundedChange(stored.tokensMilli, -amount));
  if (amount > 0 && isGate(context, name)) plan.atLeast(tokens, amount);
  const { remainder } = stored;
  const tokensMilli = stored.tokensMilli - amount;
  return { limitName: name, full: false, lookedFull: false, tokensMilli, remainder };
}

/** Counts what is consumed in total; the balance stays as it is. */
function planCount(plan: WritePlan, name: string, { stored }: BalanceAt): Guess {
  plan.require({ is: "exists", name: attributesOf(name).tokens });
  const { tokensMilli, remainder } = stored;
  return { limitName: name, full: false, lookedFull: false, tokensMilli, remainder };
}

/** Needs to know nothing of the item but that it has the limit. */
function planRefund(plan: WritePlan, name: string, { stored }: BalanceAt, amount: number): Guess {
  const { tokens } = attributesOf(name);
  plan.add(tokens, amount);
  plan.require({ is: "exists", name: tokens });
  const { remainder } = stored;
  const tokensMilli = stored.tokensMilli + amount;
  return { limitName: name, full: false, lookedFull: false, tokensMilli, remainder };
}

/** Returns what is left of every limit of the bucket, also of those that the call does not name. */
export function* leftOf(
  balances: ReadonlyMap<string, BalanceAt>,
  amounts: AmountsByName,
): Generator<LeftOver> {
  for (const [name, balance] of balances) {
    const balanceMilli = balanceOf(balance) - (amounts.get(name) ?? 0);
    yield { rate: keptBy(balance), balanceMilli, endMs: balance.stored.period?.endMs ?? 0 };
  }
}

/** Renews the time to live where that is due. `left`: what the write leaves, of every limit. */
export function planTtl(
  plan: WritePlan,
  bucket: SeenBucket,
  config: Pick<BucketConfig, "source">,
  left: Iterable<LeftOver>,
  context: Pick<PlanContext, "nowMs" | "rules">,
): number | undefined {
  // Only the Python library knows how long a quota or a schedule needs the bucket.
  if (isPinned(bucket)) return planPinnedTtl(plan, bucket, context.nowMs);
  // A bucket that expired shard by shard could not be distinguished from one that was never split.
  if (bucket.shardCount > 1) {
    if (bucket.ttl !== undefined) plan.remove("ttl");
    return undefined;
  }
  const rule = { multiplier: context.rules.ttlMultiplier, source: config.source, isNew: false };
  const ttl = bucketTtl(bucket.ttl, rule, left, context.nowMs);
  if (ttl === undefined && bucket.ttl !== undefined) plan.remove("ttl");
  else if (ttl !== undefined && ttl !== bucket.ttl) plan.set("ttl", ttl);
  return ttl;
}

/** Leaves it as it is; one that is over is removed, because the bucket is in use. */
function planPinnedTtl(plan: WritePlan, { ttl }: SeenBucket, nowMs: number): undefined {
  if (ttl !== undefined && ttl * 1000 <= nowMs) plan.remove("ttl");
  return undefined;
}

/**
 * Requires balances that a time to live covers. It was computed from a cached state, and other
 * clients may have gone into debt since: the write tests the limits that it consumes without a
 * check, and of all limits when it sets a time where there was none.
 */
export function requireCovered(
  plan: WritePlan,
  bucket: SeenBucket,
  balances: ReadonlyMap<string, BalanceAt>,
  amounts: AmountsByName,
  ttl: number | undefined,
  context: Pick<PlanContext, "nowMs" | "force">,
): void {
  if (ttl === undefined) return;
  const begins = bucket.ttl === undefined;
  if (!begins && context.force !== true) return;
  for (const [name, balance] of balances) {
    const amount = amounts.get(name) ?? 0;
    const { rate } = balance.stored;
    if (hasSlots(rate)) {
      // Only a bucket of which nothing is held may expire.
      if (begins) plan.atLeast(freeOf(name), (rate.capacityMilli + amount) / 1000);
      continue;
    }
    if (balance.isWalked || (!begins && amount <= 0)) continue;
    const lowest = coveredMilli(ttl, keptBy(balance), context.nowMs) + Math.max(0, amount);
    plan.requireEnough(name, balance, lowest);
  }
}

/** Whether the Python library has stamped the bucket as switched off. */
export function isStampedDisabled(bucket: SeenBucket): boolean {
  return bucket.python?.stamps.disabled === true;
}

/** Requires that the bucket is not stamped as switched off by now. */
export function requireEnabled(plan: WritePlan, bucket: SeenBucket): void {
  if (!isStampedDisabled(bucket)) plan.require({ is: "absent", name: "disabled" });
}

/** Moves the base time; rebases to the same one are numbered, to distinguish cached states. */
export function moveEpoch(plan: WritePlan, bucket: SeenBucket, epochMs: number): number {
  const { refilledAtMs, rebases } = bucket;
  const again = epochMs === refilledAtMs;
  if (again) plan.set(REBASES, rebases + 1);
  else if (rebases > 0) plan.remove(REBASES);
  plan.set("rf", epochMs);
  return again ? rebases + 1 : 0;
}
