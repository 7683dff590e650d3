/**
 * Buckets that any number of processes share, over any item store with conditional writes.
 *
 * A warm acquire is one write per leg and no read: the cached state of the bucket picks the form of
 * the write, its conditions decide, and a write that fails returns the stored item to decide from
 * again. Legs are independent items, so when one is refused the others are refunded.
 */

import { Deadline, type Timer } from "../../base/time.ts";
import { invariant } from "../../domain/check.ts";
import { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import { type BucketName, bucketKey, entityKey } from "../../records/keys.ts";
import type { OperationResult } from "../../records/operation-record.ts";
import type { RecordContext } from "../../records/record-context.ts";
import { Adjustments } from "../adjustments.ts";
import type { BalanceOperation, DeletedBuckets, StoredState } from "../bucket-admin.ts";
import type {
  BucketCallOptions,
  ConsumeOptions,
  ConsumeResult,
  LinkOptions,
  SeenBalances,
  SeenShard,
} from "../bucket-consumer.ts";
import type { BucketStore } from "../bucket-store.ts";
import type { BucketWarning } from "../bucket-warning.ts";
import {
  type Adjustment,
  type BucketConfig,
  changedLinks,
  type Leg,
  type Link,
  linkChange,
  linkTests,
  refundOf,
} from "../leg.ts";
import { takesSlots } from "../slots/slot-amounts.ts";
import { BucketOperations } from "./admin/bucket-operations.ts";
import { BucketStamps } from "./admin/bucket-stamps.ts";
import { ItemTransfer } from "./admin/item-transfer.ts";
import { Reconfiguration } from "./admin/reconfiguration.ts";
import { Adjuster, type Tokens } from "./consume/adjuster.ts";
import {
  type Answers,
  balancesBefore,
  Cascade,
  isCertain,
  isRefusedAnyway,
  refusedBy,
} from "./consume/cascade.ts";
import { Driver } from "./consume/driver.ts";
import type { Orphan } from "./consume/group.ts";
import { LinkChecks } from "./consume/link-checks.ts";
import { SlowSteps } from "./consume/slow-steps.ts";
import type { ConsumeAnswer } from "./consume/step.ts";
import { decoded } from "./plan/seen-bucket.ts";
import { BUCKET_EXISTS } from "./plan/write-plan.ts";
import { Merger } from "./shards/merger.ts";
import { type SplitNotice, Splitter } from "./shards/splitter.ts";
import { type SlotParts, type SlotPartsOptions, slotParts } from "./slots/slot-parts.ts";
import { BucketItems } from "./state/bucket-items.ts";
import { BucketStates } from "./state/bucket-states.ts";
import { CachedStates } from "./state/cached-states.ts";
import { seenBy, seenShards } from "./state/seen-shards.ts";
import { ShardRequests } from "./state/shard-requests.ts";
import { type BucketRules, WRITES_PER_PARTITION } from "./table-traits.ts";

export interface DistributedBucketStoreOptions
  extends BucketRules,
    Omit<SlotPartsOptions, "onWarning"> {
  readonly timer: Timer;
  /** The most shards that a bucket is split into; as many as there can be when absent. */
  readonly maxShards?: number;
  /** Clients of the Python library use the table: shards that are not needed any more stay. */
  readonly keepsShards?: boolean;
  /** Called when a refund has failed, or a bucket has all the shards there can be. */
  readonly onWarning: (warning: BucketWarning) => void;
  /** Called when a bucket has more shards than before. */
  readonly onSplit?: ((notice: SplitNotice) => void) | undefined;
}

export class DistributedBucketStore implements BucketStore {
  readonly embedded = false;
  readonly pythonStamps: BucketStamps | undefined;
  /** The aggregator counts usage, from the changes of the store. */
  readonly uncountedUsage = undefined;
  readonly #context: RecordContext;
  readonly #options: DistributedBucketStoreOptions;
  readonly #shards = new CachedStates();
  readonly #states: BucketStates;
  readonly #items: BucketItems;
  readonly #operations: BucketOperations;
  readonly #links: LinkChecks;
  readonly #driver: Driver;
  readonly #cascade: Cascade;
  readonly #adjustments: Adjustments<Tokens>;
  readonly #reconfiguration: Reconfiguration;
  readonly #merger: Merger;
  readonly #closing = new AbortController();
  readonly #slots: SlotParts;
  #relinks = 0;

  constructor(context: RecordContext, options: DistributedBucketStoreOptions) {
    this.#context = context;
    this.#options = options;
    const { timer, ttlMultiplier, writesPerPartition, isSharedWithPython, periods } = options;
    invariant(
      writesPerPartition === undefined || writesPerPartition === WRITES_PER_PARTITION,
      "the meter in an item counts for 1,000 writes a second",
    );
    const traits = { writesPerPartition, isSharedWithPython };
    const rules: BucketRules = { ...traits, ttlMultiplier, periods };
    this.#items = new BucketItems(context);
    const onRelinked = () => {
      this.#relinks += 1;
    };
    if (isSharedWithPython) {
      this.pythonStamps = new BucketStamps(context, this.#items, this.#shards, onRelinked);
    }
    this.#operations = new BucketOperations(context, this.#shards, rules);
    this.#links = new LinkChecks(context, this.#shards, options);
    this.#states = new BucketStates(context, this.#shards, rules);
    const { closed } = this;
    this.#slots = slotParts(context, this.#states, options, closed);
    const { own } = this.#slots;
    const requests = new ShardRequests(context, this.#states, this.#links, own, rules);
    const splitter = new Splitter(context, this.#shards, this.#links, options);
    const adjuster = new Adjuster(context, this.#states, own, rules);
    this.#adjustments = new Adjustments(adjuster, { ...options, random: context.random, closed });
    const onOrphan = ({ leg, parts, periods }: Orphan) => {
      for (const refund of refundOf(leg, parts, periods)) void this.refund(refund);
    };
    this.#merger = new Merger(context, this.#shards, options);
    const slow = new SlowSteps(this.#states, requests, splitter);
    const parts = {
      states: this.#states,
      links: this.#links,
      requests,
      slow,
      splitter,
      merger: this.#merger,
    };
    this.#driver = new Driver(context, parts, { timer, rules, onOrphan });
    this.#reconfiguration = new Reconfiguration(context, this.#shards, rules);
    this.#cascade = new Cascade({
      states: this.#states,
      requests,
      driver: this.#driver,
      adjustments: this.#adjustments,
      readBalances: async (legs, deadline) => (await this.read(legs, { deadline })).balancesMilli,
    });
  }

  get transfer(): ItemTransfer {
    const { isSharedWithPython } = this.#options;
    const deadline = () => this.#deadline();
    return new ItemTransfer(this.#context, { items: this.#items, isSharedWithPython, deadline });
  }

  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  get relinks(): number {
    return this.#relinks;
  }

  linkOf(entityId: string, resource: string, options: LinkOptions = {}): Promise<Link> {
    return this.#links.linkOf({ entityId, resource }, options, this.#deadline(options));
  }

  /** Decides nothing: the buckets are elsewhere. */
  tryNow(): undefined {
    return undefined;
  }

  consume(
    legs: readonly Leg[],
    options: ConsumeOptions = {},
  ): ConsumeResult | Promise<ConsumeResult> {
    if (!legs.some(takesSlots)) return this.#consume(legs, options);
    const deadline = this.#deadline(options);
    const bounded = { ...options, deadline };
    return this.#slots.dead.orAgain(legs, deadline, () => this.#consume(legs, bounded));
  }

  #consume(legs: readonly Leg[], options: ConsumeOptions): ConsumeResult | Promise<ConsumeResult> {
    if (options.speculative === false) for (const leg of legs) this.#states.forgetAll(leg);
    const nowMs = this.#context.clock();
    const known = this.#states.refusal(legs, nowMs, options.waits);
    if (known === undefined) return this.#ask(legs, this.#deadline(options), options);
    const { balancesMilli, firsts } = known;
    if (areComplete(balancesMilli)) {
      const shownAtMs = this.#states.shownAtMs(legs, firsts, nowMs);
      return refusedBy(legs, balancesMilli, true, firsts, shownAtMs, this.#periodsOf(legs));
    }
    return this.#refuse(legs, balancesMilli, true, this.#deadline(options));
  }

  /** Asks the store. It is small: an async function allocates room for all its variables. */
  async #ask(
    legs: readonly Leg[],
    deadline: Deadline,
    options: ConsumeOptions,
  ): Promise<ConsumeResult> {
    const [first] = legs;
    const isOne = legs.length === 1 && first !== undefined;
    const answers = isOne
      ? [await this.#driver.consume(first, deadline, options.signal, true)]
      : await this.#cascaded(legs, deadline, options);
    return grantedBy(legs, answers) ?? this.#notGranted(legs, answers, deadline, options);
  }

  adjust(adjustment: Adjustment): Promise<void> {
    return this.#adjustments.adjust(adjustment, this.#deadline());
  }

  refund(adjustment: Adjustment): Promise<void> {
    return this.#adjustments.refund(adjustment, this.#deadline());
  }

  async read(legs: readonly Leg[], options: BucketCallOptions = {}): Promise<SeenBalances> {
    const { namespaceId, store, clock } = this.#context;
    const deadline = this.#deadline(options);
    const keys = legs.map((leg) => bucketKey(namespaceId, leg.entityId, leg.resource, 0));
    const observes = keys.map(({ PK }) => this.#shards.observe(PK));
    const { timeoutMs } = deadline;
    const items = await store.getMany(keys, { consistent: true, timeoutMs });
    const shards = await Promise.all(
      items.map(async (item, at) => {
        const first = decoded(item);
        observes[at]?.(first, clock());
        return first === undefined ? [] : this.#items.shardsOf(first, deadline);
      }),
    );
    const context = { namespaceId, nowMs: clock(), rules: this.#options };
    return seenBy(legs, shards, context);
  }

  lastSeen(bucket: BucketName, config: BucketConfig): readonly SeenShard[] {
    return seenShards(this.#states, bucket, config);
  }

  async list(entityId: string, resource?: string): Promise<StoredState[]> {
    const states: StoredState[] = [];
    for await (const state of this.#items.ofEntity(entityId, resource)) states.push(state);
    return states;
  }

  listResource(resource: string): AsyncGenerator<StoredState> {
    return this.#items.ofResource(resource);
  }

  listAll(): AsyncGenerator<StoredState> {
    return this.#items.ofNamespace();
  }

  async reconfigure(entityId: string, resource: string, config: BucketConfig): Promise<void> {
    for (const shard of await this.#items.shardNumbers(entityId, resource)) {
      await this.#reconfiguration.apply({ entityId, resource, shard }, config);
    }
  }

  async relink(entityId: string, link: Link): Promise<void> {
    if (this.pythonStamps !== undefined) {
      await this.pythonStamps.relinkUnstamped(entityId, link);
      return;
    }
    const { namespaceId, store } = this.#context;
    for (const key of await this.#items.allKeysOf(entityId)) {
      // The record must still say so: a move that comes later writes the buckets itself.
      await store.transact([
        { update: key, change: linkChange(link), condition: [BUCKET_EXISTS] },
        { check: entityKey(namespaceId, entityId), condition: linkTests(link) },
      ]);
      this.#shards.forget(key.PK);
    }
    this.#relinks += 1;
  }

  operate(operation: BalanceOperation): Promise<OperationResult> {
    return this.#operations.make(operation);
  }

  /** Buckets are items here, and the purge of a namespace finds all items. */
  async deleteAll(): Promise<void> {
    this.#shards.clear();
  }

  async deleteEntity(entityId: string): Promise<DeletedBuckets> {
    const deleted = await this.#items.deleteAllOf(entityId, ({ PK }) => this.#shards.forget(PK));
    this.#relinks += 1;
    return deleted;
  }

  /** Waits for refunds in the background. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([this.#links.close(), this.#adjustments.idle(), this.#merger.close()]);
    await this.#slots.own.close();
  }

  #deadline({ deadline }: BucketCallOptions = {}): Deadline {
    return deadline ?? new Deadline(this.#options.timer, this.#options.timeoutMs);
  }

  async #cascaded(
    legs: readonly Leg[],
    deadline: Deadline,
    { signal, onRefunded }: ConsumeOptions,
  ): Promise<Answers> {
    const options = { deadline, signal, onRefunded };
    const { failures, answers } = await this.#cascade.consume(legs, options);
    if (failures.length > 0 && !isRefusedAnyway(legs, answers)) throw failures[0];
    return answers;
  }

  async #notGranted(
    legs: readonly Leg[],
    answers: Answers,
    deadline: Deadline,
    { onRefunded }: ConsumeOptions,
  ): Promise<ConsumeResult> {
    if (areConsumed(answers)) {
      await this.#cascade.refund(legs, answers, { deadline, onRefunded });
      return { outcome: "relinked", links: answers.map(({ link }) => link) };
    }
    if (answers.some((answer) => answer?.kind === "outdated")) return { outcome: "outdated" };
    const balances = answers.map((answer, at) => balancesBefore(answer, legs[at] as Leg));
    const local = answers.every((answer) => answer?.kind !== "refused" || answer.local);
    return this.#refuse(legs, balances, local, deadline, answers);
  }

  async #refuse(
    legs: readonly Leg[],
    known: readonly (readonly number[] | undefined)[],
    local: boolean,
    deadline: Deadline,
    answers?: Answers,
  ): Promise<ConsumeResult> {
    const balancesMilli = await this.#fill(legs, known, deadline);
    const firsts = legs.map((leg) => this.#states.of(leg, 0));
    const shownAtMs = this.#states.shownAtMs(legs, firsts, this.#context.clock());
    const periods = this.#periodsOf(legs, answers);
    return refusedBy(legs, balancesMilli, local, firsts, shownAtMs, periods);
  }

  /** Returns the periods of legs as this process knows them, or as one found them that it took. */
  #periodsOf(legs: readonly Leg[], answers?: Answers): SeenBalances["periods"] {
    return legs.map((leg, at) => {
      const answer = answers?.[at];
      if (answer?.kind === "consumed") return answer.periods;
      return this.#states.periodsOf(leg, leg.config);
    });
  }

  /**
   * Reads the balances of the legs that were not read yet. Where the refusal is certain already, a
   * store that fails now does not change it: such a leg is shown as it was last seen, or full.
   */
  async #fill(
    legs: readonly Leg[],
    known: readonly (readonly number[] | undefined)[],
    deadline: Deadline,
  ): Promise<readonly (readonly number[])[]> {
    if (areComplete(known)) return known;
    const missing = legs.filter((_, at) => known[at] === undefined);
    const certain = isCertain(legs, known, (leg) => this.#states.isShown(leg));
    let read: readonly (readonly number[])[];
    try {
      read = (await this.read(missing, { deadline })).balancesMilli;
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable) || !certain) throw error;
      read = missing.map((leg) => this.#states.lastBalances(leg, leg.config).balancesMilli);
    }
    let next = 0;
    return known.map((balances) => balances ?? (read[next++] as readonly number[]));
  }
}

type Consumed = Extract<ConsumeAnswer, { kind: "consumed" }>;

/** Grants a call whose legs were all consumed, by the links they were made from. */
function grantedBy(legs: readonly Leg[], answers: Answers): ConsumeResult | undefined {
  if (!areConsumed(answers) || changedLinks(legs, answers) !== undefined) return undefined;
  return { outcome: "granted", legs: answers };
}

function areConsumed(answers: Answers): answers is readonly Consumed[] {
  return answers.every((answer) => answer?.kind === "consumed");
}

function areComplete(
  known: readonly (readonly number[] | undefined)[],
): known is readonly (readonly number[])[] {
  return !known.includes(undefined);
}
