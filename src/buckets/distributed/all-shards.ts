/**
 * All shards of a bucket at once, for a leg of which several shards had too little. Either one has
 * enough after all, or they give a part each, or the leg is refused.
 */

import { randomBytes } from "../../domain/chance.ts";
import type { RecordContext } from "../../records/record-context.ts";
import type { Leg, ShardPart } from "../bucket-store.ts";
import { decoded, type SeenBucket } from "./image.ts";
import type { LegCharge } from "./leg-charge.ts";
import { asking, type LegViews } from "./leg-views.ts";
import { linkIn } from "./link-checks.ts";
import type { ShardCharger } from "./shard-charger.ts";
import { bornShards, missingShard, type ShardSet } from "./shard-set.ts";
import type { Splitter } from "./splitter.ts";
import { type Offer, spreadOver, sumOf } from "./spread.ts";
import { amountsOf, exceeds } from "./take-plan.ts";
import type { Views } from "./views.ts";
import type { WritePlan } from "./write-plan.ts";
import { TRANSACTED_MS } from "./writes-meter.ts";

/** Nothing is charged yet: the shard will do. */
export interface Enough {
  readonly kind: "enough";
  readonly shard: number;
}

interface OpenOffer extends Offer {
  /** New limits that wait to be brought to the shard. */
  readonly limitsOnly: WritePlan | undefined;
}

const TOKEN_BYTES = 24;

export class AllShards {
  readonly #context: RecordContext;
  readonly #views: Views;
  readonly #legViews: LegViews;
  readonly #shards: ShardCharger;
  readonly #splitter: Splitter;

  constructor(
    context: RecordContext,
    views: Views,
    legViews: LegViews,
    shards: ShardCharger,
    splitter: Splitter,
  ) {
    this.#context = context;
    this.#views = views;
    this.#legViews = legViews;
    this.#shards = shards;
    this.#splitter = splitter;
  }

  /**
   * `sinceMs`: when the call began to go from shard to shard. `undefined`: the shards changed
   * meanwhile.
   */
  async charge(
    leg: Leg,
    count: number,
    sinceMs: number,
    deadline: number,
  ): Promise<LegCharge | Enough | undefined> {
    const buckets = await this.#readAll(leg, count, deadline);
    if (buckets === undefined) return undefined;
    const nowMs = this.#context.clock();
    const then = this.#offers(leg, buckets, sinceMs);
    const now = this.#offers(leg, buckets, nowMs);
    if (then === undefined || now === undefined) return { kind: "outdated" };
    // What comes in while a call goes from shard to shard belongs to those who come after it:
    // otherwise all callers of a scarce bucket would hunt for every token.
    const balancesMilli = sumOf(leg, then);
    const full = leg.config.limits.map(({ rate }) => rate.capacityMilli);
    // Where all shards are full by now, nobody hunts: the call has only taken long.
    const isFull = !exceeds(full, sumOf(leg, now)) && !exceeds(leg.amountsMilli, full);
    if (exceeds(leg.amountsMilli, balancesMilli) && !isFull) {
      await this.#bringLimits(leg, now, deadline);
      return {
        kind: "refused",
        balancesMilli: balancesMilli.map((sum, at) => Math.min(sum, full[at] as number)),
      };
    }
    const able = now.filter(({ balancesMilli: has }) => !exceeds(leg.amountsMilli, has));
    const enough = able[Math.floor(this.#context.random() * able.length)];
    if (enough !== undefined) return { kind: "enough", shard: enough.shard };
    return this.#spread(leg, buckets, spreadOver(leg, now), deadline);
  }

  /** What each shard would give at a moment; `undefined` when the limits of the leg are outdated. */
  #offers(leg: Leg, buckets: ShardSet<SeenBucket>, nowMs: number): OpenOffer[] | undefined {
    const offers = [];
    for (const [shard, bucket] of buckets) {
      const plan = this.#shards.plan(bucket, asking(leg), this.#shards.since(nowMs, bucket));
      if (plan.kind === "outdated") return undefined;
      if (plan.kind !== "refused") continue;
      const { balancesMilli, limitsOnly } = plan;
      offers.push({ shard, balancesMilli, limitsOnly });
    }
    return offers;
  }

  async #bringLimits(leg: Leg, offers: readonly OpenOffer[], deadline: number): Promise<void> {
    await Promise.all(
      offers.map(async ({ shard, limitsOnly }) => {
        if (limitsOnly === undefined) return;
        await this.#shards.bringLimits(this.#shards.key(leg, shard), limitsOnly, deadline);
      }),
    );
  }

  /** All parts in one transaction; `undefined` when a shard had less than it had shown. */
  async #spread(
    leg: Leg,
    buckets: ShardSet<SeenBucket>,
    parts: readonly ShardPart[],
    deadline: number,
  ): Promise<LegCharge | undefined> {
    const { store, clock, random } = this.#context;
    const nowMs = clock();
    const keys = parts.map(({ shard }) => this.#shards.key(leg, shard));
    const writes = parts.flatMap(({ shard, amountsMilli }, at) => {
      const bucket = buckets.get(shard) as SeenBucket;
      const part = { ...leg, amountsMilli };
      // All parts together are one acquire.
      const once = { acquires: at === 0 ? 1 : 0, costMs: TRANSACTED_MS };
      const plan = this.#shards.plan(bucket, part, nowMs, once);
      if (plan.kind !== "write") return [];
      const { change, condition } = plan.plan;
      return [{ update: keys[at] as (typeof keys)[number], change, condition }];
    });
    if (writes.length !== parts.length) return undefined;
    const token = Buffer.from(randomBytes(random, TOKEN_BYTES)).toString("base64url");
    const options = { token, timeoutMs: this.#shards.left(deadline) };
    const watches = keys.map(({ PK }) => this.#views.watch(PK));
    const result = await store.transact(writes, options);
    if (!result.ok) {
      for (const [at, { item }] of result.failures) watches[at]?.(decoded(item), nowMs);
      return undefined;
    }
    parts.forEach(({ amountsMilli }, at) => {
      const taken = amountsOf({ ...leg, amountsMilli });
      this.#views.changed((keys[at] as (typeof keys)[number]).PK, taken);
    });
    const link = linkIn(buckets.get(parts[0]?.shard ?? 0) as SeenBucket);
    return { kind: "charged", parts, link, balancesMilli: this.#legViews.lastBalances(leg) };
  }

  /** Every shard that is there; `undefined` when shards came or went while they were read. */
  async #readAll(
    leg: Leg,
    count: number,
    deadline: number,
  ): Promise<ShardSet<SeenBucket> | undefined> {
    const keys = Array.from({ length: count }, (_, shard) => this.#shards.key(leg, shard));
    const watches = keys.map(({ PK }) => this.#views.watch(PK));
    const timeoutMs = this.#shards.left(deadline);
    const items = await this.#context.store.getMany(keys, { consistent: true, timeoutMs });
    const nowMs = this.#context.clock();
    const buckets = new Map<number, SeenBucket>();
    items.forEach((item, shard) => {
      const bucket = decoded(item);
      watches[shard]?.(bucket, nowMs);
      if (bucket !== undefined) buckets.set(shard, bucket);
    });
    for (const bucket of buckets.values()) {
      if (bucket.shardCount > count) {
        this.#legViews.correct(bucket);
        return undefined;
      }
    }
    if (buckets.get(0) === undefined) return undefined;
    const missing = missingShard(buckets);
    if (missing === undefined) return bornShards(buckets);
    await this.#splitter.bringAbout(leg, missing, deadline);
    return undefined;
  }
}
