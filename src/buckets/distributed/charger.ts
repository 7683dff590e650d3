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
import type { Timer } from "../../domain/timer.ts";
import type { RecordContext } from "../../records/record-context.ts";
import type { Leg, Link, ShardPart } from "../bucket-store.ts";
import { decoded, type SeenBucket } from "./image.ts";
import { asking, type LegViews } from "./leg-views.ts";
import { linkIn } from "./link-checks.ts";
import { balancesOf, type ShardCharge, type ShardCharger } from "./shard-charger.ts";
import { ShardChoice } from "./shard-choice.ts";
import { bornShards, missingShard } from "./shard-set.ts";
import { idOf, type Splitter } from "./splitter.ts";
import { type Offer, spreadOver, sumOf } from "./spread.ts";
import { exceeds } from "./take-plan.ts";
import { type Busy, ThrottledLines } from "./throttled-lines.ts";
import type { Views } from "./views.ts";
import type { WritePlan } from "./write-plan.ts";
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

/** How many shards are tried one by one before all are looked at: at least so many, or this part. */
const TRIES_MIN = 3;
const TRIED_PART = 1 / 8;
const TOKEN_BYTES = 24;
/** A client looks after a busy shard at most once in this time, however many calls meet it. */
const COOL_MS = 100;
const COOLED_MAX = 10_000;

/** One attempt at a leg. */
interface Trail {
  /** When it began. */
  readonly sinceMs: number;
  readonly isFirst: boolean;
  readonly tried: Set<number>;
}

export class Charger {
  readonly #context: RecordContext;
  readonly #views: Views;
  readonly #legViews: LegViews;
  readonly #shards: ShardCharger;
  readonly #splitter: Splitter;
  readonly #choice: ShardChoice;
  readonly #lines: ThrottledLines;
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
    timer: Timer,
  ) {
    this.#context = context;
    this.#views = views;
    this.#legViews = legViews;
    this.#shards = shards;
    this.#splitter = splitter;
    this.#choice = new ShardChoice(legViews, context.random);
    this.#lines = new ThrottledLines(timer, context.random);
  }

  /** Charges the leg or refuses it, by the newest state of the bucket. */
  async charge(leg: Leg, deadline: number): Promise<LegCharge> {
    this.#splitter.note(leg);
    const first = await this.#attempt(leg, true, deadline);
    if (first.kind !== "busy") return first;
    return this.#lines.through(idOf(leg), first, deadline, () =>
      this.#attempt(leg, false, deadline),
    );
  }

  /** From shard to shard, until it is decided or one is too busy. */
  async #attempt(leg: Leg, isFirst: boolean, deadline: number): Promise<LegCharge | Busy> {
    const trail: Trail = { sinceMs: this.#context.clock(), isFirst, tried: new Set() };
    let result = await this.#try(leg, trail, deadline);
    for (let attempt = 1; result === undefined; attempt += 1) {
      await this.#shards.pause(attempt, deadline);
      result = await this.#try(leg, trail, deadline);
    }
    return result;
  }

  /** One shard, or all of them; `undefined` when it is to be tried again. */
  async #try(leg: Leg, trail: Trail, deadline: number): Promise<LegCharge | Busy | undefined> {
    const { isFirst, tried } = trail;
    const count = this.#legViews.countOf(leg) ?? 1;
    const shard = count === 1 ? 0 : this.#pick(leg, count, tried);
    if (shard === undefined) {
      tried.clear();
      return this.#together(leg, count, trail.sinceMs, deadline);
    }
    if (this.#legViews.isHot(leg, shard, this.#context.clock())) {
      const refused = this.#refusedForBusy(leg);
      if (refused !== undefined) return refused;
    }
    const result = await this.#charge(leg, shard, deadline);
    switch (result.kind) {
      case "charged":
        if (isFirst) this.#splitter.counted(leg, this.#legViews.countOf(leg) ?? 1, "charged");
        return this.#charged(leg, result.bucket, deadline);
      case "refused":
        return this.#refused(result, tried);
      case "missing":
        return undefined;
      case "hot":
        if (isFirst) this.#splitter.counted(leg, count, "throttled");
        return this.#throttled(leg, shard, result.cause, deadline);
      default:
        return result;
    }
  }

  #pick(leg: Leg, count: number, tried: ReadonlySet<number>): number | undefined {
    if (tried.size >= Math.max(TRIES_MIN, count * TRIED_PART)) return undefined;
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
    if (isExhausted(bucket, nowMs)) await this.#relieve(bucket, deadline);
    const parts = [{ shard, amountsMilli: leg.amountsMilli }];
    return { kind: "charged", parts, link: linkIn(bucket), balancesMilli };
  }

  /** Splits, if it can. The call goes on, whatever comes of it. */
  async #relieve(bucket: SeenBucket, deadline: number): Promise<void> {
    try {
      await this.#splitter.relieve(bucket, "exhausted", deadline);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
    }
  }

  /**
   * A busy bucket of which nearly everything is taken: tokens that come in are taken by those who
   * get through, and whoever waits for them only keeps it busy.
   */
  #refusedForBusy(leg: Leg): LegCharge | undefined {
    const scarce = this.#legViews.scarceLimits(leg);
    if (!scarce.includes(true)) return undefined;
    const balancesMilli = this.#legViews
      .lastBalances(leg)
      .map((balance, at) => (scarce[at] === true ? Math.min(0, balance) : balance));
    return { kind: "refused", balancesMilli };
  }

  /** The store throttles the shard. */
  async #throttled(
    leg: Leg,
    shard: number,
    cause: RateLimiterUnavailable,
    deadline: number,
  ): Promise<LegCharge | Busy> {
    this.#legViews.overheated(leg, shard);
    await this.#cool(leg, shard, deadline);
    return this.#refusedForBusy(leg) ?? { kind: "busy", cause };
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
      if (bucket === undefined || learnt) return;
      // More shards would let nobody take more.
      if (this.#legViews.scarceLimits(leg).includes(true)) return;
      await this.#splitter.relieve(bucket, "throttled", deadline);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      // It cannot even be read. If there is a second shard, it tells how many there are.
      if (error.keyRange && before === undefined) await this.#lookQuietly(leg, 1, deadline);
    }
  }

  async #lookQuietly(leg: Leg, shard: number, deadline: number): Promise<void> {
    try {
      await this.#look(leg, shard, deadline);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
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
  async #together(
    leg: Leg,
    count: number,
    sinceMs: number,
    deadline: number,
  ): Promise<LegCharge | Busy | undefined> {
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
    if (enough === undefined) return this.#spread(leg, buckets, spreadOver(leg, now), deadline);
    const result = await this.#shards.charge(leg, enough.shard, deadline);
    if (result.kind === "charged") return this.#charged(leg, result.bucket, deadline);
    if (result.kind === "hot") return this.#throttled(leg, enough.shard, result.cause, deadline);
    return result.kind === "outdated" ? result : undefined;
  }

  /** What each shard would give at a moment; `undefined` when the limits of the leg are outdated. */
  #offers(
    leg: Leg,
    buckets: ReadonlyMap<number, SeenBucket>,
    nowMs: number,
  ): (Offer & { readonly limitsOnly: WritePlan | undefined })[] | undefined {
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

  async #bringLimits(
    leg: Leg,
    offers: readonly { readonly shard: number; readonly limitsOnly: WritePlan | undefined }[],
    deadline: number,
  ): Promise<void> {
    await Promise.all(
      offers.flatMap(({ shard, limitsOnly }) =>
        limitsOnly === undefined
          ? []
          : [this.#shards.bringLimits(this.#shards.key(leg, shard), limitsOnly, deadline)],
      ),
    );
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
