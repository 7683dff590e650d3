/**
 * Buckets that any number of processes share, over any item store with conditional writes.
 *
 * A warm acquire is one write per leg and no read: the view of the bucket picks the form of the
 * write, its conditions decide, and a write that fails hands back the stored item to decide from
 * again. Legs are independent items, so when one is refused those that were charged are restored.
 */

import { RateLimiterUnavailable } from "../../domain/errors.ts";
import type { Timer } from "../../domain/timer.ts";
import type { StoredBucket } from "../../records/bucket-item.ts";
import { bucketKey, entityKey } from "../../records/keys.ts";
import type { RecordContext } from "../../records/record-context.ts";
import { ITEM_EXISTS } from "../../storage/item-store.ts";
import type {
  Adjustment,
  BucketCallOptions,
  BucketConfig,
  BucketStore,
  BucketWarning,
  ConsumeOptions,
  ConsumeResult,
  DeletedBuckets,
  Leg,
  Link,
  LinkOptions,
  StoredState,
} from "../bucket-store.ts";
import { byPolicy, linkInRecord, UNLINKED } from "../recorded-link.ts";
import { Adjuster } from "./adjuster.ts";
import { BucketItems, statesOf } from "./bucket-items.ts";
import { Cascade, type Restore } from "./cascade.ts";
import { Charger } from "./charger.ts";
import { balanceOf, decoded, limitImage } from "./image.ts";
import type { LegCharge } from "./leg-charge.ts";
import { LegViews } from "./leg-views.ts";
import { hasPolicy, LinkChecks, linkChange, linkIn } from "./link-checks.ts";
import { ShardCharger } from "./shard-charger.ts";
import { type SplitNotice, Splitter } from "./splitter.ts";
import { Views } from "./views.ts";

export interface DistributedBucketStoreOptions {
  /** How many times its filling time an idle bucket is kept; 0: for ever. */
  readonly ttlMultiplier: number;
  readonly timeoutMs: number;
  readonly timer: Timer;
  /** Told when something that was taken could not be given back, or a bucket has all its shards. */
  readonly onWarning: (warning: BucketWarning) => void;
  /** Told when a bucket has more shards than before. */
  readonly onSplit?: ((notice: SplitNotice) => void) | undefined;
}

export class DistributedBucketStore implements BucketStore {
  readonly #context: RecordContext;
  readonly #options: DistributedBucketStoreOptions;
  readonly #views = new Views();
  readonly #items: BucketItems;
  readonly #links: LinkChecks;
  readonly #shards: ShardCharger;
  readonly #legViews: LegViews;
  readonly #cascade: Cascade;
  readonly #adjuster: Adjuster;
  readonly #closing = new AbortController();
  #relinks = 0;

  constructor(context: RecordContext, options: DistributedBucketStoreOptions) {
    this.#context = context;
    this.#options = options;
    this.#items = new BucketItems(context);
    this.#links = new LinkChecks(context, this.#views, options);
    this.#shards = new ShardCharger(context, this.#views, this.#links, options);
    this.#legViews = new LegViews(context, this.#views, this.#shards);
    const splitter = new Splitter(context, this.#views, this.#links, options);
    const charger = new Charger(
      context,
      this.#views,
      this.#legViews,
      this.#shards,
      splitter,
      options.timer,
    );
    const adjuster = new Adjuster(context, this.#views, options);
    const restore: Restore = (adjustment, deadline) => adjuster.restore(adjustment, deadline);
    this.#cascade = new Cascade(charger, this.#shards, this.#legViews, restore);
    this.#adjuster = adjuster;
  }

  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  get relinks(): number {
    return this.#relinks;
  }

  /** From the view of the bucket when there is one; otherwise bucket and record are read together. */
  async linkOf(
    entityId: string,
    resource: string,
    { policy: policyOf, ...options }: LinkOptions = {},
  ): Promise<Link> {
    const { namespaceId, store, clock } = this.#context;
    const key = bucketKey(namespaceId, entityId, resource, 0);
    const seen = this.#views.get(key.PK)?.bucket;
    if (seen !== undefined) return linkIn(seen);
    const see = this.#views.watch(key.PK);
    const [item, record] = await store.getMany([key, entityKey(namespaceId, entityId)], {
      consistent: true,
      ...options,
    });
    const { bucket } = see(decoded(item), clock());
    const link = linkInRecord(record);
    if (bucket !== undefined && hasPolicy(bucket)) return linkIn(bucket);
    const policy = await policyOf?.();
    if (policy !== undefined) return bucket === undefined ? byPolicy(link, policy) : linkIn(bucket);
    if (bucket === undefined) return link;
    this.#links.met(key, bucket);
    const { timeoutMs = this.#options.timeoutMs } = options;
    await this.#links.compare(key, { entityId, link: linkIn(bucket) }, link, timeoutMs);
    return link;
  }

  async consume(legs: readonly Leg[], options: ConsumeOptions = {}): Promise<ConsumeResult> {
    const deadline = this.#deadline(options);
    if (options.speculative === false) for (const leg of legs) this.#legViews.forgetAll(leg);
    const known = this.#legViews.refusedLocally(legs);
    if (known !== undefined) {
      const local = !known.includes(undefined);
      const balancesMilli = await this.#fill(legs, known, deadline);
      return { outcome: "refused", balancesMilli, local };
    }
    const read = (some: readonly Leg[]) => this.read(some, this.#left(deadline));
    const { onRestored } = options;
    const { charges, failures } = await this.#cascade.charge(legs, { read, deadline, onRestored });
    if (failures.length > 0) throw failures[0];
    if (charges.every((charge) => charge?.kind === "charged")) {
      return { outcome: "granted", legs: charges };
    }
    if (charges.some((charge) => charge?.kind === "outdated")) return { outcome: "outdated" };
    const balances = charges.map((charge, at) =>
      charge === undefined ? undefined : balancesBefore(charge, legs[at] as Leg),
    );
    const balancesMilli = await this.#fill(legs, balances, deadline);
    return { outcome: "refused", balancesMilli, local: false };
  }

  adjust(adjustment: Adjustment, options: BucketCallOptions = {}): Promise<void> {
    return this.#adjuster.adjust(adjustment, this.#deadline(options));
  }

  restore(adjustment: Adjustment, options: BucketCallOptions = {}): Promise<void> {
    return this.#adjuster.restore(adjustment, this.#deadline(options));
  }

  async read(
    legs: readonly Leg[],
    options: BucketCallOptions = {},
  ): Promise<readonly (readonly number[])[]> {
    const { namespaceId, store, clock } = this.#context;
    const deadline = this.#deadline(options);
    const keys = legs.map((leg) => bucketKey(namespaceId, leg.entityId, leg.resource, 0));
    const watches = keys.map(({ PK }) => this.#views.watch(PK));
    const items = await store.getMany(keys, { consistent: true, ...options });
    return Promise.all(
      items.map(async (item, at) => {
        const leg = legs[at] as Leg;
        const first = decoded(item);
        watches[at]?.(first, clock());
        if (first === undefined) return leg.config.limits.map(({ rate }) => rate.capacityMilli);
        const shards = await this.#items.shardsOf(first, () => this.#left(deadline));
        return leg.config.limits.map(({ name, rate }) =>
          Math.min(rate.capacityMilli, total(shards, name, clock()) ?? rate.capacityMilli),
        );
      }),
    );
  }

  async list(entityId: string, resource?: string): Promise<StoredState[]> {
    const states: StoredState[] = [];
    for await (const bucket of this.#items.ofEntity(entityId, resource)) {
      states.push(...statesOf(bucket, this.#context.clock()));
    }
    return states;
  }

  async *listResource(resource: string): AsyncGenerator<StoredState> {
    for await (const bucket of this.#items.ofResource(resource)) {
      yield* statesOf(bucket, this.#context.clock());
    }
  }

  async reconfigure(entityId: string, resource: string, config: BucketConfig): Promise<void> {
    const leg = {
      entityId,
      resource,
      config,
      amountsMilli: config.limits.map(() => 0),
      link: UNLINKED,
      linkIsFresh: false,
    };
    for (const shard of await this.#items.shardNumbers(entityId, resource)) {
      await this.#shards.apply(leg, shard, this.#deadline({}));
    }
  }

  async relink(entityId: string, link: Link): Promise<void> {
    for (const key of await this.#items.allKeysOf(entityId)) {
      await this.#context.store.update(key, linkChange(link), [ITEM_EXISTS]);
      this.#views.forget(key.PK);
    }
    this.#relinks += 1;
  }

  /** Buckets are items here, and the purge of a namespace finds all items. */
  async deleteAll(): Promise<void> {
    this.#views.clear();
  }

  async deleteEntity(entityId: string): Promise<DeletedBuckets> {
    const deleted = await this.#items.deleteAllOf(entityId, ({ PK }) => this.#views.forget(PK));
    this.#relinks += 1;
    return deleted;
  }

  /** Waits until what is being given back in the background has been. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([this.#links.close(), this.#adjuster.idle()]);
  }

  #deadline(options: BucketCallOptions): number {
    return this.#options.timer.nowMs() + (options.timeoutMs ?? this.#options.timeoutMs);
  }

  #left(deadline: number): BucketCallOptions {
    return { timeoutMs: Math.max(1, deadline - this.#options.timer.nowMs()) };
  }

  /**
   * Balances of the legs that nobody has looked at yet. The refusal is certain already, so a store
   * that fails now does not change it: such a leg is shown as it was last seen, or full.
   */
  async #fill(
    legs: readonly Leg[],
    known: readonly (readonly number[] | undefined)[],
    deadline: number,
  ): Promise<readonly (readonly number[])[]> {
    const missing = legs.filter((_, at) => known[at] === undefined);
    if (missing.length === 0) return known as readonly (readonly number[])[];
    let read: readonly (readonly number[])[];
    try {
      read = await this.read(missing, this.#left(deadline));
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      read = missing.map((leg) => this.#legViews.lastBalances(leg));
    }
    let next = 0;
    return known.map((balances) => balances ?? (read[next++] as readonly number[]));
  }
}

/** A leg that was charged and given back shows what it had before. */
function balancesBefore(charge: LegCharge, leg: Leg): readonly number[] | undefined {
  if (charge.kind === "outdated") return undefined;
  if (charge.kind === "refused") return charge.balancesMilli;
  return charge.balancesMilli.map((balance, at) => balance + (leg.amountsMilli[at] ?? 0));
}

/** The sum over shards; `undefined` when none has the limit. */
function total(shards: Iterable<StoredBucket>, name: string, nowMs: number): number | undefined {
  let sum: number | undefined;
  for (const shard of shards) {
    const stored = shard.limits.get(name);
    if (stored === undefined) continue;
    sum = (sum ?? 0) + balanceOf(limitImage(shard, stored, nowMs));
  }
  return sum;
}
