/**
 * Charges one leg, whatever number of shards its bucket has.
 *
 * One shard, picked by what was seen of it, nearly always decides. When it has too little, others
 * are tried; when none has enough, all are read, and either they give a part each or the leg is
 * refused. A shard that is too busy is passed by and split.
 */

import { LRUCache } from "lru-cache";
import { InfrastructureError, RateLimiterUnavailable } from "../../domain/errors.ts";
import type { Timer } from "../../domain/timer.ts";
import type { RecordContext } from "../../records/record-context.ts";
import type { Leg } from "../bucket-store.ts";
import { AllShards } from "./all-shards.ts";
import type { SeenBucket } from "./image.ts";
import type { LegCharge } from "./leg-charge.ts";
import type { LegViews } from "./leg-views.ts";
import { linkIn } from "./link-checks.ts";
import { balancesOf, type ShardCharge, type ShardCharger } from "./shard-charger.ts";
import { ShardChoice } from "./shard-choice.ts";
import { idOf, type Splitter } from "./splitter.ts";
import { type Busy, ThrottledLines } from "./throttled-lines.ts";
import type { Views } from "./views.ts";
import { isSaturated } from "./writes-meter.ts";

/** How many shards are tried one by one before all are looked at: at least so many, or this part. */
const TRIES_MIN = 3;
const TRIED_PART = 1 / 8;
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
  readonly #legViews: LegViews;
  readonly #shards: ShardCharger;
  readonly #splitter: Splitter;
  readonly #all: AllShards;
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
    this.#legViews = legViews;
    this.#shards = shards;
    this.#splitter = splitter;
    this.#all = new AllShards(context, views, legViews, shards, splitter);
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
    if (isSaturated(bucket, nowMs)) await this.#relieve(bucket, deadline);
    const parts = [{ shard, amountsMilli: leg.amountsMilli }];
    return { kind: "charged", parts, link: linkIn(bucket), balancesMilli };
  }

  /** Splits, if it can and may. The call was charged, and goes on whatever comes of it. */
  async #relieve(bucket: SeenBucket, deadline: number): Promise<void> {
    try {
      await this.#splitter.relieve(bucket, "exhausted", deadline);
    } catch (error) {
      if (!(error instanceof InfrastructureError)) throw error;
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

  /** A shard that has enough after all is charged like any other. */
  async #together(
    leg: Leg,
    count: number,
    sinceMs: number,
    deadline: number,
  ): Promise<LegCharge | Busy | undefined> {
    const decided = await this.#all.charge(leg, count, sinceMs, deadline);
    if (decided?.kind !== "enough") return decided;
    const { shard } = decided;
    const result = await this.#shards.charge(leg, shard, deadline);
    if (result.kind === "charged") return this.#charged(leg, result.bucket, deadline);
    if (result.kind === "hot") return this.#throttled(leg, shard, result.cause, deadline);
    return result.kind === "outdated" ? result : undefined;
  }
}

/** Nothing was written because something was too busy. */
function isThrottling(error: unknown): error is RateLimiterUnavailable {
  return (
    error instanceof RateLimiterUnavailable && error.reason === "throttled" && error.nothingWritten
  );
}
