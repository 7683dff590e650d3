/** Buckets with one writer at a time: read, refill, check and write in one step. */

import { defined } from "../../base/defined.ts";
import { type Random, systemRandom } from "../../base/random.ts";
import { type Clock, type Deadline, systemTimer, type Timer } from "../../base/time.ts";
import type { OperationResult } from "../../records/operation-record.ts";
import type { BalanceOperation, DeletedBuckets, StoredState } from "../bucket-admin.ts";
import type {
  AdjustOptions,
  BucketCallOptions,
  ConsumeOptions,
  ConsumeResult,
  KnownLimits,
  LinkOptions,
  Outcome,
  PlainRequest,
  SeenBalances,
} from "../bucket-consumer.ts";
import type { BucketStore } from "../bucket-store.ts";
import { bucketTtl } from "../bucket-ttl.ts";
import type { RefundWarning } from "../bucket-warning.ts";
import { matchConfig } from "../config-match.ts";
import { LaterRefunds } from "../later-refunds.ts";
import type { Adjustment, BucketConfig, Leg, LegOutcome, Link } from "../leg.ts";
import { consumes, effectiveLink, overdrawnOf, UNLINKED } from "../leg.ts";
import { partOf } from "../slots/slot-amounts.ts";
import { Bucket } from "./bucket.ts";
import { BucketLists } from "./bucket-lists.ts";
import type { BucketId, BucketTable, OrdinaryTable } from "./bucket-table.ts";
import { alive, areEnough, changedLinks, changes, type Draft, seenIn, seenOf } from "./draft.ts";
import { EmbeddedSlots, type SlotSource } from "./embedded-slots.ts";
import { EmbeddedTransfer } from "./embedded-transfer.ts";
import { SharedTerms } from "./ordinary-call.ts";
import { operateRow } from "./row-operation.ts";
import { UncountedRows } from "./uncounted-rows.ts";
import { hourOf } from "./usage-hour.ts";

export interface EmbeddedBucketStoreOptions {
  readonly clock: Clock;
  /** An idle bucket is kept this many times its time to fill; 0: without end. */
  readonly ttlMultiplier: number;
  /** Called when consumed tokens could not be refunded. */
  readonly onWarning: (warning: RefundWarning) => void;
  readonly timer?: Timer;
  readonly random?: Random;
  /** The table of the store again, where it is in this process and decides ordinary calls. */
  readonly ordinaryTable?: OrdinaryTable;
  /** The holder of the slots of this process; absent where the store holds none. */
  readonly slots?: SlotSource;
}

export class EmbeddedBucketStore implements BucketStore {
  readonly embedded: boolean;
  readonly pythonStamps = undefined;
  readonly #table: BucketTable;
  readonly #ordinaryTable: OrdinaryTable | undefined;
  readonly #clock: Clock;
  readonly #ttlMultiplier: number;
  readonly #later: LaterRefunds;
  readonly uncountedUsage: UncountedRows;
  readonly #closing = new AbortController();
  /** The slots of this process; `undefined` where the store holds none. */
  readonly slots: EmbeddedSlots | undefined;
  readonly #lists: BucketLists;
  #relinks = 0;
  /** Only a table that decides ordinary calls has terms for them. */
  readonly #terms: SharedTerms | undefined;

  constructor(table: BucketTable, options: EmbeddedBucketStoreOptions) {
    this.#table = table;
    this.uncountedUsage = new UncountedRows(table, options.clock);
    this.#clock = options.clock;
    this.#ttlMultiplier = options.ttlMultiplier;
    const { ordinaryTable, ttlMultiplier, slots } = options;
    this.#lists = new BucketLists(table, options.clock);
    this.#ordinaryTable = ordinaryTable;
    this.#terms = ordinaryTable && new SharedTerms(ttlMultiplier, ordinaryTable.isShared);
    this.embedded = ordinaryTable !== undefined;
    const { timer = systemTimer, random = systemRandom, onWarning } = options;
    // No token identifies the write, so it cannot be found out whether it was made.
    const mayRepeat = (error: { readonly nothingWritten: boolean }) => error.nothingWritten;
    this.#later = new LaterRefunds({ timer, random, mayRepeat, onWarning });
    const place = { table, timer, random, closed: this.#closing.signal };
    this.slots = slots && new EmbeddedSlots(slots, place);
  }

  get transfer(): EmbeddedTransfer {
    return new EmbeddedTransfer(this.#table);
  }

  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  get relinks(): number {
    return this.#relinks;
  }

  tryNow(
    request: PlainRequest,
    generation: number,
    ignoresMissing: boolean,
    totals: boolean,
  ): Outcome | Promise<Outcome | undefined> | undefined {
    return this.#ordinaryTable?.tryConsume(request, generation, ignoresMissing, totals);
  }

  async linkOf(
    entityId: string,
    resource: string,
    { policy, deadline }: LinkOptions = {},
  ): Promise<Link> {
    const cascade = await policy?.();
    const work = () => {
      const stored = this.#table.get(entityId, resource)?.link;
      return effectiveLink(stored ?? this.#table.recordedLink(entityId), cascade);
    };
    return this.#table.peek(work, deadline?.timeoutMs, [{ entityId, resource }]);
  }

  consume(legs: readonly Leg[], options: ConsumeOptions = {}): Promise<ConsumeResult> {
    const holderId = this.slots?.holderFor(legs, options.deadline?.timeoutMs);
    if (!(holderId instanceof Promise)) return this.#consumeAs(holderId, legs, options);
    return holderId.then((renewed) => this.#consumeAs(renewed, legs, options));
  }

  /** Consumes, with slots under a holder where the call takes some. */
  #consumeAs(
    holderId: string | undefined,
    legs: readonly Leg[],
    { known, deadline, onRun }: ConsumeOptions,
  ): Promise<ConsumeResult> {
    const work = () => {
      onRun?.();
      return this.#consume(legs, known, this.#clock(), holderId);
    };
    const timeoutMs = deadline?.timeoutMs;
    const taking = holderId === undefined ? undefined : this.slots?.take(legs, work, timeoutMs);
    return taking ?? this.#table.step(work, timeoutMs, legs);
  }

  adjust(adjustment: Adjustment, options: AdjustOptions = {}): Promise<void> | undefined {
    const { slots } = this;
    if (slots !== undefined && adjustment.entry !== undefined) {
      const token = options.token ?? slots.newToken();
      const write = (by?: Deadline) =>
        this.#adjust(adjustment, { token, ...defined({ deadline: by }) });
      return slots.giveBack(write, options.deadline);
    }
    const isDone = this.#tryAdjust(adjustment);
    if (isDone === true) return undefined;
    return isDone === false
      ? this.#adjust(adjustment, options)
      : isDone.then((isShared) => (isShared ? undefined : this.#adjust(adjustment, options)));
  }

  refund(adjustment: Adjustment): Promise<void> | undefined {
    return this.adjust(adjustment)?.catch((error: unknown) => {
      this.#later.add(adjustment, async () => this.adjust(adjustment), error);
    });
  }

  read(legs: readonly Leg[], options: BucketCallOptions = {}): Promise<SeenBalances> {
    const work = () => {
      const now = this.#clock();
      const buckets = legs.map((leg) => this.#peeked(leg, now));
      return seenIn(buckets, legs, now);
    };
    return this.#table.peek(work, options.deadline?.timeoutMs, legs);
  }

  list(entityId: string, resource?: string): Promise<StoredState[]> {
    return this.#lists.entity(entityId, resource);
  }

  listResource(resource: string): AsyncGenerator<StoredState> {
    return this.#lists.resource(resource);
  }

  listAll(): AsyncGenerator<StoredState> {
    return this.#lists.all();
  }

  reconfigure(entityId: string, resource: string, config: BucketConfig): Promise<void> {
    return this.#table.step(() => {
      const now = this.#clock();
      const id = { entityId, resource };
      const stored = this.#alive(id, now);
      if (stored === undefined || matchConfig(stored.build, config) !== "apply") return;
      stored.openDue(now);
      const bucket = stored.withConfig(config, now);
      this.#countBefore(id, stored, bucket, now);
      this.#write(id, bucket, config, now, false);
    }, undefined);
  }

  relink(entityId: string, link: Link): Promise<void> {
    return this.#table.step(() => {
      for (const { resource, bucket } of this.#table.ofEntity(entityId)) {
        bucket.link = link;
        this.#table.set(entityId, resource, bucket);
      }
      this.#relinks += 1;
    }, undefined);
  }

  operate(operation: BalanceOperation): Promise<OperationResult> {
    return this.#table.step(() => {
      const now = this.#clock();
      const { items, namespaceId } = this.#table;
      const row = this.#alive(operation, now);
      return operateRow(items, namespaceId, operation, row, now, (bucket) =>
        this.#set(operation, bucket, now),
      );
    }, undefined);
  }

  async deleteAll(): Promise<void> {
    while (await this.#table.step(() => this.#table.clear(), undefined));
  }

  deleteEntity(entityId: string): Promise<DeletedBuckets> {
    return this.#table.step(() => {
      const rows = this.#table.ofEntity(entityId);
      for (const row of rows) this.#table.delete(entityId, row.resource);
      this.#table.deleteEntity(entityId);
      this.#relinks += 1;
      return { count: rows.length, lastBaseMs: 0 };
    }, undefined);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#later.idle();
    await this.slots?.close();
  }

  #tryAdjust(adjustment: Adjustment): boolean | Promise<boolean> {
    try {
      return this.#ordinaryTable?.tryAdjust(adjustment) ?? false;
    } catch {
      return false; // The store was closed; the slow path reports it.
    }
  }

  async #adjust(adjustment: Adjustment, options: AdjustOptions): Promise<void> {
    const { entityId, resource, config, deltasMilli, acquires = 0, endsMs, entry } = adjustment;
    const work = () => {
      const now = this.#clock();
      const stored = this.#table.get(entityId, resource);
      const bucket = alive(stored, now) ?? this.#outlived(adjustment, stored, now);
      if (bucket === undefined) return;
      this.#countBefore(adjustment, stored, bucket, now);
      bucket.consume(config, deltasMilli, now, endsMs, entry);
      bucket.events += acquires;
      this.#write(adjustment, bucket, config, now, false);
    };
    await this.#table.step(work, options.deadline?.timeoutMs, [adjustment], options.token);
    this.slots?.adjusted(adjustment);
  }

  /** Returns a full bucket in place of an expired one; `undefined` when nothing is consumed. */
  #outlived(
    { entityId, config, deltasMilli }: Adjustment,
    stored: Bucket | undefined,
    now: number,
  ): Bucket | undefined {
    if (!consumes(deltasMilli) || this.#table.wasDeleted(entityId)) return undefined;
    return this.#full(entityId, config, stored, now);
  }

  /** Returns a full bucket, in place of one whose time is over. */
  #full(entityId: string, config: BucketConfig, expired: Bucket | undefined, now: number): Bucket {
    const bucket = Bucket.full(config, this.#table.recordedLink(entityId), now);
    expired?.openDue(now);
    if (expired !== undefined) bucket.keep({ closed: expired.rare.closed });
    return bucket;
  }

  /** Returns the bucket that an acquire would find, with the limits of its call. */
  #peeked({ entityId, resource, config }: Leg, now: number): Bucket {
    const bucket = this.#alive({ entityId, resource }, now);
    if (bucket === undefined) return Bucket.full(config, UNLINKED, now);
    return matchConfig(bucket.build, config) === "apply" ? bucket.withConfig(config, now) : bucket;
  }

  #alive({ entityId, resource }: BucketId, now: number): Bucket | undefined {
    return alive(this.#table.get(entityId, resource), now);
  }

  /**
   * Counts the usage of a stored row before a bucket takes its place: when it belongs to another
   * hour, or when limits may go with the row.
   */
  #countBefore(
    { entityId, resource }: BucketId,
    stored: Bucket | undefined,
    bucket: Bucket,
    now: number,
  ): void {
    const hour = hourOf(now);
    if (stored === undefined || (stored === bucket && bucket.usageHour === hour)) return;
    const usage = stored.pendingUsage();
    if (usage !== undefined) this.#table.countUsage(entityId, resource, usage);
    bucket.markCounted(hour);
  }

  #consume(
    legs: readonly Leg[],
    known: KnownLimits | undefined,
    now: number,
    holderId: string | undefined,
  ): ConsumeResult {
    const drafts: Draft[] = [];
    // The step has waited so long that others may reclaim its slots: it begins again.
    if (holderId !== undefined && this.slots?.isOver(holderId, now)) return { outcome: "outdated" };
    for (const leg of legs) {
      const draft = this.#draftOf(leg, now);
      if (draft === undefined) return { outcome: "outdated" };
      drafts.push(draft);
    }
    const links = changedLinks(drafts);
    if (links !== undefined) return { outcome: "relinked", links };
    let seen = seenOf(drafts, now);
    const isReclaimed = this.slots?.reclaim(drafts, seen, now) === true;
    if (isReclaimed) seen = seenOf(drafts, now);
    if (areEnough(legs, seen)) {
      const grant = (draft: Draft) => this.#grant(draft, known, now, holderId);
      return { outcome: "granted", legs: drafts.map(grant) };
    }
    const { balancesMilli, periods } = seen;
    for (const { leg, stored, bucket } of drafts.filter((draft) => changes(draft, isReclaimed))) {
      this.#countBefore(leg, stored, bucket, now);
      this.#write(leg, bucket, leg.config, now, false);
    }
    return { outcome: "refused", balancesMilli, periods, local: false };
  }

  /** Returns the bucket that a leg would consume from; `undefined`: its limits are outdated. */
  #draftOf(leg: Leg, now: number): Draft | undefined {
    const { entityId, resource, config } = leg;
    const stored = this.#table.get(entityId, resource);
    const live = alive(stored, now);
    if (live === undefined) {
      return { leg, stored, bucket: this.#full(entityId, config, stored, now), isNew: true };
    }
    const match = matchConfig(live.build, config);
    if (match === "outdated") return undefined;
    live.openDue(now);
    const bucket = match === "apply" ? live.withConfig(config, now) : live;
    return { leg, stored, bucket, isNew: false };
  }

  #grant(
    draft: Draft,
    known: KnownLimits | undefined,
    now: number,
    holderId: string | undefined,
  ): LegOutcome {
    const { leg, stored, bucket, isNew } = draft;
    const { entityId, resource, config, amountsMilli } = leg;
    this.#countBefore(leg, stored, bucket, now);
    const entry = this.slots?.entryFor(draft, holderId);
    bucket.consume(config, amountsMilli, now, undefined, entry);
    if (consumes(amountsMilli)) bucket.events += 1;
    this.#write(leg, bucket, config, now, isNew, known);
    const balancesMilli = bucket.balancesOf(config, now);
    const overdrawn = overdrawnOf(config, amountsMilli, balancesMilli);
    if (overdrawn !== undefined) {
      const usage = { atMs: now, amountsMilli: [], events: 0, overdrawn };
      this.#table.countUsage(entityId, resource, usage);
    }
    const link = effectiveLink(bucket.link, config.cascade);
    const periods = bucket.periodsOf(config, now);
    return { parts: [partOf(config, 0, amountsMilli, entry)], link, balancesMilli, periods };
  }

  #write(
    id: BucketId,
    bucket: Bucket,
    config: BucketConfig,
    now: number,
    isNew: boolean,
    known?: KnownLimits,
  ): void {
    const rule = { multiplier: this.#ttlMultiplier, source: config.source, isNew };
    bucket.ttl = bucketTtl(bucket.ttl, rule, bucket.left(now), now);
    if (known !== undefined) this.#terms?.agree(bucket, config, known, now);
    this.#set(id, bucket, now);
  }

  /** Writes a row, after the statements of the periods that it has closed. */
  #set({ entityId, resource }: BucketId, bucket: Bucket, atMs: number): void {
    const closed = bucket.takeClosed();
    const usage = { atMs, amountsMilli: [], events: 0, closed };
    if (closed.length > 0) this.#table.countUsage(entityId, resource, usage);
    this.#table.set(entityId, resource, bucket);
  }
}
