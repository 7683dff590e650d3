/** Whole buckets as this process knows them: all their shards together, from the cached states. */

import { boundedMap } from "../../../base/bounded-map.ts";
import { type Clock, isRecent } from "../../../base/time.ts";
import { type BucketName, bucketId, bucketKey } from "../../../records/keys.ts";
import type { Key } from "../../../storage/item.ts";
import { type BucketConfig, fits, gatesOf, type Leg, type SeenPeriods } from "../../leg.ts";
import { isTimed } from "../../periods.ts";
import { KNOWN_MS, SPENT_MS, spentOf } from "../../spent.ts";
import { evaluate } from "../plan/consume-plan.ts";
import { type Place, periodsIn } from "../plan/period-plan.ts";
import { type SeenBucket, shareAt } from "../plan/seen-bucket.ts";
import { withConfig } from "../plan/with-config.ts";
import { countBefore, originOf, SHARDS_MAX } from "../shards/shards.ts";
import type { BucketRules } from "../table-traits.ts";
import { type CachedState, type CachedStates, mayRefuse, shownMs } from "./cached-states.ts";
import { atMostFull, balancesOf, fullBalances } from "./shard-balances.ts";

/** How long a throttled shard is avoided. */
const THROTTLED_MS = 250;
/** With less than this share of its capacity, a bucket lacks tokens rather than writes. */
const SCARCE = 1 / 8;
const REMEMBERED_MAX = 10_000;

/** The balances that a consume would find, by states that were shown within the last second. */
export interface KnownBalances {
  /** Per shard; none where there is no bucket yet. */
  readonly shards: readonly (readonly number[])[];
  readonly sumsMilli: readonly number[];
}

/** The cached balances of a call that they refuse. */
export interface LocalRefusal {
  /** Leg by leg; missing for those that were not shown within the last second. */
  readonly balancesMilli: readonly (readonly number[] | undefined)[];
  /** The first shard of each leg. */
  readonly firsts: readonly (CachedState | undefined)[];
}

/** The balances of all shards when they were last seen. */
export interface LastBalances {
  readonly balancesMilli: readonly number[];
  /** When the store showed the oldest of them. */
  readonly shownAtMs: number;
}

export class BucketStates {
  readonly shards: CachedStates;
  readonly clock: Clock;
  readonly #namespaceId: string;
  readonly #rules: BucketRules;
  /** The number of shards that shards other than the first have shown. */
  readonly #shownCounts = boundedMap<{ count: number; atMs: number }>(REMEMBERED_MAX);
  readonly #throttledAtMs = boundedMap<number>(REMEMBERED_MAX);
  /** Keys by bucket and shard: a call needs them several times, and a new text has to be hashed. */
  readonly #keys = boundedMap<Key[]>(REMEMBERED_MAX);

  constructor(
    context: { readonly namespaceId: string; readonly clock: Clock },
    shards: CachedStates,
    rules: BucketRules,
  ) {
    this.#namespaceId = context.namespaceId;
    this.clock = context.clock;
    this.shards = shards;
    this.#rules = rules;
  }

  keyOf(name: BucketName, shard: number): Key {
    return this.#keys.get(bucketId(name))?.[shard] ?? this.#addKey(name, shard);
  }

  #addKey(name: BucketName, shard: number): Key {
    const key = bucketKey(this.#namespaceId, name.entityId, name.resource, shard);
    const keys = this.#keys.get(bucketId(name)) ?? [];
    keys[shard] = key;
    this.#keys.set(bucketId(name), keys);
    return key;
  }

  idOf(name: BucketName, shard: number): string {
    return this.keyOf(name, shard).PK;
  }

  of(name: BucketName, shard: number): CachedState | undefined {
    return this.shards.get(this.idOf(name, shard));
  }

  trustsFull(name: BucketName, shard: number): (limitName: string) => boolean {
    return this.shards.trustsFull(this.idOf(name, shard));
  }

  /**
   * Returns how many shards there are, by the last state of the first one, or by what another one
   * has shown since; `undefined` when no state is known.
   */
  countOf(name: BucketName, first = this.of(name, 0)): number | undefined {
    const shown = this.#shownCounts.size === 0 ? undefined : this.#shownCounts.get(bucketId(name));
    const newer = shown !== undefined && shown.atMs > (first?.seenAtMs ?? Number.NEGATIVE_INFINITY);
    if (first === undefined) return newer ? shown.count : undefined;
    const count = first.bucket?.shardCount ?? 1;
    return newer ? Math.max(count, shown.count) : count;
  }

  /** Records a shard that shows more shards than the first one has shown. */
  correct(bucket: SeenBucket): void {
    const count = bucket.shardCount;
    if (bucket.shard === 0 || count <= (this.countOf(bucket) ?? 0)) return;
    this.#shownCounts.set(bucketId(bucket), { count, atMs: this.clock() });
  }

  /**
   * Returns whether a shard that is not there was merged into one that it descends from, while the
   * first one still counts it.
   */
  isMerged(name: BucketName, shard: number): boolean {
    const state = shard === 0 ? undefined : this.of(name, shard);
    if (state === undefined || state.bucket !== undefined) return false;
    const known = this.of(name, 0)?.bucket?.generation ?? 0;
    for (let origin = originOf(shard); origin > 0; origin = originOf(origin)) {
      const bucket = this.of(name, origin)?.bucket;
      if (bucket === undefined) continue;
      return bucket.shardCount <= countBefore(shard) && bucket.generation > known;
    }
    return false;
  }

  /** Records that the store has just throttled a write to a shard. */
  throttled(name: BucketName, shard: number): void {
    this.#throttledAtMs.set(`${bucketId(name)}#${shard}`, this.clock());
  }

  isThrottled(name: BucketName, shard: number, nowMs: number): boolean {
    if (this.#throttledAtMs.size === 0) return false;
    return isRecent(this.#throttledAtMs.get(`${bucketId(name)}#${shard}`), nowMs, THROTTLED_MS);
  }

  /** Drops all states, also those of shards that the first one does not count any more. */
  forgetAll(name: BucketName): void {
    const count = this.countOf(name) ?? 1;
    for (let shard = 0; shard < SHARDS_MAX; shard += 1) {
      const id = this.idOf(name, shard);
      if (shard < count || this.shards.get(id) !== undefined) this.shards.forget(id);
    }
  }

  /**
   * Returns the consumes that are refused by states of the last second: all shards together have
   * too little, and each of them alone; `undefined` when none is. A prediction of this process, or
   * a change that it has made since, refuses nothing.
   */
  refused<T extends { readonly amountsMilli: readonly number[] }>(
    name: BucketName,
    config: BucketConfig,
    parts: readonly T[],
    nowMs: number,
    first = this.of(name, 0),
  ): { readonly refused: readonly T[]; readonly sumsMilli: readonly number[] } | undefined {
    // The balances of the first shard nearly always suffice.
    if (first?.bucket === undefined || !mayRefuse(first, nowMs)) return undefined;
    const firstMilli = balancesOf(first.bucket, config, nowMs);
    const lacks = ({ amountsMilli }: T, has: readonly number[]) => !fits(config, amountsMilli, has);
    const scarce = parts.filter((part) => lacks(part, firstMilli));
    const known = scarce.length === 0 ? undefined : this.known(name, config, nowMs, first);
    if (known === undefined) return undefined;
    const { shards, sumsMilli } = known;
    const refused = scarce.filter(
      (part) => lacks(part, sumsMilli) && shards.every((has) => lacks(part, has)),
    );
    return refused.length === 0 ? undefined : { refused, sumsMilli };
  }

  /**
   * Refuses a call if cached states refuse a leg of it; `undefined`: the store has to be asked. A
   * call that `waits` is not refused by what is known of a spent quota for longer than a second.
   */
  refusal(legs: readonly Leg[], nowMs: number, waits = false): LocalRefusal | undefined {
    for (const leg of legs) {
      const first = this.of(leg, 0);
      if (first === undefined) continue;
      const parts = legs.length === 1 ? legs : [leg];
      const found = this.refused(leg, leg.config, parts, nowMs, first)?.sumsMilli;
      const spent = found === undefined && !waits ? this.#spent(leg, nowMs, first) : undefined;
      const sumsMilli = found ?? spent;
      if (sumsMilli === undefined) continue;
      const withinMs = spent === undefined ? KNOWN_MS : SPENT_MS;
      const firsts = legs.map((other) => (other === leg ? first : this.of(other, 0)));
      const balancesMilli = legs.map((other, at) =>
        other === leg
          ? sumsMilli
          : this.known(other, other.config, nowMs, firsts[at], withinMs)?.sumsMilli,
      );
      return { balancesMilli, firsts };
    }
    return undefined;
  }

  /** Returns the balances of a bucket that refuses a leg by a quota or a session that is spent. */
  #spent(leg: Leg, nowMs: number, first: CachedState): readonly number[] | undefined {
    const { config, amountsMilli } = leg;
    if (first.bucket === undefined || !mayRefuse(first, nowMs, SPENT_MS)) return undefined;
    const lacks = (has: readonly number[]) => !fits(config, amountsMilli, spentOf(config, has));
    if (!lacks(balancesOf(first.bucket, config, nowMs))) return undefined;
    const known = this.known(leg, config, nowMs, first, SPENT_MS);
    if (known === undefined || !lacks(known.sumsMilli) || !known.shards.every(lacks))
      return undefined;
    return known.sumsMilli;
  }

  /** Returns whether the store has shown the first shard, and its link, within the last second. */
  isShown(name: BucketName): boolean {
    const first = this.of(name, 0);
    return first?.bucket !== undefined && mayRefuse(first, this.clock());
  }

  /** Returns the balances of all shards, if each was shown within that time. */
  known(
    name: BucketName,
    config: BucketConfig,
    nowMs: number,
    first = this.of(name, 0),
    withinMs = KNOWN_MS,
  ): KnownBalances | undefined {
    if (first === undefined || !mayRefuse(first, nowMs, withinMs)) return undefined;
    if (first.bucket === undefined) return { shards: [], sumsMilli: fullBalances(config, nowMs) };
    const shards: (readonly number[])[] = [];
    const sumsMilli = config.limits.map(() => 0);
    const { shardCount } = first.bucket;
    for (let shard = 0; shard < shardCount; shard += 1) {
      const state = shard === 0 ? first : this.of(name, shard);
      const seen = { state, shard, shardCount };
      const balancesMilli = this.#knownOf(name, config, seen, nowMs, withinMs);
      if (balancesMilli === undefined) return undefined;
      if (balancesMilli.length > 0) shards.push(balancesMilli);
      add(sumsMilli, balancesMilli);
    }
    return { shards, sumsMilli };
  }

  /** Returns the balances of one shard; none where another shard has its share. */
  #knownOf(
    name: BucketName,
    config: BucketConfig,
    {
      state,
      shard,
      shardCount,
    }: { state: CachedState | undefined; shard: number; shardCount: number },
    nowMs: number,
    withinMs: number,
  ): readonly number[] | undefined {
    // A missing shard may have been created by a split that its origin has shown since.
    if (state?.bucket === undefined) return this.#isUnborn(name, shard) ? [] : undefined;
    // A shard that was seen among more shards has taken one in since, and holds more by now.
    if (!mayRefuse(state, nowMs, withinMs) || state.bucket.shardCount > shardCount) {
      return undefined;
    }
    const context = { nowMs, rules: this.#rules, trustFull: () => true };
    const found = evaluate(state.bucket, config, context);
    // A shard with new limits to apply does not refuse: the call applies them.
    return found?.limitsOnly === undefined ? found?.balancesMilli : undefined;
  }

  /**
   * Returns whether nearly all of a limit was consumed when its shards were last seen, most of them
   * within the last second.
   */
  isScarce(name: BucketName, config: BucketConfig): boolean {
    const nowMs = this.clock();
    const count = this.countOf(name) ?? 1;
    const has = config.limits.map(() => 0);
    const holds = config.limits.map(() => 0);
    let seen = 0;
    for (let shard = 0; shard < count; shard += 1) {
      const state = this.of(name, shard);
      const bucket = state?.bucket;
      const atMs = state?.asOfMs ?? Number.NEGATIVE_INFINITY;
      if (bucket === undefined || nowMs - atMs >= KNOWN_MS) continue;
      seen += 1;
      add(has, balancesOf(bucket, config, Math.min(nowMs, atMs)));
      const { shardCount } = bucket;
      add(
        holds,
        config.limits.map(({ rate }) => shareAt({ shard, shardCount }, rate, nowMs).capacityMilli),
      );
    }
    if (2 * seen < count) return false;
    const scarce = gatesOf(config, holds).map((most) => most * SCARCE);
    return has.some((milli, at) => milli < (scarce[at] as number));
  }

  /**
   * Returns the balances of a bucket as last seen; full where they never were. `written`: shards
   * that a write has just shown, whatever this process has predicted of them since.
   */
  lastBalances(
    name: BucketName,
    config: BucketConfig,
    written: readonly number[] = [],
  ): LastBalances {
    const nowMs = this.clock();
    const count = this.countOf(name);
    const full = fullBalances(config, nowMs);
    if (count === undefined || this.of(name, 0)?.bucket === undefined) {
      return { balancesMilli: full, shownAtMs: Number.NEGATIVE_INFINITY };
    }
    const sums = full.map(() => 0);
    let shownAtMs = nowMs;
    for (let shard = 0; shard < count; shard += 1) {
      const state = this.of(name, shard);
      const isUnborn = state === undefined && this.#isUnborn(name, shard);
      add(sums, isUnborn ? [] : lastOf(state, config, shard, count, nowMs));
      if (isUnborn || written.includes(shard)) continue;
      shownAtMs = Math.min(shownAtMs, state?.seenAtMs ?? Number.NEGATIVE_INFINITY);
    }
    return { balancesMilli: atMostFull(sums, config, nowMs), shownAtMs };
  }

  /**
   * Returns the periods of a bucket as last seen; `undefined` where no limit has any. `written`: a
   * shard that a write has just shown, whatever this process has predicted of it since. The ends
   * are those that the write found, although a period may be over when its answer comes.
   */
  periodsOf(
    name: BucketName,
    config: BucketConfig,
    written?: { readonly bucket: SeenBucket; readonly atMs: number },
  ): SeenPeriods | undefined {
    if (!config.limits.some(({ rate }) => isTimed(rate))) return undefined;
    const nowMs = written?.atMs ?? this.clock();
    const shards = written === undefined ? [] : [written.bucket];
    const unseen: Place[] = [];
    const shardCount = this.countOf(name) ?? 1;
    for (let shard = 0; shard < shardCount; shard += 1) {
      if (shard === written?.bucket.shard) continue;
      const state = this.of(name, shard);
      if (state?.bucket !== undefined) shards.push(state.bucket);
      else if (state === undefined && !this.#isUnborn(name, shard))
        unseen.push({ shard, shardCount });
    }
    if (written !== undefined) return periodsIn(shards, config, nowMs, undefined, unseen);
    const context = { namespaceId: this.#namespaceId, nowMs, rules: this.#rules };
    return periodsIn(withConfig(shards, config, context), config, nowMs, undefined, unseen);
  }

  /** Returns when the store showed the oldest shard of some buckets with these first shards. */
  shownAtMs(
    names: readonly BucketName[],
    firsts: readonly (CachedState | undefined)[],
    nowMs: number,
  ): number {
    let oldestMs = nowMs;
    for (let at = 0; at < names.length; at += 1) {
      const first = firsts[at];
      oldestMs = Math.min(oldestMs, shownMs(first, nowMs));
      for (let shard = 1; shard < (first?.bucket?.shardCount ?? 1); shard += 1) {
        oldestMs = Math.min(oldestMs, shownMs(this.of(names[at] as BucketName, shard), nowMs));
      }
    }
    return oldestMs;
  }

  #isUnborn(name: BucketName, shard: number): boolean {
    if (shard === 0) return false;
    const origin = this.of(name, originOf(shard));
    return origin?.bucket !== undefined && origin.bucket.shardCount <= countBefore(shard);
  }
}

/** Returns a shard's part; one that is not there has none, and one never seen is full. */
function lastOf(
  state: CachedState | undefined,
  config: BucketConfig,
  shard: number,
  count: number,
  nowMs: number,
): readonly number[] {
  if (state?.bucket !== undefined) return balancesOf(state.bucket, config, nowMs);
  if (state !== undefined) return [];
  const place = { shard, shardCount: count };
  return config.limits.map(({ rate }) => shareAt(place, rate, nowMs).capacityMilli);
}

/** Adds amounts to sums, in place. */
function add(sums: number[], amounts: readonly number[]): void {
  for (let at = 0; at < sums.length; at += 1) {
    sums[at] = (sums[at] as number) + (amounts[at] ?? 0);
  }
}
