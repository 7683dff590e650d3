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
import type { Key } from "../../storage/item.ts";
import { ITEM_EXISTS } from "../../storage/item-store.ts";
import type {
  Adjustment,
  BucketCallOptions,
  BucketConfig,
  BucketStore,
  ConsumeOptions,
  ConsumeResult,
  Leg,
  LegOutcome,
  Link,
  RestoreWarning,
  StoredState,
} from "../bucket-store.ts";
import { linkInRecord, UNLINKED } from "../recorded-link.ts";
import { Adjuster } from "./adjuster.ts";
import { BucketItems, statesOf } from "./bucket-items.ts";
import { Charger, type LegCharge } from "./charger.ts";
import { balanceOf, decoded, limitImage } from "./image.ts";
import { Views } from "./views.ts";

export interface DistributedBucketStoreOptions {
  /** How many times its filling time an idle bucket is kept; 0: for ever. */
  readonly ttlMultiplier: number;
  readonly timeoutMs: number;
  readonly timer: Timer;
  /** Told when something that was taken could not be given back. */
  readonly onWarning: (warning: RestoreWarning) => void;
  /** Told when a leg was given back because another one was refused or failed. */
  readonly onRestored?: ((leg: { entityId: string; resource: string }) => void) | undefined;
}

export class DistributedBucketStore implements BucketStore {
  readonly #context: RecordContext;
  readonly #options: DistributedBucketStoreOptions;
  readonly #views = new Views();
  readonly #items: BucketItems;
  readonly #charger: Charger;
  readonly #adjuster: Adjuster;

  constructor(context: RecordContext, options: DistributedBucketStoreOptions) {
    this.#context = context;
    this.#options = options;
    this.#items = new BucketItems(context);
    this.#charger = new Charger(context, this.#views, options);
    this.#adjuster = new Adjuster(context, this.#views, options);
  }

  /** From the view of the bucket when there is one; otherwise bucket and record are read together. */
  async linkOf(entityId: string, resource: string, options: BucketCallOptions = {}): Promise<Link> {
    const { namespaceId, store, clock } = this.#context;
    const key = bucketKey(namespaceId, entityId, resource, 0);
    const seen = this.#views.get(key.PK)?.bucket;
    if (seen !== undefined) return linkIn(seen);
    const see = this.#views.watch(key.PK);
    const [item, record] = await store.getMany([key, entityKey(namespaceId, entityId)], {
      consistent: true,
      ...options,
    });
    see(decoded(item), clock());
    return linkInRecord(record);
  }

  async consume(legs: readonly Leg[], options: ConsumeOptions = {}): Promise<ConsumeResult> {
    const deadline = this.#deadline(options);
    if (options.speculative === false) {
      for (const leg of legs) this.#views.forget(this.#charger.key(leg, 0).PK);
    }
    const known = this.#charger.refusedLocally(legs);
    if (known !== undefined) {
      const balancesMilli = await this.#fill(legs, known, deadline);
      return { outcome: "refused", balancesMilli, local: true };
    }
    const charges: (LegCharge | undefined)[] = legs.map(() => undefined);
    const failures: unknown[] = [];
    for (const group of this.#charger.order(legs)) {
      const settled = await Promise.allSettled(
        group.map((at) => this.#charger.charge(legs[at] as Leg, deadline)),
      );
      settled.forEach((result, position) => {
        if (result.status === "fulfilled") charges[group[position] as number] = result.value;
        else failures.push(result.reason);
      });
      const refused = group.some((at) => charges[at]?.kind !== "charged");
      if (failures.length > 0 || refused) break;
    }
    if (failures.length === 0 && charges.every((charge) => charge?.kind === "charged")) {
      return { outcome: "granted", legs: charges.map((charge) => outcomeOf(charge)) };
    }
    await this.#giveBack(legs, charges, deadline);
    if (failures.length > 0) throw failures[0];
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
    const keys = legs.map((leg) => bucketKey(namespaceId, leg.entityId, leg.resource, 0));
    const watches = keys.map(({ PK }) => this.#views.watch(PK));
    const items = await store.getMany(keys, { consistent: true, ...options });
    return Promise.all(
      items.map(async (item, at) => {
        const leg = legs[at] as Leg;
        const first = decoded(item);
        watches[at]?.(first, clock());
        if (first === undefined) return leg.config.limits.map(({ rate }) => rate.capacityMilli);
        const shards = [first, ...(await this.#items.others(first))];
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
    for await (const { shard } of this.#items.ofEntity(entityId, resource)) {
      await this.#charger.apply(leg, shard, this.#deadline({}));
    }
  }

  async relink(entityId: string, link: Link): Promise<void> {
    for await (const key of this.#items.keysOf(entityId)) {
      const parent = link.parentId;
      const change =
        parent === undefined
          ? { set: { cascade: link.cascade }, remove: ["parent_id"] }
          : { set: { cascade: link.cascade, parent_id: parent } };
      await this.#context.store.update(key, change, [ITEM_EXISTS]);
      this.#views.forget(key.PK);
    }
  }

  /** Buckets are items here, and the purge of a namespace finds all items. */
  async deleteAll(): Promise<void> {
    this.#views.clear();
  }

  async deleteEntity(entityId: string): Promise<number> {
    const keys: Key[] = [];
    for await (const key of this.#items.keysOf(entityId)) keys.push(key);
    await this.#context.store.writeMany({ deletes: keys });
    for (const { PK } of keys) this.#views.forget(PK);
    return keys.length;
  }

  /** Waits until what is being given back in the background has been. */
  async close(): Promise<void> {
    await this.#adjuster.idle();
  }

  #deadline(options: BucketCallOptions): number {
    return this.#options.timer.nowMs() + (options.timeoutMs ?? this.#options.timeoutMs);
  }

  async #giveBack(
    legs: readonly Leg[],
    charges: readonly (LegCharge | undefined)[],
    deadline: number,
  ): Promise<void> {
    const restored = legs.flatMap((leg, at) => {
      const charge = charges[at];
      if (charge?.kind !== "charged" || !leg.amountsMilli.some((amount) => amount > 0)) return [];
      this.#options.onRestored?.(leg);
      return [
        this.#adjuster.restore(
          {
            entityId: leg.entityId,
            resource: leg.resource,
            shard: charge.shard,
            config: leg.config,
            deltasMilli: leg.amountsMilli.map((amount) => -amount),
          },
          deadline,
        ),
      ];
    });
    await Promise.all(restored);
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
    const timeoutMs = Math.max(1, deadline - this.#options.timer.nowMs());
    let read: readonly (readonly number[])[];
    try {
      read = await this.read(missing, { timeoutMs });
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      read = missing.map((leg) => this.#charger.lastBalances(leg));
    }
    let next = 0;
    return known.map((balances) => balances ?? (read[next++] as readonly number[]));
  }
}

function outcomeOf(charge: LegCharge | undefined): LegOutcome {
  if (charge?.kind !== "charged") throw new Error("zae-limiter has a bug: the leg was not charged");
  return { shard: charge.shard, link: charge.link, balancesMilli: charge.balancesMilli };
}

/** A leg that was charged and given back shows what it had before. */
function balancesBefore(charge: LegCharge, leg: Leg): readonly number[] | undefined {
  if (charge.kind === "outdated") return undefined;
  if (charge.kind === "refused") return charge.balancesMilli;
  return charge.balancesMilli.map((balance, at) => balance + (leg.amountsMilli[at] ?? 0));
}

function linkIn(bucket: StoredBucket): Link {
  return { cascade: bucket.cascade, parentId: bucket.parentId };
}

/** The sum over shards; `undefined` when none has the limit. */
function total(shards: readonly StoredBucket[], name: string, nowMs: number): number | undefined {
  let sum: number | undefined;
  for (const shard of shards) {
    const stored = shard.limits.get(name);
    if (stored === undefined) continue;
    sum = (sum ?? 0) + balanceOf(limitImage(shard, stored, nowMs));
  }
  return sum;
}
