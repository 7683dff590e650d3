/**
 * Charges one leg, whatever number of shards its bucket has.
 *
 * One shard, picked by what was seen of it, nearly always decides. When it has too little, others
 * are tried; when none has enough, all are read, and either they give a part each or the leg is
 * refused. A shard that is too busy is passed by and split.
 */

import { LRUCache } from "lru-cache";
import { randomBytes } from "../../domain/chance.ts";
import { RateLimiterUnavailable } from "../../domain/errors.ts";
import type { RecordContext } from "../../records/record-context.ts";
import type { Leg, Link, ShardPart } from "../bucket-store.ts";
import { decoded, type SeenBucket } from "./image.ts";
import { asking, type LegViews } from "./leg-views.ts";
import { linkIn } from "./link-checks.ts";
import { balancesOf, type ShardCharge, type ShardCharger } from "./shard-charger.ts";
import { ShardChoice } from "./shard-choice.ts";
import { bornShards, missingShard } from "./shard-set.ts";
import type { Splitter } from "./splitter.ts";
import { type Offer, spreadOver, sumOf } from "./spread.ts";
import { exceeds, type TakePlan } from "./take-plan.ts";
import type { Views } from "./views.ts";
import { isExhausted, TRANSACTED_MILLI } from "./writes-meter.ts";

/** What came of a leg. */
export type LegCharge =
  | {
      readonly kind: "charged";
      readonly parts: readonly ShardPart[];
      readonly link: Link;
      readonly balancesMilli: readonly number[];
    }
  | { readonly kind: "refused"; readonly balancesMilli: readonly number[] }
  | { readonly kind: "outdated" };

/** How many shards are tried one by one before all are looked at. */
const TRIES_MAX = 3;
const TOKEN_BYTES = 24;
/** A client looks after a busy shard at most once in this time, however many calls meet it. */
const COOL_MS = 100;
const COOLED_MAX = 10_000;

/** Where a call has been. */
interface Trail {
  readonly tried: Set<number>;
  /** How often it has met a busy shard. */
  hot: number;
}

export class Charger {
  readonly #context: RecordContext;
  readonly #views: Views;
  readonly #legViews: LegViews;
  readonly #shards: ShardCharger;
  readonly #splitter: Splitter;
  readonly #choice: ShardChoice;
  readonly #cooledAtMs = new LRUCache<string, number>({
    maxSize: COOLED_MAX,
    sizeCalculation: () => 1,
  });

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
    this.#choice = new ShardChoice(legViews, context.random);
  }

  /** Charges the leg or refuses it, by the newest state of the bucket. */
  async charge(leg: Leg, deadline: number): Promise<LegCharge> {
    const trail: Trail = { tried: new Set(), hot: 0 };
    this.#splitter.note(leg);
    let result = await this.#try(leg, trail, deadline);
    for (let attempt = 1; result === undefined; attempt += 1) {
      await this.#shards.pause(attempt, deadline);
      result = await this.#try(leg, trail, deadline);
    }
    return result;
  }

  /** One shard, or all of them; `undefined` when it is to be tried again. */
  async #try(leg: Leg, trail: Trail, deadline: number): Promise<LegCharge | undefined> {
    const count = this.#legViews.countOf(leg) ?? 1;
    const shard = count === 1 ? 0 : this.#pick(leg, count, trail.tried);
    if (shard === undefined) {
      trail.tried.clear();
      return this.#together(leg, count, deadline);
    }
    const result = await this.#charge(leg, shard, deadline);
    switch (result.kind) {
      case "charged":
        return this.#charged(leg, result.bucket, deadline);
      case "refused":
        return this.#refused(result, trail.tried);
      case "missing":
        return undefined;
      case "hot":
        await this.#avoid(leg, shard, count, trail, result.cause, deadline);
        return undefined;
      default:
        return result;
    }
  }

  #pick(leg: Leg, count: number, tried: ReadonlySet<number>): number | undefined {
    if (tried.size >= TRIES_MAX) return undefined;
    return this.#choice.pick(leg, count, tried, this.#context.clock());
  }

  /** A shard that is not there is brought about; what it comes from may be too busy for that. */
  async #charge(leg: Leg, shard: number, deadline: number): Promise<ShardCharge> {
    const result = await this.#shards.charge(leg, shard, deadline);
    if (result.kind !== "missing") return result;
    try {
      await this.#splitter.bringAbout(leg, shard, deadline);
    } catch (cause) {
      if (!isThrottling(cause)) throw cause;
      return { kind: "hot", cause };
    }
    return result;
  }

  /** An unsharded bucket has said its last word; of several shards another may have enough. */
  #refused(
    { balancesMilli, bucket }: Extract<ShardCharge, { kind: "refused" }>,
    tried: Set<number>,
  ): LegCharge | undefined {
    if (bucket === undefined || bucket.shardCount === 1) return { kind: "refused", balancesMilli };
    this.#legViews.correct(bucket);
    tried.add(bucket.shard);
    return undefined;
  }

  async #charged(leg: Leg, bucket: SeenBucket, deadline: number): Promise<LegCharge> {
    const { shard, shardCount } = bucket;
    const nowMs = this.#context.clock();
    if (shard > 0) this.#legViews.correct(bucket);
    const balancesMilli =
      shardCount === 1 ? balancesOf(bucket, leg, nowMs) : this.#legViews.lastBalances(leg);
    this.#splitter.counted(leg, this.#legViews.countOf(leg) ?? shardCount, "charged");
    if (isExhausted(bucket, nowMs)) await this.#relieve(bucket, deadline);
    const parts = [{ shard, amountsMilli: leg.amountsMilli }];
    return { kind: "charged", parts, link: linkIn(bucket), balancesMilli };
  }

  /** Splits, if it can. The call goes on, whatever comes of it. */
  async #relieve(bucket: SeenBucket, deadline: number): Promise<void> {
    try {
      await this.#splitter.relieve(bucket, deadline);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
    }
  }

  /**
   * The store throttles the shard. Another one may be free; after two, or when there is none, the
   * next attempt is later: whoever hammers keeps the shard too busy even to be split.
   */
  async #avoid(
    leg: Leg,
    shard: number,
    count: number,
    trail: Trail,
    cause: RateLimiterUnavailable,
    deadline: number,
  ): Promise<void> {
    trail.tried.add(shard);
    trail.hot += 1;
    this.#legViews.overheated(leg, shard);
    this.#splitter.counted(leg, count, "throttled");
    await this.#cool(leg, shard, deadline);
    const now = this.#legViews.countOf(leg) ?? 1;
    if (now > count || (now > 1 && trail.hot === 1)) return;
    trail.tried.clear();
    await this.#shards.cool(trail.hot, cause, deadline);
  }

  /** Others may have split the shard already, and reading tells; otherwise it is time to. */
  async #cool(leg: Leg, shard: number, deadline: number): Promise<void> {
    const { PK } = this.#shards.key(leg, shard);
    const nowMs = this.#context.clock();
    const agoMs = nowMs - (this.#cooledAtMs.get(PK) ?? Number.NEGATIVE_INFINITY);
    if (agoMs >= 0 && agoMs < COOL_MS) return;
    this.#cooledAtMs.set(PK, nowMs);
    const before = this.#legViews.countOf(leg);
    try {
      const bucket = await this.#look(leg, shard, deadline);
      const learnt = (this.#legViews.countOf(leg) ?? 1) > (before ?? 1);
      if (bucket !== undefined && !learnt) await this.#splitter.relieve(bucket, deadline);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      // It cannot even be read. If there is a second shard, it tells how many there are.
      if (error.keyRange && before === undefined) await this.#look(leg, 1, deadline);
    }
  }

  async #look(leg: Leg, shard: number, deadline: number): Promise<SeenBucket | undefined> {
    const { bucket } = await this.#shards.look(leg, shard, deadline);
    if (bucket !== undefined) this.#legViews.correct(bucket);
    return bucket;
  }

  /**
   * All shards at once. One that has enough after all is charged; otherwise they give what they
   * have, or the leg is refused; `undefined` when they changed meanwhile.
   */
  async #together(leg: Leg, count: number, deadline: number): Promise<LegCharge | undefined> {
    const buckets = await this.#readAll(leg, count, deadline);
    if (buckets === undefined) return undefined;
    const nowMs = this.#context.clock();
    const plans = new Map<number, Extract<TakePlan, { kind: "refused" }>>();
    const offers: Offer[] = [];
    for (const [shard, bucket] of buckets) {
      const plan = this.#shards.plan(bucket, asking(leg), nowMs);
      if (plan.kind === "outdated") return plan;
      if (plan.kind !== "refused") continue;
      plans.set(shard, plan);
      offers.push({ shard, balancesMilli: plan.balancesMilli });
    }
    const able = offers.filter(({ balancesMilli }) => !exceeds(leg.amountsMilli, balancesMilli));
    const enough = able[Math.floor(this.#context.random() * able.length)];
    if (enough !== undefined) {
      const result = await this.#shards.charge(leg, enough.shard, deadline);
      if (result.kind === "charged") return this.#charged(leg, result.bucket, deadline);
      return result.kind === "outdated" ? result : undefined;
    }
    const balancesMilli = sumOf(leg, offers);
    if (!exceeds(leg.amountsMilli, balancesMilli)) {
      return this.#spread(leg, buckets, spreadOver(leg, offers), deadline);
    }
    await Promise.all(
      [...plans].flatMap(([shard, { limitsOnly }]) =>
        limitsOnly === undefined
          ? []
          : [this.#shards.bringLimits(this.#shards.key(leg, shard), limitsOnly, deadline)],
      ),
    );
    const full = leg.config.limits.map(({ rate }) => rate.capacityMilli);
    return {
      kind: "refused",
      balancesMilli: balancesMilli.map((sum, at) => Math.min(sum, full[at] as number)),
    };
  }

  /** All parts in one transaction; `undefined` when a shard had less than it had shown. */
  async #spread(
    leg: Leg,
    buckets: ReadonlyMap<number, SeenBucket>,
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
      const once = { acquires: at === 0 ? 1 : 0, costMilli: TRANSACTED_MILLI };
      const plan = this.#shards.plan(bucket, part, nowMs, once);
      if (plan.kind !== "write") return [];
      const { change, condition } = plan.plan;
      return [{ update: keys[at] as (typeof keys)[number], change, condition }];
    });
    if (writes.length !== parts.length) return undefined;
    const token = Buffer.from(randomBytes(random, TOKEN_BYTES)).toString("base64url");
    const options = { token, timeoutMs: this.#shards.left(deadline) };
    const result = await store.transact(writes, options);
    if (!result.ok) {
      for (const [at, { item }] of result.failures) {
        this.#views.watch((keys[at] as (typeof keys)[number]).PK)(decoded(item), nowMs);
      }
      return undefined;
    }
    const names = leg.config.limits.map(({ name }) => name);
    parts.forEach(({ amountsMilli }, at) => {
      const taken = new Map(names.map((name, place) => [name, amountsMilli[place] as number]));
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
  ): Promise<ReadonlyMap<number, SeenBucket> | undefined> {
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

/** Nothing was written because something was too busy. */
function isThrottling(error: unknown): error is RateLimiterUnavailable {
  return (
    error instanceof RateLimiterUnavailable && error.reason === "throttled" && error.nothingWritten
  );
}
