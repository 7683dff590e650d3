/**
 * Splits shards: when an item gets more writes than it can take, and when a call picks a shard
 * whose share is still in the shard it descends from.
 *
 * Shard 0 is the truth for the number of shards, so it always splits first. The others follow when
 * they are hot themselves or when their other half is picked.
 */

import { boundedMap } from "../../../base/bounded-map.ts";
import { randomToken } from "../../../base/random.ts";
import { type Deadline, isRecent } from "../../../base/time.ts";
import { type BucketName, bucketId } from "../../../records/keys.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import type { Key } from "../../../storage/item.ts";
import type { Condition } from "../../../storage/item-store.ts";
import type { ShardsWarning } from "../../bucket-warning.ts";
import type { LinkChecks } from "../consume/link-checks.ts";
import {
  asSeen,
  decoded,
  encodeShard,
  GENERATION,
  isPinned,
  REBASES,
  type SeenBucket,
} from "../plan/seen-bucket.ts";
import { NO_BUCKET } from "../plan/write-plan.ts";
import { BucketLoads } from "../plan/writes-meter.ts";
import type { CachedStates } from "../state/cached-states.ts";
import { leftFor, ShardItems } from "../state/shard-items.ts";
import type { TableTraits } from "../table-traits.ts";
import { AnnouncedShards } from "./announced-shards.ts";
import { countBefore, originOf, SHARDS_MAX } from "./shards.ts";
import { planSplit, type SplitManner, UNDISTURBED } from "./split.ts";
import { hasOwnTraffic, type Sign, SPLIT_PAUSE_MS, splitFactor } from "./split-policy.ts";

/** A bucket has more shards than before. */
export interface SplitNotice extends BucketName {
  readonly shardCount: number;
}

export interface SplitterOptions extends Pick<TableTraits, "writesPerPartition"> {
  /** The most shards that a bucket is split into; as many as there can be when absent. */
  readonly maxShards?: number | undefined;
  readonly onSplit?: ((notice: SplitNotice) => void) | undefined;
  readonly onWarning: (warning: ShardsWarning) => void;
}

const WORK = "split the bucket";
/** The pause after a split for which the store was too busy. */
const RETRY_MS = 100;
/** Tried one after the other, until a split succeeds. */
const MANNERS: readonly SplitManner[] = [
  UNDISTURBED,
  { trustFull: false, exact: true, cautious: false },
  { trustFull: false, exact: false, cautious: false },
  { trustFull: true, exact: true, cautious: true },
  { trustFull: false, exact: false, cautious: true },
];
const ATTEMPTS_MAX = MANNERS.length;
const REMEMBERED_MAX = 10_000;

export class Splitter {
  /** `undefined` where no bucket is ever split. */
  readonly loads: BucketLoads | undefined;
  readonly #context: RecordContext;
  readonly #states: CachedStates;
  readonly #links: LinkChecks;
  readonly #options: SplitterOptions;
  readonly #items: ShardItems;
  readonly #announced: AnnouncedShards;
  /** When this process last tried to split a shard; a try without effect costs a read. */
  readonly #triedAtMs = boundedMap<number>(REMEMBERED_MAX);

  constructor(
    context: RecordContext,
    states: CachedStates,
    links: LinkChecks,
    options: SplitterOptions,
  ) {
    this.#context = context;
    this.#states = states;
    this.#links = links;
    this.#options = options;
    this.#items = new ShardItems(context, states);
    this.#announced = new AnnouncedShards(context, states);
    const { writesPerPartition } = options;
    this.loads = writesPerPartition === undefined ? undefined : new BucketLoads(context.clock);
  }

  /**
   * Splits a shard with too many writes if it is behind shard 0; otherwise the bucket, unless it
   * was just split or the shares would be too small. Returns whether anything was split.
   */
  async splitHot(hot: SeenBucket, sign: Sign, deadline: Deadline): Promise<boolean> {
    const { loads } = this;
    if (loads === undefined || !hasOwnTraffic(sign, loads.of(hot))) return false;
    if (hot.shard === 0 && this.#factor(hot, sign, loads) === 1) return false;
    if (this.#rests(hot)) return false;
    try {
      return await this.#splitHot(hot, sign, loads, deadline);
    } catch (error) {
      // The shard is too busy even for that; waiting does not help, so it is tried again soon.
      const againMs = this.#context.clock() - SPLIT_PAUSE_MS + RETRY_MS;
      this.#triedAtMs.set(`${bucketId(hot)}#${hot.shard}`, againMs);
      throw error;
    }
  }

  async #splitHot(
    hot: SeenBucket,
    sign: Sign,
    loads: BucketLoads,
    deadline: Deadline,
  ): Promise<boolean> {
    const first = hot.shard === 0 ? hot : await this.#read(hot, 0, deadline);
    if (first === undefined) return false;
    if (hot.shardCount < first.shardCount) {
      return (await this.#knows(first, hot, deadline)) && this.#catchUp(hot, first, deadline);
    }
    const factor = hot.shardCount > first.shardCount ? 1 : this.#factor(first, sign, loads);
    if (factor === 1 || !(await this.split(first, factor, deadline))) return false;
    if (hot.shard !== 0) await this.#split(hot, factor, deadline);
    return true;
  }

  /** Splits the first shard, which is the truth for the bucket; whether this call did it. */
  async split(first: SeenBucket, factor: number, deadline: Deadline): Promise<boolean> {
    if (!(await this.#split(first, factor, deadline))) return false;
    const { entityId, resource } = first;
    const notice = { entityId, resource, shardCount: first.shardCount * factor };
    this.loads?.count(first, notice.shardCount);
    this.#options.onSplit?.(notice);
    if (notice.shardCount >= this.#maxShards) {
      this.#options.onWarning({ kind: "shards_exhausted", ...notice });
    }
    return true;
  }

  /**
   * Creates a missing shard that was picked, with all those it descends from. When the bucket
   * itself is gone, or the shard exists after all, the cached states say so afterwards.
   */
  async createShard(name: BucketName, shard: number, deadline: Deadline): Promise<void> {
    // Shard 0 is the truth. Other shards may be left from a bucket that was deleted.
    const first = await this.#read(name, 0, deadline);
    if (first === undefined || first.shardCount <= shard) return;
    if (first.announced !== undefined) return this.repair(name, deadline);
    return this.#createShard(first, shard, deadline);
  }

  async #createShard(first: SeenBucket, shard: number, deadline: Deadline): Promise<void> {
    const name = { entityId: first.entityId, resource: first.resource };
    const origin = originOf(shard);
    let from = origin === 0 ? first : await this.#read(name, origin, deadline);
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      switch (wayTo(shard, from, first)) {
        case "none":
          return;
        case "restore":
          return this.#restoreLost(name, shard, deadline);
        case "raise":
          await this.#announced.raise(from as SeenBucket, first.shardCount, deadline);
          break;
        case "split":
          await this.#catchUp(from as SeenBucket, first, deadline);
          break;
        case "origin":
          await this.createShard(name, origin, deadline);
      }
      from = await this.#read(name, origin, deadline);
      if (from === undefined) return;
    }
  }

  /** Creates the shards that were announced and not created; see `AnnouncedShards`. */
  repair(name: BucketName, deadline: Deadline): Promise<void> {
    return this.#announced.repair(name, deadline);
  }

  get #maxShards(): number {
    return this.#options.maxShards ?? SHARDS_MAX;
  }

  #rests(hot: SeenBucket): boolean {
    const id = `${bucketId(hot)}#${hot.shard}`;
    const nowMs = this.#context.clock();
    if (isRecent(this.#triedAtMs.get(id), nowMs, SPLIT_PAUSE_MS)) return true;
    this.#triedAtMs.set(id, nowMs);
    return false;
  }

  /** Splits a shard that is behind the first one, into all it is behind. */
  #catchUp(behind: SeenBucket, first: SeenBucket, deadline: Deadline): Promise<boolean> {
    return this.#split(behind, first.shardCount / behind.shardCount, deadline);
  }

  /** Splits one shard into `factor`, unless it was split meanwhile; whether this call did it. */
  async #split(seen: SeenBucket, factor: number, deadline: Deadline): Promise<boolean> {
    const { namespaceId, store, clock, random } = this.#context;
    const { shard, shardCount: count } = seen;
    const keys = Array.from({ length: factor }, (_, at) =>
      this.#items.keyOf(seen, shard + at * count),
    );
    const [key] = keys as [Key];
    let bucket: SeenBucket | undefined = seen;
    const inTheWay = new Map<number, SeenBucket | undefined>();
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const nowMs = clock();
      // A generation that has risen since belongs to a merge that the first shard may not know of.
      if (bucket?.shardCount !== count || bucket.generation > seen.generation) return false;
      const { plan, kept, created } = planSplit(bucket, nowMs, MANNERS[attempt], factor);
      const made = created.map((half, at) => ({
        ...half,
        rebases: Math.max(half.rebases, rebasesAfter(inTheWay.get(at + 1), half.refilledAtMs)),
      }));
      const observe = this.#states.observe(key.PK);
      const result = await store.transact(
        [
          { update: key, change: plan.change, condition: plan.condition },
          ...made.map((half, at) => ({
            put: encodeShard(namespaceId, half),
            condition: placeOf(inTheWay.get(at + 1)),
          })),
        ],
        { token: randomToken(random), timeoutMs: leftFor(deadline, WORK) },
      );
      if (result.ok) {
        this.#states.assume(key.PK, kept);
        made.forEach((half, at) => {
          const place = keys[at + 1] as Key;
          this.#states.assume(place.PK, half);
          this.#links.noteFirst(place, half);
        });
        return true;
      }
      const failed = result.failures.get(0);
      if (failed !== undefined) bucket = observe(decoded(failed.item), clock()).bucket;
      else for (const [at, { item }] of result.failures) inTheWay.set(at, decoded(item));
    }
    return false;
  }

  /**
   * Returns whether the first shard knows the generation of another one. Where a merge has begun
   * and not ended, and the shard is needed again, the first one gets it.
   */
  async #knows(first: SeenBucket, hot: SeenBucket, deadline: Deadline): Promise<boolean> {
    if (hot.generation <= first.generation) return true;
    const key = this.#items.keyOf(first, 0);
    const { ok } = await this.#context.store.update(
      key,
      { set: { [GENERATION]: hot.generation } },
      [
        { is: "=", name: "shard_count", value: first.shardCount },
        asSeen(GENERATION, first.generation),
      ],
      { timeoutMs: leftFor(deadline, WORK) },
    );
    this.#states.forget(key.PK);
    return ok;
  }

  async #restoreLost(name: BucketName, shard: number, deadline: Deadline): Promise<void> {
    const found = await this.#read(name, shard, deadline);
    if (found === undefined) await this.#announced.make(name, shard, deadline);
  }

  #factor(first: SeenBucket, sign: Sign, loads: BucketLoads): number {
    const room = { largestMilli: loads.largestOf(first), maxShards: this.#maxShards };
    return splitFactor(first, sign, loads.of(first), room, this.#context.clock());
  }

  #read(name: BucketName, shard: number, deadline: Deadline): Promise<SeenBucket | undefined> {
    return this.#items.bucketOf(name, shard, leftFor(deadline, WORK));
  }
}

/** Returns how to create a missing shard, given the one it is split from, and the first. */
function wayTo(shard: number, from: SeenBucket | undefined, first: SeenBucket) {
  if (from === undefined) return originOf(shard) === 0 ? "none" : "origin";
  // The two were merged, and the first shard will say so: the origin serves for both.
  if (from.generation > first.generation) return "none";
  if (from.shardCount > countBefore(shard)) return "restore";
  return isPinned(from) ? "raise" : "split";
}

/**
 * Returns the condition for the new half. An item may exist although the shard was never split: it
 * was left behind when the bucket was deleted, and the new one replaces it.
 */
function placeOf(old: SeenBucket | undefined): Condition {
  if (old === undefined) return [NO_BUCKET];
  return [{ is: "=", name: "rf", value: old.refilledAtMs }, asSeen(REBASES, old.rebases)];
}

/** Numbers the rebases of a new item so that cached states of the old one do not fit it. */
function rebasesAfter(old: SeenBucket | undefined, epochMs: number): number {
  return old?.refilledAtMs === epochMs ? old.rebases + 1 : 0;
}
