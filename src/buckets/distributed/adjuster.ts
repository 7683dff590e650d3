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
import { bucketKey } from "../../records/keys.ts";
import type { RecordContext } from "../../records/record-context.ts";
import type { Key } from "../../storage/item.ts";
import type { WriteResult } from "../../storage/item-store.ts";
import type { Adjustment, Leg, RestoreWarning } from "../bucket-store.ts";
import { LaterRestores } from "../later-restores.ts";
import { UNLINKED } from "../recorded-link.ts";
import { decoded, type SeenBucket } from "./image.ts";
import { planAdjust } from "./take.ts";
import { amountsOf } from "./take-plan.ts";
import type { Views } from "./views.ts";
import type { WritePlan } from "./write-plan.ts";
import { TRANSACTED_MS, WRITE_MS } from "./writes-meter.ts";

export interface AdjusterOptions {
  readonly ttlMultiplier: number;
  readonly timeoutMs: number;
  readonly timer: Timer;
  readonly onWarning: (warning: RestoreWarning) => void;
}

const ATTEMPTS_MAX = 50;
/** 20 characters; two numbers are appended, and DynamoDB takes at most 36. */
const TOKEN_BYTES = 15;

/** The tokens of one adjustment, however often it is repeated. */
interface Tokens {
  readonly base: string;
  /** How many plans the store has refused, each under a token of its own. */
  plans: number;
  /** The one that was sent last, while nobody knows what became of it: the token belongs to it. */
  unsure: WritePlan | undefined;
}

export class Adjuster {
  readonly #context: RecordContext;
  readonly #views: Views;
  readonly #options: AdjusterOptions;
  readonly #later: LaterRestores;
  /** Tokens differ even where chance does not, as in simulations. */
  #tokens = 0;

  constructor(context: RecordContext, views: Views, options: AdjusterOptions) {
    this.#context = context;
    this.#views = views;
    this.#options = options;
    const { timer, onWarning } = options;
    // The token tells the store what was written already.
    const mayRepeat = () => true;
    this.#later = new LaterRestores({ timer, random: context.random, mayRepeat, onWarning });
  }

  /** Writes the deltas; throws when the store cannot. */
  async adjust(adjustment: Adjustment, deadline: number): Promise<void> {
    await this.#write(adjustment, this.#newTokens(), deadline);
  }

  /**
   * Gives back what another leg's refusal made void. It never throws: when the store does not
   * answer in time it goes on in the background with the same token, and then it warns.
   */
  async restore(adjustment: Adjustment, deadline: number): Promise<void> {
    const tokens = this.#newTokens();
    try {
      await this.#write(adjustment, tokens, deadline);
    } catch (error) {
      this.#later.add(adjustment, () => this.#again(adjustment, tokens), error);
    }
  }

  /** Resolves when nothing is on its way any more. */
  idle(): Promise<void> {
    return this.#later.idle();
  }

  async #again(adjustment: Adjustment, tokens: Tokens): Promise<void> {
    const deadline = this.#options.timer.nowMs() + this.#options.timeoutMs;
    if (await this.#arrived(adjustment, tokens, deadline)) return;
    await this.#write(adjustment, tokens, deadline);
  }

  /** Sends what may have arrived once more, as it was; it is done once, or refused for certain. */
  async #arrived(adjustment: Adjustment, tokens: Tokens, deadline: number): Promise<boolean> {
    if (tokens.unsure === undefined) return false;
    const key = this.#keyOf(adjustment);
    const result = await this.#transact(key, legOf(adjustment), tokens.unsure, tokens, deadline);
    return result.ok;
  }

  async #write(adjustment: Adjustment, tokens: Tokens, deadline: number): Promise<void> {
    const { deltasMilli, acquires = 0 } = adjustment;
    const key = this.#keyOf(adjustment);
    const leg = legOf(adjustment);
    if (deltasMilli.every((delta) => delta === 0)) return;
    const givesBack = deltasMilli.some((delta) => delta < 0);
    const known = this.#known(key, leg);
    let bucket = known ?? (await this.#read(key, deadline));
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      if (bucket === undefined) return;
      const trusts = (name: string) => this.#views.trustsFull(key.PK, name);
      const plan = planAdjust(bucket, leg, {
        nowMs: this.#context.clock(),
        ttlMultiplier: this.#options.ttlMultiplier,
        trustFull: bucket === known ? trusts : () => true,
        acquires,
        costMs: givesBack ? TRANSACTED_MS : WRITE_MS,
      });
      if (plan.kind !== "write") return;
      const result = givesBack
        ? await this.#transact(key, leg, plan.plan, tokens, deadline)
        : await this.#update(key, plan.plan, deadline);
      if (result.ok) return;
      bucket = decoded(result.item);
    }
    throw new RateLimiterUnavailable("The bucket changed too often to be adjusted in time", {
      reason: "throttled",
      nothingWritten: true,
    });
  }

  #keyOf({ entityId, resource, shard }: Adjustment): Key {
    return bucketKey(this.#context.namespaceId, entityId, resource, shard);
  }

  /** The bucket as it was last seen, if that knows all the limits: only the store says one is gone. */
  #known(key: Key, leg: Leg): SeenBucket | undefined {
    const bucket = this.#views.get(key.PK)?.bucket;
    for (const [name, amount] of amountsOf(leg)) {
      if (amount !== 0 && bucket?.limits.has(name) !== true) return undefined;
    }
    return bucket;
  }

  async #update(key: Key, plan: WritePlan, deadline: number): Promise<WriteResult> {
    const options = { timeoutMs: this.#left(deadline) };
    const see = this.#views.watch(key.PK);
    const result = await this.#context.store.update(key, plan.change, plan.condition, options);
    see(decoded(result.item), this.#context.clock());
    return result;
  }

  /** One token per plan: the same token with another plan would be refused, or applied again. */
  async #transact(
    key: Key,
    leg: Leg,
    plan: WritePlan,
    tokens: Tokens,
    deadline: number,
  ): Promise<WriteResult> {
    const write = { update: key, change: plan.change, condition: plan.condition };
    const token = `${tokens.base}-${tokens.plans}`;
    const options = { token, timeoutMs: this.#left(deadline) };
    tokens.unsure = plan;
    const result = await this.#context.store.transact([write], options);
    tokens.unsure = undefined;
    if (result.ok) {
      this.#views.changed(key.PK, amountsOf(leg));
      return { ok: true, item: undefined };
    }
    tokens.plans += 1;
    this.#views.forget(key.PK);
    return { ok: false, item: result.failures.get(0)?.item };
  }

  async #read(key: Key, deadline: number): Promise<SeenBucket | undefined> {
    const options = { consistent: true, timeoutMs: this.#left(deadline) };
    const see = this.#views.watch(key.PK);
    const item = await this.#context.store.get(key, options);
    return see(decoded(item), this.#context.clock()).bucket;
  }

  #left(deadline: number): number {
    return Math.max(1, deadline - this.#options.timer.nowMs());
  }

  #newTokens(): Tokens {
    this.#tokens += 1;
    const random = Buffer.from(randomBytes(this.#context.random, TOKEN_BYTES)).toString(
      "base64url",
    );
    return { base: `${random}${this.#tokens.toString(36)}`, plans: 0, unsure: undefined };
  }
}

function legOf({ entityId, resource, config, deltasMilli }: Adjustment): Leg {
  const amountsMilli = deltasMilli;
  return { entityId, resource, config, amountsMilli, link: UNLINKED, linkIsFresh: false };
}
