/** Charges one leg: decides from the view, writes, and decides again from what the store says. */

import { RateLimiterUnavailable } from "../../domain/errors.ts";
import type { Timer } from "../../domain/timer.ts";
import {
  decodeBucket,
  encodeBucket,
  type StoredBucket,
  WRITES_RATE,
} from "../../records/bucket-item.ts";
import { bucketKey, entityKey } from "../../records/keys.ts";
import type { RecordContext } from "../../records/record-context.ts";
import type { Item, Key } from "../../storage/item.ts";
import { ITEM_ABSENT } from "../../storage/item-store.ts";
import type { Leg, Link } from "../bucket-store.ts";
import { bucketTtl } from "../bucket-ttl.ts";
import { linkInRecord } from "../recorded-link.ts";
import { balanceOf, isFull, limitImage } from "./image.ts";
import { planTake } from "./take.ts";
import type { Guess, TakeContext, TakePlan } from "./take-plan.ts";
import type { View, Views } from "./views.ts";

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
      if (view?.bucket === undefined) return undefined;
      const plan = this.#plan(view, leg, nowMs, true);
      if (plan.kind === "outdated") return undefined;
      if (plan.kind === "refused") refused ||= isRecent(view, nowMs);
      return plan.kind === "write" ? balancesOf(view.bucket, leg, nowMs) : plan.balancesMilli;
    });
    return refused ? balances : undefined;
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
    let result: LegCharge | View = await this.#step(key, leg, this.#views.get(key.PK), deadline);
    for (let attempt = 1; !("kind" in result); attempt += 1) {
      await this.#pause(attempt, deadline);
      result = await this.#step(key, leg, { ...result, fresh: true }, deadline);
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
      const view = this.#see(key.PK, item, nowMs);
      if (view.bucket === undefined) return;
      const plan = this.#plan(view, leg, nowMs, true);
      if (plan.kind !== "write") return;
      const result = await this.#context.store.update(key, plan.plan.change, plan.plan.condition);
      this.#see(key.PK, result.item, nowMs);
      if (result.ok) return;
      item = result.item;
    }
  }

  /** One call to the store, and what it led to: an end, or a fresh view to go on from. */
  async #step(
    key: Key,
    leg: Leg,
    view: (View & { fresh?: boolean }) | undefined,
    deadline: number,
  ): Promise<LegCharge | View> {
    if (view === undefined) return this.#read(key, deadline);
    const nowMs = this.#context.clock();
    if (view.bucket === undefined) return this.#create(key, leg, nowMs, deadline);
    const plan = this.#plan(view, leg, nowMs, view.fresh === true);
    switch (plan.kind) {
      case "outdated":
        return plan;
      case "nothing":
        return charged(view.bucket, plan.balancesMilli);
      case "refused":
        return view.fresh === true ? plan : this.#read(key, deadline);
      case "write":
        return this.#write(key, leg, view.bucket, plan, nowMs, deadline);
    }
  }

  async #read(key: Key, deadline: number): Promise<View> {
    const options = { consistent: true, timeoutMs: this.#left(deadline) };
    const item = await this.#context.store.get(key, options);
    return this.#see(key.PK, item, this.#context.clock());
  }

  async #write(
    key: Key,
    leg: Leg,
    bucket: StoredBucket,
    { plan, guesses }: Extract<TakePlan, { kind: "write" }>,
    nowMs: number,
    deadline: number,
  ): Promise<LegCharge | View> {
    this.#views.expect(key.PK, bucket, guesses);
    const options = { timeoutMs: this.#left(deadline) };
    const result = await this.#context.store.update(key, plan.change, plan.condition, options);
    const view = this.#see(key.PK, result.item, nowMs);
    if (view.bucket === undefined) return view;
    if (!result.ok) {
      this.#learnFrom(key.PK, view.bucket, guesses, nowMs);
      return view;
    }
    this.#views.learn(key.PK, guesses);
    return charged(view.bucket, balancesOf(view.bucket, leg, nowMs));
  }

  #plan(view: View, leg: Leg, nowMs: number, fresh: boolean): TakePlan {
    const context: TakeContext = {
      nowMs,
      ttlMultiplier: this.#options.ttlMultiplier,
      trustFull: (name) => fresh || (view.fullness.get(name) ?? 1) >= 0.5,
    };
    return planTake(view.bucket as StoredBucket, leg, context);
  }

  /** A full bucket with the amounts taken; somebody else's, if they were faster. */
  async #create(key: Key, leg: Leg, nowMs: number, deadline: number): Promise<LegCharge | View> {
    const { limits } = leg.config;
    const full = limits.map(({ rate }) => rate.capacityMilli);
    if (leg.amountsMilli.some((amount, at) => amount > (full[at] as number))) {
      return { kind: "refused", balancesMilli: full };
    }
    const left = full.map((capacity, at) => capacity - (leg.amountsMilli[at] ?? 0));
    const link = leg.linkIsFresh ? leg.link : await this.#recordedLink(leg, deadline);
    const bucket = newBucket({ ...leg, link }, left, nowMs, this.#options.ttlMultiplier);
    const item = encodeBucket(this.#context.namespaceId, bucket);
    const result = await this.#context.store.put(item, [ITEM_ABSENT], {
      timeoutMs: this.#left(deadline),
    });
    const view = this.#see(key.PK, result.ok ? item : result.item, nowMs);
    return result.ok ? charged(bucket, left) : view;
  }

  async #recordedLink(leg: Leg, deadline: number): Promise<Link> {
    const key = entityKey(this.#context.namespaceId, leg.entityId);
    const options = { consistent: true, timeoutMs: this.#left(deadline) };
    return linkInRecord(await this.#context.store.get(key, options));
  }

  #see(id: string, item: Item | undefined, nowMs: number): View {
    return this.#views.see(id, item === undefined ? undefined : decodeBucket(item), nowMs);
  }

  #learnFrom(id: string, bucket: StoredBucket, guesses: readonly Guess[], nowMs: number): void {
    this.#views.learn(
      id,
      guesses.flatMap(({ limitName }) => {
        const stored = bucket.limits.get(limitName);
        if (stored === undefined) return [];
        const { share, accruedMilli } = limitImage(bucket, stored, nowMs);
        const full = isFull(stored.tokensMilli, share.capacityMilli, accruedMilli);
        return [{ limitName, full }];
      }),
    );
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

function charged(bucket: StoredBucket, balancesMilli: readonly number[]): LegCharge {
  const link = { cascade: bucket.cascade, parentId: bucket.parentId };
  return { kind: "charged", shard: bucket.shard, link, balancesMilli };
}

function balancesOf(bucket: StoredBucket, leg: Leg, nowMs: number): readonly number[] {
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
): StoredBucket {
  const { config } = leg;
  return {
    entityId: leg.entityId,
    resource: leg.resource,
    shard: 0,
    shardCount: 1,
    refilledAtMs: nowMs,
    cascade: leg.link.cascade,
    parentId: leg.link.parentId,
    ttl: bucketTtl(undefined, config, ttlMultiplier, left, nowMs),
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
