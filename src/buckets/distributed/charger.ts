/** Charges one leg: decides from the view, writes, and decides again from what the store says. */

import { RateLimiterUnavailable } from "../../domain/errors.ts";
import type { Timer } from "../../domain/timer.ts";
import { encodeBucket, WRITES_RATE } from "../../records/bucket-item.ts";
import { bucketKey, entityKey } from "../../records/keys.ts";
import type { RecordContext } from "../../records/record-context.ts";
import type { Key } from "../../storage/item.ts";
import type { Test } from "../../storage/item-store.ts";
import type { Leg, Link } from "../bucket-store.ts";
import { bucketTtl } from "../bucket-ttl.ts";
import { linkInRecord } from "../recorded-link.ts";
import { balanceOf, decoded, limitImage, looksFull, type SeenBucket } from "./image.ts";
import { planTake } from "./take.ts";
import { exceeds, type Guess, type TakeContext, type TakePlan } from "./take-plan.ts";
import type { View, Views } from "./views.ts";
import type { WritePlan } from "./write-plan.ts";

/** What came of a leg. */
export type LegCharge =
  | {
      readonly kind: "charged";
      readonly shard: number;
      readonly link: Link;
      readonly balancesMilli: readonly number[];
    }
  | { readonly kind: "refused"; readonly balancesMilli: readonly number[] }
  | { readonly kind: "outdated" };

export interface ChargerOptions {
  readonly ttlMultiplier: number;
  readonly timer: Timer;
}

/** For so long a refusal is repeated without asking. */
const LOCAL_REFUSAL_MS = 1000;
/** A failed write shows the item, so the first repetitions need no pause. */
const QUICK_ATTEMPTS = 4;
const PAUSE_MS_MAX = 32;
/** A leg with less than so many times its amount is asked first, to spare the others. */
const NEARLY_EMPTY = 2;
/** Passes when there is no item, or a stub that the Python library left behind: no bucket has no epoch. */
const NO_BUCKET: Test = { is: "absent", name: "rf" };

export class Charger {
  readonly #context: RecordContext;
  readonly #views: Views;
  readonly #options: ChargerOptions;

  constructor(context: RecordContext, views: Views, options: ChargerOptions) {
    this.#context = context;
    this.#views = views;
    this.#options = options;
  }

  /**
   * Balances of the legs that a view knows, when one of them was seen, a moment ago, to have too
   * little; `undefined` when somebody has to ask.
   */
  refusedLocally(legs: readonly Leg[]): (readonly number[] | undefined)[] | undefined {
    const nowMs = this.#context.clock();
    let refused = false;
    const balances = legs.map((leg) => {
      const view = this.#views.get(this.key(leg, 0).PK);
      if (view === undefined) return undefined;
      if (view.bucket === undefined) return this.lastBalances(leg);
      const plan = this.#plan(view.bucket, leg, nowMs);
      if (plan.kind === "outdated") return undefined;
      if (plan.kind === "refused" && plan.limitsOnly === undefined) {
        refused ||= isRecent(view, nowMs);
      }
      return plan.kind === "write" ? balancesOf(view.bucket, leg, nowMs) : plan.balancesMilli;
    });
    return refused ? balances : undefined;
  }

  /** The balances of a leg as they were last seen; full when they never were. */
  lastBalances(leg: Leg): readonly number[] {
    const bucket = this.#views.get(this.key(leg, 0).PK)?.bucket;
    return bucket === undefined
      ? fullBalances(leg)
      : balancesOf(bucket, leg, this.#context.clock());
  }

  /** Which legs go together: those that are likely to refuse go first, the others in parallel. */
  order(legs: readonly Leg[]): readonly (readonly number[])[] {
    if (legs.length === 1) return [[0]];
    const nowMs = this.#context.clock();
    const first: number[] = [];
    const rest: number[] = [];
    legs.forEach((leg, at) => {
      const bucket = this.#views.get(this.key(leg, 0).PK)?.bucket;
      const tight =
        bucket !== undefined &&
        balancesOf(bucket, leg, nowMs).some((balance, position) => {
          const amount = leg.amountsMilli[position] ?? 0;
          return amount > 0 && balance < NEARLY_EMPTY * amount;
        });
      (tight ? first : rest).push(at);
    });
    return [...first.map((at) => [at]), ...(rest.length > 0 ? [rest] : [])];
  }

  /** Charges the leg or refuses it, by the newest state of the item. */
  async charge(leg: Leg, deadline: number): Promise<LegCharge> {
    const key = this.key(leg, 0);
    const known = this.#views.get(key.PK);
    let result: LegCharge | View =
      known === undefined
        ? await this.#read(key, deadline)
        : await this.#step(key, leg, known, false, deadline);
    for (let attempt = 1; !("kind" in result); attempt += 1) {
      await this.#pause(attempt, deadline);
      result = await this.#step(key, leg, result, true, deadline);
    }
    return result;
  }

  /** Brings a shard in line with the limits of the leg, if it is there and they are newer. */
  async apply(leg: Leg, shard: number, deadline: number): Promise<void> {
    const key = this.key(leg, shard);
    let item = await this.#context.store.get(key, { consistent: true });
    for (let attempt = 0; item !== undefined; attempt += 1) {
      if (attempt > 0) await this.#pause(attempt, deadline);
      const nowMs = this.#context.clock();
      const bucket = decoded(item);
      if (bucket === undefined) return;
      const plan = this.#plan(bucket, leg, nowMs);
      if (plan.kind !== "write") return;
      const result = await this.#context.store.update(key, plan.plan.change, plan.plan.condition);
      // What was on its way meanwhile shows the bucket as it was before.
      this.#views.forget(key.PK);
      this.#views.watch(key.PK)(decoded(result.item), nowMs);
      if (result.ok) return;
      item = result.item;
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
  ): Promise<LegCharge | View> {
    const nowMs = this.#context.clock();
    if (bucket === undefined) {
      const full = fullBalances(leg);
      if (!exceeds(leg.amountsMilli, full)) return this.#create(key, leg, full, nowMs, deadline);
      return fresh ? { kind: "refused", balancesMilli: full } : this.#read(key, deadline);
    }
    const trustFull = (name: string) => fresh || this.#views.trustsFull(key.PK, name);
    const plan = this.#plan(bucket, leg, nowMs, trustFull);
    switch (plan.kind) {
      case "nothing":
        return fresh ? charged(bucket, plan.balancesMilli) : this.#read(key, deadline);
      case "outdated":
        return fresh ? plan : this.#read(key, deadline);
      case "refused":
        return fresh ? this.#refuse(key, plan, nowMs, deadline) : this.#read(key, deadline);
      case "write": {
        this.#views.expect(key.PK, bucket, plan.guesses);
        const guesses = fresh ? [] : plan.guesses.filter(({ lookedFull }) => lookedFull);
        return this.#write(key, leg, plan.plan, guesses, nowMs, deadline);
      }
    }
  }

  async #read(key: Key, deadline: number): Promise<View> {
    const options = { consistent: true, timeoutMs: this.#left(deadline) };
    const see = this.#views.watch(key.PK);
    const item = await this.#context.store.get(key, options);
    return see(decoded(item), this.#context.clock());
  }

  async #write(
    key: Key,
    leg: Leg,
    plan: WritePlan,
    guesses: readonly Guess[],
    nowMs: number,
    deadline: number,
  ): Promise<LegCharge | View> {
    const options = { timeoutMs: this.#left(deadline) };
    const see = this.#views.watch(key.PK);
    const result = await this.#context.store.update(key, plan.change, plan.condition, options);
    const view = see(decoded(result.item), nowMs);
    if (view.bucket === undefined) return view;
    if (result.ok) {
      this.#views.learn(key.PK, guesses);
      return charged(view.bucket, balancesOf(view.bucket, leg, nowMs));
    }
    this.#views.learn(key.PK, sightings(view.bucket, guesses, nowMs));
    // What the item held when it was asked decides. Counting the time the answer took would keep
    // all clients of a scarce bucket asking until one of them gives up.
    const again = this.#plan(view.bucket, leg, nowMs);
    return again.kind === "refused" ? this.#refuse(key, again, nowMs, deadline) : view;
  }

  /** Refuses, and brings new limits along; when they do not get there, the next call tries. */
  async #refuse(
    key: Key,
    { balancesMilli, limitsOnly }: Extract<TakePlan, { kind: "refused" }>,
    nowMs: number,
    deadline: number,
  ): Promise<LegCharge | View> {
    const refused = { kind: "refused", balancesMilli } as const;
    if (limitsOnly === undefined) return refused;
    const { change, condition } = limitsOnly;
    const see = this.#views.watch(key.PK);
    try {
      const options = { timeoutMs: this.#left(deadline) };
      const result = await this.#context.store.update(key, change, condition, options);
      const view = see(decoded(result.item), nowMs);
      return result.ok ? refused : view;
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      return refused;
    }
  }

  #plan(
    bucket: SeenBucket,
    leg: Leg,
    nowMs: number,
    trustFull: TakeContext["trustFull"] = () => true,
  ): TakePlan {
    const { ttlMultiplier } = this.#options;
    return planTake(bucket, leg, { nowMs, ttlMultiplier, trustFull });
  }

  /** A full bucket with the amounts taken; somebody else's, if they were faster. */
  async #create(
    key: Key,
    leg: Leg,
    full: readonly number[],
    nowMs: number,
    deadline: number,
  ): Promise<LegCharge | View> {
    const left = full.map((capacity, at) => capacity - (leg.amountsMilli[at] ?? 0));
    const link = leg.linkIsFresh ? leg.link : await this.#recordedLink(leg, deadline);
    const bucket = newBucket({ ...leg, link }, left, nowMs, this.#options.ttlMultiplier);
    const item = encodeBucket(this.#context.namespaceId, bucket);
    const see = this.#views.watch(key.PK);
    const result = await this.#context.store.put(item, [NO_BUCKET], {
      timeoutMs: this.#left(deadline),
    });
    if (!result.ok) return see(decoded(result.item), nowMs);
    see(bucket, nowMs);
    return charged(bucket, left);
  }

  async #recordedLink(leg: Leg, deadline: number): Promise<Link> {
    const key = entityKey(this.#context.namespaceId, leg.entityId);
    const options = { consistent: true, timeoutMs: this.#left(deadline) };
    return linkInRecord(await this.#context.store.get(key, options));
  }

  key(leg: Leg, shard: number): Key {
    return bucketKey(this.#context.namespaceId, leg.entityId, leg.resource, shard);
  }

  #left(deadline: number): number {
    return Math.max(1, deadline - this.#options.timer.nowMs());
  }

  /** Conflicts are taken up at once a few times, then with jitter, until the time is over. */
  async #pause(attempt: number, deadline: number): Promise<void> {
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
}

/** Whether the view may refuse without asking; a clock that jumped back proves nothing. */
function isRecent(view: View, nowMs: number): boolean {
  const ageMs = nowMs - view.seenAtMs;
  return ageMs >= 0 && ageMs < LOCAL_REFUSAL_MS;
}

/** Which of the limits that looked full are. */
function sightings(bucket: SeenBucket, guesses: readonly Guess[], nowMs: number) {
  return guesses.flatMap(({ limitName }) => {
    const stored = bucket.limits.get(limitName);
    if (stored === undefined) return [];
    return [{ limitName, full: looksFull(limitImage(bucket, stored, nowMs)) }];
  });
}

function charged(bucket: SeenBucket, balancesMilli: readonly number[]): LegCharge {
  const link = { cascade: bucket.cascade, parentId: bucket.parentId };
  return { kind: "charged", shard: bucket.shard, link, balancesMilli };
}

function fullBalances(leg: Leg): readonly number[] {
  return leg.config.limits.map(({ rate }) => rate.capacityMilli);
}

function balancesOf(bucket: SeenBucket, leg: Leg, nowMs: number): readonly number[] {
  return leg.config.limits.map(({ name, rate }) => {
    const stored = bucket.limits.get(name);
    return stored === undefined ? rate.capacityMilli : balanceOf(limitImage(bucket, stored, nowMs));
  });
}

/** A bucket from which amounts have been taken. */
function newBucket(
  leg: Leg,
  left: readonly number[],
  nowMs: number,
  ttlMultiplier: number,
): SeenBucket {
  const { config } = leg;
  return {
    entityId: leg.entityId,
    resource: leg.resource,
    shard: 0,
    shardCount: 1,
    rebases: 0,
    refilledAtMs: nowMs,
    cascade: leg.link.cascade,
    parentId: leg.link.parentId,
    ttl: bucketTtl(
      undefined,
      { multiplier: ttlMultiplier, source: config.source, isNew: true },
      config.limits.map(({ rate }, at) => ({ rate, balanceMilli: left[at] as number })),
      nowMs,
    ),
    configVersion: config.source === "override" ? 0 : config.version,
    configSource: config.source,
    limits: new Map(
      config.limits.map(({ name, rate }, at) => [
        name,
        {
          tokensMilli: left[at] as number,
          rate,
          totalConsumedMilli: leg.amountsMilli[at] ?? 0,
          remainder: 0,
        },
      ]),
    ),
    writes: {
      tokensMilli: WRITES_RATE.capacityMilli,
      rate: WRITES_RATE,
      totalConsumedMilli: 0,
      remainder: 0,
    },
  };
}
