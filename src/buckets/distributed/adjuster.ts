/**
 * Changes balances after the fact: adjustments of a lease, and giving back what was taken.
 *
 * Giving back goes through a transaction with a token, so that it may be repeated when nobody
 * knows whether it arrived. Consuming more is a plain write. Neither creates an item: a bucket
 * that is gone stays gone.
 */

import { randomBytes } from "../../domain/chance.ts";
import { RateLimiterUnavailable } from "../../domain/errors.ts";
import type { Timer } from "../../domain/timer.ts";
import { decodeBucket, type StoredBucket } from "../../records/bucket-item.ts";
import { bucketKey } from "../../records/keys.ts";
import type { RecordContext } from "../../records/record-context.ts";
import type { Item, Key } from "../../storage/item.ts";
import { type Adjustment, type Leg, type RestoreWarning, restoreWarning } from "../bucket-store.ts";
import { UNLINKED } from "../recorded-link.ts";
import { planAdjust } from "./take.ts";
import type { Views } from "./views.ts";
import type { WritePlan } from "./write-plan.ts";

export interface AdjusterOptions {
  readonly ttlMultiplier: number;
  readonly timeoutMs: number;
  readonly timer: Timer;
  readonly onWarning: (warning: RestoreWarning) => void;
}

const ATTEMPTS_MAX = 50;
/** How often giving back is tried anew after its time was over. */
const REPETITIONS = 3;
const PAUSE_MS = 100;
const TOKEN_BYTES = 18;

export class Adjuster {
  readonly #context: RecordContext;
  readonly #views: Views;
  readonly #options: AdjusterOptions;
  readonly #pending = new Set<Promise<void>>();

  constructor(context: RecordContext, views: Views, options: AdjusterOptions) {
    this.#context = context;
    this.#views = views;
    this.#options = options;
  }

  /** Writes the deltas; throws when the store cannot. */
  async adjust(adjustment: Adjustment, deadline: number): Promise<void> {
    await this.#write(adjustment, this.#newToken(), deadline);
  }

  /**
   * Gives back what another leg's refusal made void. It never throws: when the store does not
   * answer in time it goes on in the background with the same token, and then it warns.
   */
  async restore(adjustment: Adjustment, deadline: number): Promise<void> {
    const token = this.#newToken();
    try {
      await this.#write(adjustment, token, deadline);
    } catch (error) {
      const repeated = this.#repeat(adjustment, token, error);
      this.#pending.add(repeated);
      void repeated.finally(() => this.#pending.delete(repeated));
    }
  }

  /** Resolves when nothing is on its way any more. */
  async idle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  async #repeat(adjustment: Adjustment, token: string, first: unknown): Promise<void> {
    let cause = first;
    for (let repetition = 1; repetition <= REPETITIONS; repetition += 1) {
      if (!(cause instanceof RateLimiterUnavailable)) break;
      await this.#options.timer.sleep(this.#context.random() * PAUSE_MS * 2 ** repetition);
      try {
        const deadline = this.#options.timer.nowMs() + this.#options.timeoutMs;
        await this.#write(adjustment, token, deadline);
        return;
      } catch (error) {
        cause = error;
      }
    }
    this.#options.onWarning(restoreWarning(adjustment, cause));
  }

  async #write(adjustment: Adjustment, token: string, deadline: number): Promise<void> {
    const { entityId, resource, shard, config, deltasMilli } = adjustment;
    const { namespaceId, clock } = this.#context;
    const key = bucketKey(namespaceId, entityId, resource, shard);
    const leg: Leg = {
      entityId,
      resource,
      config,
      amountsMilli: deltasMilli,
      link: UNLINKED,
      linkIsFresh: false,
    };
    let bucket = this.#views.get(key.PK)?.bucket ?? (await this.#read(key, deadline));
    for (let attempt = 0; attempt < ATTEMPTS_MAX && bucket !== undefined; attempt += 1) {
      const plan = planAdjust(bucket, leg, {
        nowMs: clock(),
        ttlMultiplier: this.#options.ttlMultiplier,
        trustFull: () => true,
      });
      if (plan.kind !== "write") return;
      const givesBack = deltasMilli.some((delta) => delta < 0);
      const result = givesBack
        ? await this.#transact(key, plan.plan, `${token}-${attempt}`, deadline)
        : await this.#update(key, plan.plan, deadline);
      if (result.ok) {
        if (givesBack) this.#views.expect(key.PK, bucket, plan.guesses);
        return;
      }
      bucket = this.#see(key, result.item);
    }
    if (bucket === undefined) return;
    throw new RateLimiterUnavailable("The bucket changed too often to be adjusted in time", {
      reason: "throttled",
      nothingWritten: true,
    });
  }

  async #update(key: Key, plan: WritePlan, deadline: number) {
    const options = { timeoutMs: this.#left(deadline) };
    const result = await this.#context.store.update(key, plan.change, plan.condition, options);
    if (result.ok) this.#see(key, result.item);
    return result;
  }

  /** One token per plan: the same token with another plan would be refused. */
  async #transact(key: Key, plan: WritePlan, token: string, deadline: number) {
    const write = { update: key, change: plan.change, condition: plan.condition };
    const options = { token, timeoutMs: this.#left(deadline) };
    const result = await this.#context.store.transact([write], options);
    return result.ok
      ? { ok: true, item: undefined }
      : { ok: false, item: result.failures.get(0)?.item };
  }

  async #read(key: Key, deadline: number): Promise<StoredBucket | undefined> {
    const options = { consistent: true, timeoutMs: this.#left(deadline) };
    return this.#see(key, await this.#context.store.get(key, options));
  }

  #see(key: Key, item: Item | undefined): StoredBucket | undefined {
    const bucket = item === undefined ? undefined : decodeBucket(item);
    this.#views.see(key.PK, bucket, this.#context.clock());
    return bucket;
  }

  #left(deadline: number): number {
    return Math.max(1, deadline - this.#options.timer.nowMs());
  }

  /** 24 characters; an attempt number is appended, and DynamoDB takes at most 36. */
  #newToken(): string {
    return Buffer.from(randomBytes(this.#context.random, TOKEN_BYTES)).toString("base64url");
  }
}
