/**
 * Writes adjustments after the fact to the shard that a lease has consumed from.
 *
 * A refund goes through a transaction with a token, so that it may be repeated when its outcome is
 * unknown. Consuming more is a plain write, and creates a bucket that has expired meanwhile. A
 * refund creates nothing: a bucket that is gone would be full.
 */

import { randomToken } from "../../../base/random.ts";
import type { Deadline } from "../../../base/time.ts";
import { tooBusy } from "../../../domain/errors/unavailability.ts";
import { encodeBucket } from "../../../records/bucket-item.ts";
import { lifeKeys, wasDeleted } from "../../../records/entities/deletion-mark.ts";
import { entityKey } from "../../../records/keys.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import type { Item, Key, Value } from "../../../storage/item.ts";
import type { WriteResult } from "../../../storage/item-store.ts";
import type { AdjustmentWriter, SharedAdjustment } from "../../adjustments.ts";
import { type Adjustment, amountsByName, isRefund, linkInRecord, takenOf } from "../../leg.ts";
import { movesSlots, withoutSlots } from "../../slots/slot-amounts.ts";
import { planAdjust } from "../plan/adjust-plan.ts";
import { newBucket } from "../plan/new-bucket.ts";
import { decoded, type SeenBucket } from "../plan/seen-bucket.ts";
import { NO_BUCKET, type WritePlan } from "../plan/write-plan.ts";
import { TRANSACTED_MS, WRITE_MS } from "../plan/writes-meter.ts";
import { originOf } from "../shards/shards.ts";
import type { OwnSlots, UnsureWrite } from "../slots/own-slots.ts";
import type { BucketStates } from "../state/bucket-states.ts";
import { ShardItems } from "../state/shard-items.ts";
import type { BucketRules } from "../table-traits.ts";
import { drive } from "./driver.ts";

const ATTEMPTS_MAX = 50;
/** 20 characters; two numbers are appended, and DynamoDB takes at most 36. */
const TOKEN_BYTES = 15;

/** The marks by which one change happens once, however often it is repeated. */
export interface Tokens {
  readonly base: string;
  /** How many plans the store has refused, each under a token of its own. */
  plans: number;
  /** The plan that was sent last, while its outcome is unknown: the token belongs to it. */
  unsure: { readonly plan: WritePlan; readonly shard: number } | undefined;
  /** The write that gives slots back, while its outcome is unknown. */
  unsureSlots: UnsureWrite | undefined;
}

/** One change, from the state it is planned from to the end. */
interface Attempt {
  bucket: SeenBucket | undefined;
  /** The state was cached, so a limit that seems full may not be. */
  isCached: boolean;
  attempts: number;
  isDone: boolean;
}

export class Adjuster implements AdjustmentWriter<Tokens> {
  readonly #context: RecordContext;
  readonly #states: BucketStates;
  readonly #items: ShardItems;
  readonly #rules: BucketRules;
  readonly #slots: Pick<OwnSlots, "update" | "hasArrived">;
  /** Tokens differ even where random numbers do not, as in simulations. */
  #tokens = 0;

  constructor(
    context: RecordContext,
    states: BucketStates,
    slots: Pick<OwnSlots, "update" | "hasArrived">,
    rules: BucketRules,
  ) {
    this.#slots = slots;
    this.#context = context;
    this.#states = states;
    this.#items = new ShardItems(context, states.shards);
    this.#rules = rules;
  }

  newTokens(): Tokens {
    this.#tokens += 1;
    const random = randomToken(this.#context.random, TOKEN_BYTES);
    return {
      base: `${random}${this.#tokens.toString(36)}`,
      plans: 0,
      unsure: undefined,
      unsureSlots: undefined,
    };
  }

  /** Writes the deltas; throws when the store cannot. */
  async write(shared: SharedAdjustment, tokens: Tokens): Promise<void> {
    const { deadline } = shared;
    let { adjustment } = shared;
    if (movesSlots(adjustment.config, adjustment.deltasMilli)) {
      if (await this.#giveBack(shared, tokens)) return;
      // The entry is gone: the tokens are written alone.
      const deltasMilli = withoutSlots(adjustment.config, adjustment.deltasMilli);
      adjustment = { ...adjustment, deltasMilli };
    }
    if (adjustment.deltasMilli.every((delta) => delta === 0)) return;
    const cached = this.#cached(adjustment);
    const attempt: Attempt = {
      bucket: cached,
      isCached: cached !== undefined,
      attempts: 0,
      isDone: false,
    };
    if (cached === undefined) attempt.bucket = await this.#read(adjustment, deadline);
    const heir =
      attempt.bucket === undefined ? await this.#heirOf(adjustment, deadline) : undefined;
    if (heir !== undefined) return this.#writeInstead(heir, { ...shared, adjustment }, tokens);
    do {
      await drive(
        () => this.#next(adjustment, attempt),
        (plan) => this.#write(adjustment, plan, attempt, tokens, deadline),
      );
      if (!attempt.isDone && attempt.bucket === undefined) {
        const merged = await this.#heirOf(adjustment, deadline);
        if (merged !== undefined) {
          return this.#writeInstead(merged, { ...shared, adjustment }, tokens);
        }
      }
    } while (await this.#isCreatedByAnother(adjustment, attempt, deadline));
  }

  /** Gives back slots with the tokens, by one update; false: their entry is gone. */
  async #giveBack({ adjustment, deadline }: SharedAdjustment, tokens: Tokens): Promise<boolean> {
    const { entry } = adjustment;
    if (entry === undefined) return false;
    const key = this.#keyOf(adjustment);
    const cached = this.#cached(adjustment);
    const bucket = cached ?? (await this.#read(adjustment, deadline));
    const isCached = cached !== undefined;
    const attempt: Attempt = { bucket, isCached, attempts: 0, isDone: false };
    let isGone = bucket === undefined;
    const decide = () => (isGone ? undefined : this.#next(adjustment, attempt, WRITE_MS));
    await drive(decide, async (plan) => {
      isGone = plan.slots === undefined;
      if (isGone) return;
      const observe = this.#states.shards.observe(key.PK);
      const sent = await this.#slots.update({ key, plan, entry }, deadline, {}, (unsure) => {
        tokens.unsureSlots = unsure;
      });
      isGone = sent === undefined;
      if (sent === undefined) return;
      attempt.isDone = sent.ok;
      attempt.isCached = false;
      attempt.bucket = observe(decoded(sent.items.get(0)), this.#context.clock()).bucket;
      isGone = attempt.bucket === undefined;
    });
    return attempt.isDone;
  }

  #writeInstead(shard: number, shared: SharedAdjustment, tokens: Tokens): Promise<void> {
    const adjustment = { ...shared.adjustment, shard };
    return this.write({ ...shared, adjustment }, tokens);
  }

  /**
   * Returns the shard that has the share of one that was merged; `undefined` when there is none. A
   * bucket that was deleted and made again knows nothing of merges.
   */
  async #heirOf(adjustment: Adjustment, deadline: Deadline): Promise<number | undefined> {
    for (let shard = adjustment.shard; shard > 0; ) {
      shard = originOf(shard);
      const heir = await this.#read({ ...adjustment, shard }, deadline);
      if (heir !== undefined) return heir.generation > 0 ? shard : undefined;
    }
    return undefined;
  }

  /**
   * Creates a bucket that has expired, with what was consumed. Returns whether another client has
   * created it first: then the change is written to that one.
   */
  async #isCreatedByAnother(
    adjustment: Adjustment,
    attempt: Attempt,
    deadline: Deadline,
  ): Promise<boolean> {
    if (attempt.isDone || attempt.bucket !== undefined) return false;
    const { timeoutMs } = deadline;
    const item = await outlivedBucket(this.#context, adjustment, this.#rules, timeoutMs);
    if (item === undefined) return false;
    const { ok, item: stored } = await this.#context.store.put(item, [NO_BUCKET], { timeoutMs });
    this.#states.shards.forget(item.PK);
    if (ok) return false;
    if (adjustment.shard === 0) {
      attempt.bucket = decoded(stored);
      return attempt.bucket !== undefined;
    }
    // This shard is gone and the first is not, so that one consumes in its place.
    const first = { ...adjustment, shard: 0 };
    await this.write({ adjustment: first, deadline, shares: [first] }, this.newTokens());
    return false;
  }

  /** Sends a plan of unknown outcome once more: it is made once, or refused for certain. */
  async hasArrived({ adjustment, deadline }: SharedAdjustment, tokens: Tokens): Promise<boolean> {
    const { unsureSlots } = tokens;
    if (unsureSlots !== undefined) {
      const hasArrived = await this.#slots.hasArrived(unsureSlots, deadline);
      tokens.unsureSlots = undefined;
      return hasArrived;
    }
    if (tokens.unsure === undefined) return false;
    const { plan, shard } = tokens.unsure;
    return (await this.#transact({ ...adjustment, shard }, plan, tokens, deadline)).ok;
  }

  #next(
    adjustment: Adjustment,
    attempt: Attempt,
    costMs = isRefund(adjustment) ? TRANSACTED_MS : WRITE_MS,
  ): readonly WritePlan[] | undefined {
    const { config, deltasMilli, acquires = 0, shard, endsMs } = adjustment;
    const { bucket, isCached } = attempt;
    if (attempt.isDone || bucket === undefined) return undefined;
    if (attempt.attempts >= ATTEMPTS_MAX) {
      throw tooBusy("The bucket changed too often to be adjusted in time");
    }
    attempt.attempts += 1;
    const context = {
      nowMs: this.#context.clock(),
      rules: this.#rules,
      trustFull: isCached ? this.#states.trustsFull(adjustment, shard) : () => true,
      acquires,
      costMs,
    };
    const plan = planAdjust(bucket, config, deltasMilli, context, endsMs);
    return plan.kind === "write" ? [plan.plan] : undefined;
  }

  async #write(
    adjustment: Adjustment,
    plan: WritePlan,
    attempt: Attempt,
    tokens: Tokens,
    deadline: Deadline,
  ): Promise<void> {
    const result = isRefund(adjustment)
      ? await this.#transact(adjustment, plan, tokens, deadline)
      : await this.#update(adjustment, plan, deadline);
    attempt.isDone = result.ok;
    attempt.isCached = false;
    if (!result.ok) attempt.bucket = decoded(result.item);
  }

  /** Returns the cached state, if it has all the limits: only the store says that one is gone. */
  #cached(adjustment: Adjustment): SeenBucket | undefined {
    const { config, deltasMilli, shard } = adjustment;
    const bucket = this.#states.of(adjustment, shard)?.bucket;
    const isUnknown = ({ name }: { name: string }, at: number) =>
      (deltasMilli[at] ?? 0) !== 0 && bucket?.limits.has(name) !== true;
    return config.limits.some(isUnknown) ? undefined : bucket;
  }

  async #update(
    adjustment: Adjustment,
    { change, condition }: WritePlan,
    { timeoutMs }: Deadline,
  ): Promise<WriteResult> {
    const key = this.#keyOf(adjustment);
    const observe = this.#states.shards.observe(key.PK);
    const result = await this.#context.store.update(key, change, condition, { timeoutMs });
    observe(decoded(result.item), this.#context.clock());
    return result;
  }

  /**
   * Sends one token per plan: the same token with another plan would be refused, or applied again.
   */
  async #transact(
    adjustment: Adjustment,
    plan: WritePlan,
    tokens: Tokens,
    { timeoutMs }: Deadline,
  ): Promise<WriteResult> {
    const key = this.#keyOf(adjustment);
    const write = { update: key, change: plan.change, condition: plan.condition };
    const token = `${tokens.base}-${tokens.plans}`;
    tokens.unsure = { plan, shard: adjustment.shard };
    const result = await this.#context.store.transact([write], { token, timeoutMs });
    tokens.unsure = undefined;
    if (result.ok && adjustment.endsMs !== undefined) {
      // The change depends on the period, which the answer does not show.
      this.#states.shards.forget(key.PK);
      return { ok: true, item: undefined };
    }
    if (result.ok) {
      const { config, deltasMilli } = adjustment;
      this.#states.shards.changed(key.PK, amountsByName(config, takenOf(config, deltasMilli)));
      return { ok: true, item: undefined };
    }
    tokens.plans += 1;
    this.#states.shards.forget(key.PK);
    return { ok: false, item: result.failures.get(0)?.item };
  }

  #read(adjustment: Adjustment, { timeoutMs }: Deadline): Promise<SeenBucket | undefined> {
    return this.#items.bucketOf(adjustment, adjustment.shard, timeoutMs);
  }

  #keyOf(adjustment: Adjustment): Key {
    return this.#items.keyOf(adjustment, adjustment.shard);
  }
}

/**
 * Returns the item of a bucket that a lease has outlived: full, and the adjustment consumed.
 * `undefined` when nothing is consumed, since a refund needs no bucket, and when the entity or the
 * namespace was deleted.
 */
async function outlivedBucket(
  { store, namespaceId, clock }: RecordContext,
  adjustment: Adjustment,
  rules: BucketRules,
  timeoutMs: number,
): Promise<Item | undefined> {
  const { entityId, config, deltasMilli } = adjustment;
  if (deltasMilli.every((delta) => delta <= 0)) return undefined;
  const keys = [...lifeKeys(namespaceId, entityId), entityKey(namespaceId, entityId)];
  const [mark, namespace, record] = await store.getMany(keys, { consistent: true, timeoutMs });
  if (wasDeleted(mark, namespace)) return undefined;
  const bucket = newBucket({
    name: adjustment,
    config,
    link: linkInRecord(record),
    amountsMilli: deltasMilli.map((delta) => Math.max(0, delta)),
    nowMs: clock(),
    rules,
  });
  return { ...encodeBucket(namespaceId, bucket), ...refundTotals(adjustment) };
}

/** Returns the totals of a refund, which leaves a full bucket full and still lowers the total. */
function refundTotals({ config, deltasMilli }: Adjustment): Record<string, Value> {
  const totals: Record<string, Value> = {};
  config.limits.forEach(({ name }, at) => {
    const delta = deltasMilli[at] ?? 0;
    if (delta < 0) totals[`b_${name}_tc`] = delta;
  });
  return totals;
}
