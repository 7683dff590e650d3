/** What this client knows of a whole bucket: all its shards together, from their views. */

import { LRUCache } from "lru-cache";
import { shardRate } from "../../core/shares.ts";
import { bucketKey } from "../../records/keys.ts";
import type { RecordContext } from "../../records/record-context.ts";
import type { Leg } from "../bucket-store.ts";
import type { SeenBucket } from "./image.ts";
import { balancesOf, fullBalances, type ShardCharger } from "./shard-charger.ts";
import { countBefore, originOf } from "./shard-numbers.ts";
import { type BucketName, idOf } from "./splitter.ts";
import { exceeds } from "./take-plan.ts";
import type { View, Views } from "./views.ts";

/** For so long a refusal is repeated without asking. */
const LOCAL_REFUSAL_MS = 1000;
/** For so long a busy shard is passed by. */
const HOT_MS = 250;
/** A bucket with less than this part of what it holds is short of tokens, not of writes. */
const SCARCE = 1 / 8;
/** By size, because a bound by count takes its room in advance, for every namespace. */
const BOUNDED = { maxSize: 10_000, sizeCalculation: () => 1 };

export class LegViews {
  readonly #context: RecordContext;
  readonly #views: Views;
  readonly #shards: ShardCharger;
  /** What shards other than the first have shown. */
  readonly #told = new LRUCache<string, { count: number; atMs: number }>(BOUNDED);
  readonly #hotAtMs = new LRUCache<string, number>(BOUNDED);

  constructor(context: RecordContext, views: Views, shards: ShardCharger) {
    this.#context = context;
    this.#views = views;
    this.#shards = shards;
  }

  of({ entityId, resource }: BucketName, shard: number): View | undefined {
    return this.#views.get(bucketKey(this.#context.namespaceId, entityId, resource, shard).PK);
  }

  /**
   * How many shards there are, by what was seen last of the first one, or by what another one has
   * shown since; `undefined` when nobody has looked.
   */
  countOf(name: BucketName): number | undefined {
    const first = this.of(name, 0);
    const told = this.#told.get(idOf(name));
    const newer = told !== undefined && told.atMs > (first?.seenAtMs ?? Number.NEGATIVE_INFINITY);
    if (first === undefined) return newer ? told.count : undefined;
    const count = first.bucket?.shardCount ?? 1;
    return newer ? Math.max(count, told.count) : count;
  }

  /** A shard may show that there are more shards than the first one has shown. */
  correct(bucket: SeenBucket): void {
    const count = bucket.shardCount;
    if (bucket.shard === 0 || count <= (this.countOf(bucket) ?? 0)) return;
    this.#told.set(idOf(bucket), { count, atMs: this.#context.clock() });
  }

  /** The store has just refused to write to a shard. */
  overheated(name: BucketName, shard: number): void {
    this.#hotAtMs.set(`${idOf(name)}#${shard}`, this.#context.clock());
  }

  isHot(name: BucketName, shard: number, nowMs: number): boolean {
    if (this.#hotAtMs.size === 0) return false;
    const agoMs = nowMs - (this.#hotAtMs.get(`${idOf(name)}#${shard}`) ?? Number.NEGATIVE_INFINITY);
    return agoMs >= 0 && agoMs < HOT_MS;
  }

  forget({ entityId, resource }: BucketName, shard: number): void {
    this.#views.forget(bucketKey(this.#context.namespaceId, entityId, resource, shard).PK);
  }

  forgetAll(name: BucketName): void {
    const count = this.countOf(name) ?? 1;
    for (let shard = 0; shard < count; shard += 1) this.forget(name, shard);
  }

  /**
   * Balances of the legs that were seen a moment ago, when one of them has too little in all its
   * shards together; `undefined` when somebody has to ask.
   */
  refusedLocally(legs: readonly Leg[]): (readonly number[] | undefined)[] | undefined {
    const nowMs = this.#context.clock();
    const firsts = legs.map((leg) => this.of(leg, 0));
    if (!legs.some((leg, at) => looksShort(firsts[at], leg, nowMs))) return undefined;
    let refused = false;
    const balances = legs.map((leg, at) => {
      const first = firsts[at];
      if (first === undefined && this.countOf(leg) === undefined) return undefined;
      const seen = this.#offers(leg, first, nowMs);
      if (seen === undefined) return undefined;
      // What others may have changed since is no answer to how much there is.
      if (!seen.recent) return undefined;
      refused ||= !seen.enough && exceeds(leg.amountsMilli, seen.balancesMilli);
      return seen.balancesMilli;
    });
    return refused ? balances : undefined;
  }

  /**
   * Of which limits that the leg asks for nearly everything is taken: by what the shards had when
   * they were seen. Most of them must have been seen a moment ago, or nobody knows.
   */
  scarceLimits(leg: Leg): readonly boolean[] {
    const nowMs = this.#context.clock();
    const count = this.countOf(leg) ?? 1;
    const has = leg.config.limits.map(() => 0);
    const holds = leg.config.limits.map(() => 0);
    let seen = 0;
    for (let shard = 0; shard < count; shard += 1) {
      const view = this.of(leg, shard);
      const ageMs = nowMs - (view?.asOfMs ?? Number.NEGATIVE_INFINITY);
      const bucket = view?.bucket;
      if (view === undefined || bucket === undefined || ageMs >= LOCAL_REFUSAL_MS) continue;
      seen += 1;
      const balances = balancesOf(bucket, leg, Math.min(nowMs, view.asOfMs));
      leg.config.limits.forEach(({ rate }, at) => {
        has[at] = (has[at] as number) + (balances[at] as number);
        holds[at] = (holds[at] as number) + shardRate(rate, shard, bucket.shardCount).capacityMilli;
      });
    }
    return leg.config.limits.map((_, at) => {
      const amount = leg.amountsMilli[at] ?? 0;
      const few = Math.max(amount, (holds[at] as number) * SCARCE);
      return amount > 0 && 2 * seen >= count && (has[at] as number) < few;
    });
  }

  /** The balances of a leg as they were last seen; full where they never were. */
  lastBalances(leg: Leg): readonly number[] {
    const count = this.countOf(leg);
    const full = fullBalances(leg);
    if (count === undefined || this.of(leg, 0)?.bucket === undefined) return full;
    const nowMs = this.#context.clock();
    const sums = full.map(() => 0);
    for (let shard = 0; shard < count; shard += 1) {
      const parts = this.#lastOf(leg, shard, count, nowMs);
      parts.forEach((part, at) => {
        sums[at] = (sums[at] as number) + part;
      });
    }
    return sums.map((sum, at) => Math.min(sum, full[at] as number));
  }

  /**
   * Which legs go together. Before all others those that had too little when they were last seen,
   * then those that have hardly more, each by itself; the rest in parallel.
   */
  order(legs: readonly Leg[]): readonly (readonly number[])[] {
    const short: number[][] = [];
    const tight: number[][] = [];
    const rest: number[] = [];
    legs.forEach((leg, at) => {
      const balances = this.lastBalances(leg);
      if (exceeds(leg.amountsMilli, balances)) short.push([at]);
      else if (exceeds(leg.amountsMilli.map(twice), balances)) tight.push([at]);
      else rest.push(at);
    });
    return [...short, ...tight, ...(rest.length > 0 ? [rest] : [])];
  }

  /** A shard's part; one whose share still lies in another shard has none. */
  #lastOf(leg: Leg, shard: number, count: number, nowMs: number): readonly number[] {
    const view = this.of(leg, shard);
    if (view?.bucket !== undefined) return balancesOf(view.bucket, leg, nowMs);
    const none = view !== undefined || this.#isUnborn(leg, shard);
    return leg.config.limits.map(({ rate }) =>
      none ? 0 : shardRate(rate, shard, count).capacityMilli,
    );
  }

  #isUnborn(name: BucketName, shard: number): boolean {
    if (shard === 0) return false;
    const origin = this.of(name, originOf(shard));
    return origin?.bucket !== undefined && origin.bucket.shardCount <= countBefore(shard);
  }

  /** What a take would find in all shards; `undefined` when a view is missing or limits are new. */
  #offers(leg: Leg, first: View | undefined, nowMs: number): Offers | undefined {
    // Where there is no bucket, the first call decides whether a full one is enough.
    if (first?.bucket === undefined) {
      const recent = first !== undefined && isRecent(first, nowMs);
      return { balancesMilli: fullBalances(leg), recent, enough: true };
    }
    const sums = leg.config.limits.map(() => 0);
    let recent = true;
    let enough = false;
    for (let shard = 0; shard < first.bucket.shardCount; shard += 1) {
      const view = shard === 0 ? first : this.of(leg, shard);
      if (view === undefined) {
        if (this.#isUnborn(leg, shard)) continue;
        return undefined;
      }
      recent &&= isRecent(view, nowMs);
      if (view.bucket === undefined) continue;
      const plan = this.#shards.plan(view.bucket, asking(leg), nowMs);
      if (plan.kind !== "refused") return undefined;
      recent &&= plan.limitsOnly === undefined;
      enough ||= !exceeds(leg.amountsMilli, plan.balancesMilli);
      plan.balancesMilli.forEach((balance, at) => {
        sums[at] = (sums[at] as number) + balance;
      });
    }
    return { balancesMilli: sums, recent, enough };
  }
}

interface Offers {
  readonly balancesMilli: readonly number[];
  /** All of it was seen a moment ago, and no limits wait to be brought. */
  readonly recent: boolean;
  /** One shard alone has enough. */
  readonly enough: boolean;
}

/** Nearly never; and where the first shard has enough or was not seen, nothing is refused here. */
function looksShort(first: View | undefined, leg: Leg, nowMs: number): boolean {
  if (first?.bucket === undefined || !isRecent(first, nowMs)) return false;
  return exceeds(leg.amountsMilli, balancesOf(first.bucket, leg, nowMs));
}

/** A leg with less than this is asked before the others, to spare them. */
function twice(amountMilli: number): number {
  return 2 * amountMilli;
}

/** A leg that no bucket can serve: its refusal tells what there is. */
export function asking(leg: Leg): Leg {
  return { ...leg, amountsMilli: leg.amountsMilli.map(() => Number.MAX_SAFE_INTEGER) };
}

/** Whether the view may refuse without asking; a clock that jumped back proves nothing. */
function isRecent(view: View, nowMs: number): boolean {
  const ageMs = nowMs - view.seenAtMs;
  return ageMs >= 0 && ageMs < LOCAL_REFUSAL_MS;
}
