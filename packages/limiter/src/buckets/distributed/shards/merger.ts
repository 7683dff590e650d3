/**
 * Halves the number of shards of a bucket that no longer needs them, in the background.
 *
 * Pairs are merged one by one, each in a transaction, and the first shard last: it counts all
 * shards until they are gone. Every state on the way is one that splits lead to as well, so clients
 * that know nothing of it stay exact. A pair that was merged must not be split by a client that
 * still counts it: each shard that stays gets a generation above that of the first one, and only a
 * client that has seen the first one with that generation splits it (`Splitter`). ADR 030 has the
 * proof.
 */

import { BackgroundWork } from "../../../base/background.ts";
import { boundedMap } from "../../../base/bounded-map.ts";
import { randomToken } from "../../../base/random.ts";
import { isRecent } from "../../../base/time.ts";
import { invariant } from "../../../domain/check.ts";
import { InfrastructureError } from "../../../domain/errors/errors.ts";
import { type BucketName, bucketId } from "../../../records/keys.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import type { Item } from "../../../storage/item.ts";
import { asSeen, decoded, GENERATION, MERGING, type SeenBucket } from "../plan/seen-bucket.ts";
import type { CachedStates } from "../state/cached-states.ts";
import { ShardItems } from "../state/shard-items.ts";
import { planMerge } from "./merge.ts";
import { CLAIM_MS, isOversized, mayHalve } from "./merge-policy.ts";

/** Other clients may write to the pair meanwhile; then it is planned again from what is there. */
const ATTEMPTS_MAX = 8;
const REMEMBERED_MAX = 10_000;

export interface MergerOptions {
  readonly ttlMultiplier: number;
  readonly timeoutMs: number;
  /** Clients of the Python library use the table: they make shards that they miss. */
  readonly keepsShards?: boolean | undefined;
}

/** One halving, and the items as they were last shown. */
interface Halving {
  readonly name: BucketName;
  /** How many shards there are afterwards. */
  readonly count: number;
  readonly generation: number;
  readonly items: (Item | undefined)[];
}

export class Merger {
  readonly #context: RecordContext;
  readonly #states: CachedStates;
  readonly #items: ShardItems;
  readonly #options: MergerOptions;
  readonly #triedAtMs = boundedMap<number>(REMEMBERED_MAX);
  readonly #merges = new BackgroundWork();
  #isClosed = false;
  /** An unexpected error: no call waits for the merge, so `close` throws it. */
  #failure: unknown;

  constructor(context: RecordContext, states: CachedStates, options: MergerOptions) {
    this.#context = context;
    this.#states = states;
    this.#items = new ShardItems(context, states);
    this.#options = options;
  }

  /** Checks a first shard that the store has shown; a merge runs later, in the background. */
  saw(first: SeenBucket): void {
    if (first.shardCount === 1 || first.shard !== 0 || this.#isClosed) return;
    const nowMs = this.#context.clock();
    if (this.#options.keepsShards === true || !mayHalve(first, nowMs)) return;
    const id = bucketId(first);
    if (isRecent(this.#triedAtMs.get(id), nowMs, CLAIM_MS)) return;
    this.#triedAtMs.set(id, nowMs);
    this.#merges.add(this.#merge(first));
  }

  /** Stops the merge after the pair that it works on. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#merges.idle();
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Merges. When the store fails, the next client that notices tries again. */
  async #merge(first: SeenBucket): Promise<void> {
    try {
      if (!(await this.#claims(first))) return;
      let halved: SeenBucket | undefined = first;
      while (halved !== undefined && isOversized(halved, this.#context.clock())) {
        halved = await this.halve(halved);
      }
    } catch (error) {
      if (!(error instanceof InfrastructureError)) this.#failure ??= error;
    }
  }

  /** Returns whether this client merges: of all clients that notice, only one does. */
  async #claims({ entityId, resource, shardCount }: SeenBucket): Promise<boolean> {
    const { store, clock } = this.#context;
    const nowMs = clock();
    const { ok } = await store.update(
      this.#items.keyOf({ entityId, resource }, 0),
      { set: { [MERGING]: nowMs } },
      [
        { is: "=", name: "shard_count", value: shardCount },
        { is: "<=", name: MERGING, value: nowMs - CLAIM_MS, orAbsent: true },
      ],
      { timeoutMs: this.#options.timeoutMs },
    );
    return ok;
  }

  /** Merges all pairs; returns the first shard, or `undefined` when that was not possible. */
  async halve({ entityId, resource, shardCount }: SeenBucket): Promise<SeenBucket | undefined> {
    const name = { entityId, resource };
    const { store } = this.#context;
    const keys = this.#items.keysOf(name, shardCount);
    const { timeoutMs } = this.#options;
    const items = [...(await store.getMany(keys, { consistent: true, timeoutMs }))];
    const first = decoded(items[0]);
    if (first?.shardCount !== shardCount || shardCount === 1) return undefined;
    const halving = { name, count: shardCount / 2, generation: first.generation + 1, items };
    invariant(Number.isInteger(halving.count), "the number of shards is a power of two");
    for (let shard = halving.count - 1; shard > 0; shard -= 1) {
      if (this.#isClosed || !(await this.#adopt(halving, shard))) return undefined;
    }
    return this.#mergePair(halving, 0);
  }

  /** Makes a shard one of half as many, with the new generation; whether it is. */
  async #adopt(halving: Halving, shard: number): Promise<boolean> {
    const { count, generation, items } = halving;
    const bucket = decoded(items[shard]);
    // Its share is in a shard that it descends from. Should it be created before that one gets
    // the new generation, that one has changed, and the halving ends.
    if (bucket === undefined) return true;
    if (bucket.shardCount > 2 * count) return false;
    if (bucket.shardCount > count) return (await this.#mergePair(halving, shard)) !== undefined;
    if (bucket.generation >= generation) return true;
    return this.#mark(halving, bucket);
  }

  /** Gives a shard that need not be merged the new generation: no client splits it meanwhile. */
  async #mark({ name, generation }: Halving, bucket: SeenBucket): Promise<boolean> {
    const { store } = this.#context;
    const key = this.#items.keyOf(name, bucket.shard);
    const { ok } = await store.update(
      key,
      { set: { [GENERATION]: generation } },
      [
        { is: "=", name: "shard_count", value: bucket.shardCount },
        asSeen(GENERATION, bucket.generation),
      ],
      { timeoutMs: this.#options.timeoutMs },
    );
    this.#states.forget(key.PK);
    return ok;
  }

  async #mergePair(halving: Halving, shard: number): Promise<SeenBucket | undefined> {
    const { name, count, generation, items } = halving;
    const { store, clock, random } = this.#context;
    const { ttlMultiplier, timeoutMs } = this.#options;
    const [key, other] = [this.#items.keyOf(name, shard), this.#items.keyOf(name, shard + count)];
    let [kept, gone] = [items[shard], items[shard + count]];
    const seen = decoded(kept)?.generation;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      if (kept === undefined || gone === undefined) return undefined;
      // The first shard was split, or has another generation: what was merged may split again.
      if (decoded(kept)?.generation !== seen) return undefined;
      const merge = planMerge(kept, gone, { nowMs: clock(), generation, ttlMultiplier });
      if (merge === undefined || decoded(kept)?.shardCount !== 2 * count) return undefined;
      const result = await store.transact(
        [
          { update: key, change: merge.kept.change, condition: merge.kept.condition },
          { update: other, change: merge.gone.change, condition: merge.gone.condition },
        ],
        { token: randomToken(random), timeoutMs },
      );
      this.#states.forget(other.PK);
      if (result.ok) {
        this.#states.assume(key.PK, merge.merged);
        return merge.merged;
      }
      this.#states.forget(key.PK);
      kept = result.failures.has(0) ? result.failures.get(0)?.item : kept;
      gone = result.failures.has(1) ? result.failures.get(1)?.item : gone;
    }
    return undefined;
  }
}
