/** Charges one shard: decides from the view, writes, and decides again from what the store says. */

import { shardRate } from "../../core/shares.ts";
import { RateLimiterUnavailable } from "../../domain/errors.ts";
import type { Timer } from "../../domain/timer.ts";
import { ACQUIRES, encodeBucket } from "../../records/bucket-item.ts";
import { bucketKey, entityKey, namespaceIdKey } from "../../records/keys.ts";
import { refuseInactive } from "../../records/namespace-state.ts";
import { stamped } from "../../records/python-attributes.ts";
import type { RecordContext } from "../../records/record-context.ts";
import type { Item, Key } from "../../storage/item.ts";
import type { Leg } from "../bucket-store.ts";
import { byPolicy, linkInRecord, ownerStamps } from "../recorded-link.ts";
import { balanceOf, decoded, limitImage, looksFull, type SeenBucket } from "./image.ts";
import type { LinkChecks } from "./link-checks.ts";
import { newBucket } from "./new-bucket.ts";
import { planTake } from "./take.ts";
import { amountsOf, exceeds, type Guess, type TakeContext, type TakePlan } from "./take-plan.ts";
import type { View, Views } from "./views.ts";
import { NO_BUCKET, type WritePlan } from "./write-plan.ts";

/** What came of one shard. */
export type ShardCharge =
  | { readonly kind: "charged"; readonly bucket: SeenBucket }
  /** With what the shard has; `bucket` is missing when there is none and a full one is too small. */
  | {
      readonly kind: "refused";
      readonly balancesMilli: readonly number[];
      readonly bucket: SeenBucket | undefined;
    }
  | { readonly kind: "outdated" }
  /** Not the first shard, and not there. */
  | { readonly kind: "missing" }
  /** The store throttles its key range. */
  | { readonly kind: "hot"; readonly cause: RateLimiterUnavailable };

export interface ChargerOptions {
  readonly ttlMultiplier: number;
  readonly timer: Timer;
}

/** A failed write shows the item, so the first repetitions need no pause. */
const QUICK_ATTEMPTS = 4;
const PAUSE_MS_MAX = 32;
/** By how much deadlines may differ where calls share a look. */
const JOIN_MS = 200;

/** A take that is written. */
interface Take {
  readonly key: Key;
  readonly leg: Leg;
  /** As it was when the take was planned, and when that was. */
  readonly bucket: SeenBucket;
  readonly nowMs: number;
  readonly plan: WritePlan;
  /** Of those the outcome teaches something. */
  readonly guesses: readonly Guess[];
  readonly deadline: number;
}

/** A look that is under way. */
interface Look {
  readonly change: number;
  readonly deadline: number;
  readonly look: Promise<View>;
}

export class ShardCharger {
  readonly #context: RecordContext;
  readonly #views: Views;
  readonly #links: LinkChecks;
  readonly #options: ChargerOptions;
  /** Under way; void for those who come after a change of this client's own. */
  readonly #looks = new Map<string, Look>();

  constructor(context: RecordContext, views: Views, links: LinkChecks, options: ChargerOptions) {
    this.#context = context;
    this.#views = views;
    this.#links = links;
    this.#options = options;
  }

  /** Charges the shard or refuses it, by the newest state of the item. */
  async charge(leg: Leg, shard: number, deadline: number): Promise<ShardCharge> {
    const key = this.key(leg, shard);
    try {
      if (this.#links.isDue(key)) await this.#links.check(key, this.left(deadline));
      const known = this.#views.get(key.PK);
      const unknown = known === undefined || (known.bucket === undefined && shard > 0);
      let result: ShardCharge | View = unknown
        ? await this.look(leg, shard, deadline)
        : await this.#step(key, leg, known, false, deadline);
      for (let attempt = 1; !("kind" in result); attempt += 1) {
        await this.pause(attempt, deadline);
        if (result.bucket === undefined && shard > 0) return { kind: "missing" };
        result = await this.#step(key, leg, result, true, deadline);
      }
      return result;
    } catch (error) {
      if (error instanceof RateLimiterUnavailable && error.keyRange) {
        return { kind: "hot", cause: error };
      }
      throw error;
    }
  }

  /** Brings a shard in line with the limits of the leg, if it is there and they are newer. */
  async apply(leg: Leg, shard: number, deadline: number): Promise<void> {
    const key = this.key(leg, shard);
    let item = await this.#context.store.get(key, { consistent: true });
    for (let attempt = 0; item !== undefined; attempt += 1) {
      if (attempt > 0) await this.pause(attempt, deadline);
      const nowMs = this.#context.clock();
      const bucket = decoded(item);
      if (bucket === undefined) return;
      const plan = this.plan(bucket, leg, nowMs);
      if (plan.kind !== "write") return;
      const result = await this.#context.store.update(key, plan.plan.change, plan.plan.condition);
      // What was on its way meanwhile shows the bucket as it was before.
      this.#views.forget(key.PK);
      this.#views.watch(key.PK)(decoded(result.item), nowMs);
      if (result.ok) return;
      item = result.item;
    }
  }

  /** What the shard is, as of now. Calls that come while one looks see the same. */
  async look(leg: Leg, shard: number, deadline: number): Promise<View> {
    const key = this.key(leg, shard);
    const change = this.#views.changeOf(key.PK);
    const others = this.#looks.get(key.PK);
    // Who has more or less time than the others looks for itself.
    const joins = others?.change === change && Math.abs(others.deadline - deadline) <= JOIN_MS;
    if (joins) return others.look;
    const look = this.#look(key, deadline);
    this.#looks.set(key.PK, { change, deadline, look });
    try {
      return await look;
    } finally {
      if (this.#looks.get(key.PK)?.look === look) this.#looks.delete(key.PK);
    }
  }

  async #look(key: Key, deadline: number): Promise<View> {
    const known = this.#views.get(key.PK) !== undefined;
    const options = { consistent: true, timeoutMs: this.left(deadline), hotKey: "raise" } as const;
    const see = this.#views.watch(key.PK);
    const bucket = decoded(await this.#context.store.get(key, options));
    if (!known) this.#links.met(key, bucket);
    return see(bucket, this.#context.clock());
  }

  plan(bucket: SeenBucket, leg: Leg, nowMs: number, context: Partial<TakeContext> = {}): TakePlan {
    const { ttlMultiplier } = this.#options;
    return planTake(bucket, leg, { nowMs, ttlMultiplier, trustFull: () => true, ...context });
  }

  /** Of the time before its epoch, which a split or other limits have moved, a bucket says nothing. */
  since(askedMs: number, { refilledAtMs }: SeenBucket): number {
    return Math.min(this.#context.clock(), Math.max(askedMs, refilledAtMs));
  }

  key({ entityId, resource }: Leg, shard: number): Key {
    return bucketKey(this.#context.namespaceId, entityId, resource, shard);
  }

  left(deadline: number): number {
    return Math.max(1, deadline - this.#options.timer.nowMs());
  }

  /** Conflicts are taken up at once a few times, then with jitter, until the time is over. */
  async pause(attempt: number, deadline: number): Promise<void> {
    const leftMs = deadline - this.#options.timer.nowMs();
    if (leftMs <= 0) {
      throw new RateLimiterUnavailable("The bucket changed too often to be charged in time", {
        reason: "throttled",
        nothingWritten: true,
      });
    }
    if (attempt <= QUICK_ATTEMPTS) return;
    const boundMs = Math.min(PAUSE_MS_MAX, 2 ** (attempt - QUICK_ATTEMPTS), leftMs);
    await this.#options.timer.sleep(this.#context.random() * boundMs);
  }

  /** Brings new limits along with a refusal; when they do not get there, the next call tries. */
  async bringLimits(key: Key, limits: WritePlan, deadline: number): Promise<View | undefined> {
    const nowMs = this.#context.clock();
    const see = this.#views.watch(key.PK);
    try {
      const options = { timeoutMs: this.left(deadline) };
      const { change, condition } = limits;
      const result = await this.#context.store.update(key, change, condition, options);
      const view = see(decoded(result.item), nowMs);
      return result.ok ? undefined : view;
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      return undefined;
    }
  }

  /**
   * One call to the store, and what it led to: an end, or a fresh view to go on from. Only what the
   * store has just shown ends a call without a write.
   */
  async #step(
    key: Key,
    leg: Leg,
    { bucket }: View,
    fresh: boolean,
    deadline: number,
  ): Promise<ShardCharge | View> {
    const nowMs = this.#context.clock();
    if (bucket === undefined) return this.#begin(key, leg, fresh, nowMs, deadline);
    const trustFull = (name: string) => fresh || this.#views.trustsFull(key.PK, name);
    const plan = this.plan(bucket, leg, nowMs, { trustFull });
    if (plan.kind === "write") {
      const guesses = fresh ? [] : plan.guesses.filter(({ lookedFull }) => lookedFull);
      const unexpect = this.#views.expect(key.PK, bucket, plan.guesses);
      const seen = { key, leg, bucket, deadline, nowMs };
      try {
        return await this.#write({ ...seen, plan: plan.plan, guesses });
      } catch (error) {
        const isVoid = error instanceof RateLimiterUnavailable && error.nothingWritten;
        if (isVoid) unexpect(amountsOf(leg));
        throw error;
      }
    }
    if (!fresh) return this.look(leg, bucket.shard, deadline);
    if (plan.kind === "refused") return this.#refuse(key, bucket, plan, deadline);
    return plan.kind === "nothing" ? { kind: "charged", bucket } : plan;
  }

  async #write(take: Take, isSecond = false): Promise<ShardCharge | View> {
    const { key, leg, guesses, nowMs, deadline } = take;
    const { change, condition } = take.plan;
    const options = { timeoutMs: this.left(deadline), hotKey: "raise" } as const;
    const see = this.#views.watch(key.PK);
    const result = await this.#context.store.update(key, change, condition, options);
    const view = see(decoded(result.item), nowMs);
    const { bucket } = view;
    if (bucket === undefined) return view;
    if (result.ok) {
      this.#views.learn(key.PK, guesses);
      return { kind: "charged", bucket };
    }
    // Somebody who planned later may have been served before. As of the plan the bucket was not
    // full then, and yet full is what it is going to look like the next time.
    this.#views.learn(key.PK, sightings(bucket, guesses, this.#context.clock()));
    // What the item held when it was asked decides. Counting the time the answer took would keep
    // all clients of a scarce bucket asking until one of them gives up.
    const again = this.plan(bucket, leg, this.since(nowMs, bucket));
    if (again.kind === "refused") {
      // Unless it is full by now: a late call is not one of many that hunt for every token.
      if (this.#isFull(bucket, leg)) return view;
      return this.#refuse(key, bucket, again, deadline);
    }
    if (again.kind !== "write" || isSecond || !isSameEpoch(take.bucket, bucket)) return view;
    if (again.guesses.length === 0 || again.guesses.some(({ full }) => full)) return view;
    // Somebody who was asked later was served before. As of then the bucket is below full, and
    // whoever else comes in between is later still, so the same moment serves for another try.
    return this.#write({ ...take, bucket, plan: again.plan, guesses: [] }, true);
  }

  /** Whether the bucket has all it can hold of what the leg asks for. */
  #isFull(bucket: SeenBucket, leg: Leg): boolean {
    const plan = this.plan(bucket, leg, this.#context.clock());
    return plan.kind === "write" && plan.guesses.every(({ full }) => full);
  }

  async #refuse(
    key: Key,
    bucket: SeenBucket,
    { balancesMilli, limitsOnly }: Extract<TakePlan, { kind: "refused" }>,
    deadline: number,
  ): Promise<ShardCharge | View> {
    const view =
      limitsOnly === undefined ? undefined : await this.bringLimits(key, limitsOnly, deadline);
    return view ?? { kind: "refused", balancesMilli, bucket };
  }

  /** There is no bucket, as far as one knows. */
  async #begin(
    key: Key,
    leg: Leg,
    fresh: boolean,
    nowMs: number,
    deadline: number,
  ): Promise<ShardCharge | View> {
    const full = fullBalances(leg);
    if (!exceeds(leg.amountsMilli, full)) return this.#create(key, leg, full, nowMs, deadline);
    if (fresh) return { kind: "refused", balancesMilli: full, bucket: undefined };
    return this.look(leg, 0, deadline);
  }

  /** A full bucket with the amounts taken; somebody else's, if they were faster. */
  async #create(
    key: Key,
    leg: Leg,
    full: readonly number[],
    nowMs: number,
    deadline: number,
  ): Promise<ShardCharge | View> {
    const left = full.map((capacity, at) => capacity - (leg.amountsMilli[at] ?? 0));
    const { cascade } = leg.config;
    const fresh = leg.linkIsFresh && cascade === undefined;
    const record = fresh ? undefined : await this.#record(leg, deadline);
    const recorded = fresh ? leg.link : linkInRecord(record);
    const link = cascade === undefined ? recorded : byPolicy(recorded, cascade);
    const bucket = {
      ...newBucket({ ...leg, link }, left, nowMs, this.#options.ttlMultiplier),
      ...(cascade === undefined ? {} : { python: stamped(ownerStamps(record)) }),
    };
    const takes = leg.amountsMilli.some((amount) => amount > 0);
    const item = {
      ...encodeBucket(this.#context.namespaceId, bucket),
      ...(takes ? { [ACQUIRES]: 1 } : {}),
    };
    const see = this.#views.watch(key.PK);
    const result = await this.#context.store.put(item, [NO_BUCKET], {
      timeoutMs: this.left(deadline),
    });
    if (!result.ok) return see(decoded(result.item), nowMs);
    see(bucket, nowMs);
    this.#links.met(key, bucket);
    return { kind: "charged", bucket };
  }

  /**
   * A bucket that this process has seen is gone: it expired, or it was deleted. If its namespace
   * was, no bucket is created. The two keys are in two requests because a policy for one namespace
   * allows the registry only in a request of its own.
   */
  async #record(leg: Leg, deadline: number): Promise<Item | undefined> {
    const { namespaceId, store } = this.#context;
    const timeoutMs = this.left(deadline);
    const [record, namespace] = await Promise.all([
      store.get(entityKey(namespaceId, leg.entityId), { consistent: true, timeoutMs }),
      store.get(namespaceIdKey(namespaceId), { timeoutMs }),
    ]);
    refuseInactive(namespaceId, namespace);
    return record;
  }
}

/** Whether both tell balances relative to the same moment. */
function isSameEpoch(one: SeenBucket, other: SeenBucket): boolean {
  return (
    one.refilledAtMs === other.refilledAtMs &&
    one.rebases === other.rebases &&
    one.shardCount === other.shardCount
  );
}

/** Which of the limits that looked full are. */
function sightings(bucket: SeenBucket, guesses: readonly Guess[], nowMs: number) {
  return guesses.flatMap(({ limitName }) => {
    const stored = bucket.limits.get(limitName);
    if (stored === undefined) return [];
    return [{ limitName, full: looksFull(limitImage(bucket, stored, nowMs)) }];
  });
}

export function fullBalances(leg: Leg): readonly number[] {
  return leg.config.limits.map(({ rate }) => rate.capacityMilli);
}

/** What the shard has of the limits of the leg. */
export function balancesOf(bucket: SeenBucket, leg: Leg, nowMs: number): readonly number[] {
  return leg.config.limits.map(({ name, rate }) => {
    const stored = bucket.limits.get(name);
    if (stored !== undefined) return balanceOf(limitImage(bucket, stored, nowMs));
    return shardRate(rate, bucket.shard, bucket.shardCount).capacityMilli;
  });
}
