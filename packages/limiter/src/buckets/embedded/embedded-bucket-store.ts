/** Buckets with one writer at a time: read, refill, check and write in one step. */

import { type Random, systemRandom } from "../../base/random.ts";
import type { Clock } from "../../base/time.ts";
import { systemTimer, type Timer } from "../../base/time.ts";
import type { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import type { OperationResult } from "../../records/operation-record.ts";
import type { UncountedUsage } from "../../records/usage/usage.ts";
import type { BalanceOperation, DeletedBuckets, StoredState } from "../bucket-admin.ts";
import type { BucketCallOptions, ConsumeResult, LinkOptions } from "../bucket-consumer.ts";
import type { BucketStore } from "../bucket-store.ts";
import { bucketTtl } from "../bucket-ttl.ts";
import type { RefundWarning } from "../bucket-warning.ts";
import { appliesAnyway, matchConfig } from "../config-match.ts";
import { type FastPath, NO_FAST_PATH } from "../fast-path.ts";
import { fits, softNames } from "../gating.ts";
import { LaterRefunds } from "../later-refunds.ts";
import type { Adjustment, BucketConfig, Leg, LegOutcome, Link } from "../leg.ts";
import { effectiveLink } from "../link.ts";
import type { BucketRow, BucketTable } from "./bucket-table.ts";
import {
  balanceMilli,
  balances,
  builtFrom,
  changedLinks,
  type EmbeddedBucket,
  newBucket,
  states,
  withConfig,
  withConsumed,
  withCounted,
} from "./embedded-bucket.ts";
import { EmbeddedFastPath } from "./embedded-fast-path.ts";
import type { FastTable } from "./fast-table.ts";
import { operateRow } from "./row-operation.ts";
import { hourOf } from "./usage-hour.ts";
import { asCounted, pendingUsage } from "./usage-tally.ts";

export interface EmbeddedBucketStoreOptions {
  readonly clock: Clock;
  /** An idle bucket is kept this many times its time to fill; 0: without end. */
  readonly ttlMultiplier: number;
  /** Called when consumed tokens could not be refunded. */
  readonly onWarning: (warning: RefundWarning) => void;
  readonly timer?: Timer;
  readonly random?: Random;
  /** Decides calls of the fast path, where the table is in this process. */
  readonly fastTable?: FastTable;
}

export class EmbeddedBucketStore implements BucketStore {
  readonly embedded: boolean;
  readonly pythonStamps = undefined;
  readonly #table: BucketTable;
  readonly #clock: Clock;
  readonly #ttlMultiplier: number;
  readonly #later: LaterRefunds;
  readonly fastPath: FastPath;
  readonly #fast: EmbeddedFastPath | undefined;
  readonly uncountedUsage: UncountedUsage = { count: (scope) => this.#countUsage(scope) };
  readonly #closing = new AbortController();
  #relinks = 0;

  constructor(table: BucketTable, options: EmbeddedBucketStoreOptions) {
    this.#table = table;
    this.#clock = options.clock;
    this.#ttlMultiplier = options.ttlMultiplier;
    const { fastTable, ttlMultiplier } = options;
    this.#fast = fastTable && new EmbeddedFastPath(fastTable, ttlMultiplier);
    this.fastPath = this.#fast ?? NO_FAST_PATH;
    this.embedded = fastTable !== undefined;
    const { timer = systemTimer, random = systemRandom, onWarning } = options;
    // There is no token here that would tell whether it was written.
    const mayRepeat = ({ nothingWritten }: RateLimiterUnavailable) => nothingWritten;
    this.#later = new LaterRefunds({ timer, random, mayRepeat, onWarning });
  }

  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  get relinks(): number {
    return this.#relinks;
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

  consume(legs: readonly Leg[], options: BucketCallOptions = {}): Promise<ConsumeResult> {
    const work = () => this.#consume(legs, this.#clock());
    return this.#table.step(work, options.deadline?.timeoutMs, legs);
  }

  async adjust(adjustment: Adjustment, options: BucketCallOptions = {}): Promise<void> {
    const { entityId, resource, config, deltasMilli, acquires = 0 } = adjustment;
    if (this.fastPath.adjust(adjustment, deltasMilli, acquires)) return;
    if ((await this.#fast?.adjustShared(adjustment, deltasMilli, acquires)) === true) return;
    const work = () => {
      const now = this.#clock();
      const stored = this.#table.get(entityId, resource);
      const live = alive(stored, now) ?? this.#outlived(adjustment, now);
      if (live === undefined) return;
      const bucket = this.#counted(entityId, resource, stored, live, now);
      const deltas = new Map(config.limits.map(({ name }, at) => [name, deltasMilli[at] ?? 0]));
      const change = config.bypass === true ? withCounted : withConsumed;
      const limits = bucket.limits.map((limit) => change(limit, deltas.get(limit.name) ?? 0, now));
      const events = bucket.events + acquires;
      this.#write(entityId, resource, { ...bucket, limits, events }, config, now, false);
    };
    await this.#table.step(work, options.deadline?.timeoutMs, [adjustment]);
  }

  async refund(adjustment: Adjustment, options: BucketCallOptions = {}): Promise<void> {
    try {
      await this.adjust(adjustment, options);
    } catch (error) {
      this.#later.add(adjustment, () => this.adjust(adjustment), error);
    }
  }

  read(
    legs: readonly Leg[],
    options: BucketCallOptions = {},
  ): Promise<readonly (readonly number[])[]> {
    const work = () => {
      const now = this.#clock();
      return legs.map((leg) => {
        const bucket = alive(this.#table.get(leg.entityId, leg.resource), now);
        // A peek shows what an acquire would find, so the limits of the call apply here too.
        if (bucket === undefined) return leg.config.limits.map(({ rate }) => rate.capacityMilli);
        const match = matchConfig(builtFrom(bucket), leg.config);
        const seen = match === "apply" ? withConfig(bucket, leg.config, now) : bucket;
        return balances(seen, leg, now);
      });
    };
    return this.#table.peek(work, options.deadline?.timeoutMs, legs);
  }

  list(entityId: string, resource?: string): Promise<StoredState[]> {
    return this.#table.peek(() => {
      const now = this.#clock();
      return this.#table
        .ofEntity(entityId)
        .filter((row) => resource === undefined || row.resource === resource)
        .flatMap((row) => states(row, now));
    }, undefined);
  }

  async *listResource(resource: string): AsyncGenerator<StoredState> {
    let after: string | undefined;
    for (;;) {
      const from = after;
      const rows = await this.#table.peek(() => this.#table.ofResource(resource, from), undefined);
      if (rows.length === 0) return;
      for (const row of rows) yield* states(row, this.#clock());
      after = rows.at(-1)?.entityId;
    }
  }

  async *listAll(): AsyncGenerator<StoredState> {
    let after: string | undefined;
    for (;;) {
      const from = after;
      const resources = await this.#table.peek(() => this.#table.resources(from), undefined);
      if (resources.length === 0) return;
      for (const resource of resources) yield* this.listResource(resource);
      after = resources.at(-1);
    }
  }

  reconfigure(entityId: string, resource: string, config: BucketConfig): Promise<void> {
    return this.#table.step(() => {
      const now = this.#clock();
      const stored = this.#table.get(entityId, resource);
      const live = alive(stored, now);
      if (live === undefined || matchConfig(builtFrom(live), config) !== "apply") return;
      const applied = withConfig(live, config, now);
      const bucket = this.#counted(entityId, resource, stored, applied, now);
      this.#write(entityId, resource, bucket, config, now, false);
    }, undefined);
  }

  relink(entityId: string, link: Link): Promise<void> {
    return this.#table.step(() => {
      for (const row of this.#table.ofEntity(entityId)) {
        this.#table.set(entityId, row.resource, { ...row.bucket, link });
      }
      this.#relinks += 1;
    }, undefined);
  }

  operate(operation: BalanceOperation): Promise<OperationResult> {
    const { entityId, resource } = operation;
    return this.#table.step(() => {
      const now = this.#clock();
      const row = alive(this.#table.get(entityId, resource), now);
      const { items, namespaceId } = this.#table;
      return operateRow(items, namespaceId, operation, row, now, (bucket) =>
        this.#table.set(entityId, resource, bucket),
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
  }

  /** All that is pending is in the rows, so it does not matter which process left it there. */
  async #countUsage(scope: { entityId?: string; resource?: string }): Promise<void> {
    const { entityId, resource } = scope;
    if (entityId !== undefined) {
      await this.#countRows(() => {
        const rows = this.#table.ofEntity(entityId, true);
        return rows.filter((row) => resource === undefined || row.resource === resource);
      });
    } else if (resource !== undefined) {
      let after: string | undefined;
      do {
        const from = after;
        after = await this.#countRows(() => this.#table.ofResource(resource, from, true));
      } while (after !== undefined);
    }
  }

  /** A bucket that the lease has outlived, full again; `undefined` where nothing is consumed. */
  #outlived(adjustment: Adjustment, now: number): EmbeddedBucket | undefined {
    const { entityId, config, deltasMilli } = adjustment;
    const consumes = deltasMilli.some((delta) => delta > 0);
    if (!consumes || this.#table.wasDeleted(entityId)) return undefined;
    return newBucket(config, this.#table.recordedLink(entityId), now);
  }

  /** Counts the usage of some rows in one step; returns the entity of the last, if any. */
  #countRows(read: () => readonly BucketRow[]): Promise<string | undefined> {
    return this.#table.step(() => {
      const rows = read();
      for (const { entityId, resource } of rows) {
        // Every write may remove buckets whose time is over, and counts them: so look again.
        const bucket = this.#table.get(entityId, resource);
        const usage = bucket === undefined ? undefined : pendingUsage(bucket);
        if (bucket === undefined || usage === undefined) continue;
        this.#table.countUsage(entityId, resource, usage);
        this.#table.set(entityId, resource, asCounted(bucket, bucket.usageHour));
      }
      return rows.at(-1)?.entityId;
    }, undefined);
  }

  /**
   * The bucket that will take the place of the stored one. What that one has not counted is
   * counted now if it belongs to another hour, or if limits may go with it.
   */
  #counted(
    entityId: string,
    resource: string,
    stored: EmbeddedBucket | undefined,
    bucket: EmbeddedBucket,
    now: number,
  ): EmbeddedBucket {
    const hour = hourOf(now);
    if (stored === undefined || (stored === bucket && bucket.usageHour === hour)) return bucket;
    const usage = pendingUsage(stored);
    if (usage !== undefined) this.#table.countUsage(entityId, resource, usage);
    return asCounted(bucket, hour);
  }

  #consume(legs: readonly Leg[], now: number): ConsumeResult {
    const rows: (EmbeddedBucket | undefined)[] = [];
    const buckets: EmbeddedBucket[] = [];
    const made = new Set<Leg>();
    const changed = new Set<Leg>();
    for (const leg of legs) {
      const row = this.#table.get(leg.entityId, leg.resource);
      rows.push(row);
      const stored = alive(row, now);
      if (stored === undefined) {
        made.add(leg);
        buckets.push(newBucket(leg.config, this.#table.recordedLink(leg.entityId), now));
        continue;
      }
      const match = matchConfig(builtFrom(stored), leg.config);
      if (match === "outdated") return { outcome: "outdated" };
      buckets.push(match === "apply" ? withConfig(stored, leg.config, now) : stored);
      if (match === "apply" && appliesAnyway(builtFrom(stored), leg.config)) changed.add(leg);
    }
    const links = changedLinks(legs, buckets);
    if (links !== undefined) return { outcome: "relinked", links };
    const before = legs.map((leg, at) => balances(buckets[at] as EmbeddedBucket, leg, now));
    if (
      legs.some((leg, at) => !fits(leg.config, leg.amountsMilli, before[at] as readonly number[]))
    ) {
      legs.forEach((leg, at) => {
        if (!changed.has(leg)) return;
        const { entityId, resource } = leg;
        const applied = buckets[at] as EmbeddedBucket;
        const bucket = this.#counted(entityId, resource, rows[at], applied, now);
        this.#write(entityId, resource, bucket, leg.config, now, false);
      });
      return { outcome: "refused", balancesMilli: before, local: false };
    }
    const outcomes = legs.map((leg, at) => {
      const { entityId, resource } = leg;
      const current = buckets[at] as EmbeddedBucket;
      const bucket = this.#counted(entityId, resource, rows[at], current, now);
      return this.#consumeLeg(leg, bucket, now, made.has(leg));
    });
    return { outcome: "granted", legs: outcomes };
  }

  #consumeLeg(leg: Leg, bucket: EmbeddedBucket, now: number, isNew: boolean): LegOutcome {
    const amounts = new Map(
      leg.config.limits.map(({ name }, at) => [name, leg.amountsMilli[at] ?? 0]),
    );
    const change = leg.config.bypass === true ? withCounted : withConsumed;
    const limits = bucket.limits.map((limit) => change(limit, amounts.get(limit.name) ?? 0, now));
    const takes = leg.amountsMilli.some((amount) => amount > 0);
    const consumed = { ...bucket, limits, events: bucket.events + (takes ? 1 : 0) };
    this.#write(leg.entityId, leg.resource, consumed, leg.config, now, isNew);
    const overdrawn = overdrawnOf(leg, consumed, now);
    if (overdrawn.size > 0) {
      const usage = { atMs: now, amountsMilli: [], events: 0, overdrawn };
      this.#table.countUsage(leg.entityId, leg.resource, usage);
    }
    const parts = [{ shard: 0, amountsMilli: leg.amountsMilli }];
    const link = effectiveLink(bucket.link, leg.config.cascade);
    return { parts, link, balancesMilli: balances(consumed, leg, now) };
  }

  #write(
    entityId: string,
    resource: string,
    bucket: EmbeddedBucket,
    { source }: BucketConfig,
    now: number,
    isNew: boolean,
  ): void {
    const left = bucket.limits.map((limit) => ({
      rate: limit.rate,
      balanceMilli: balanceMilli(limit, now),
    }));
    const rule = { multiplier: this.#ttlMultiplier, source, isNew };
    this.#table.set(entityId, resource, {
      ...bucket,
      ttl: bucketTtl(bucket.ttl, rule, left, now),
    });
  }
}

/** The bucket, unless its time is over: then it would be full again, and is as good as gone. */
function alive(bucket: EmbeddedBucket | undefined, now: number): EmbeddedBucket | undefined {
  const isOver = bucket?.ttl !== undefined && bucket.ttl * 1000 <= now;
  return isOver ? undefined : bucket;
}

/** The soft limits that a leg has consumed from and left below zero, each once. */
function overdrawnOf(
  { config, amountsMilli }: Leg,
  bucket: EmbeddedBucket,
  now: number,
): ReadonlyMap<string, number> {
  if (config.bypass === true || softNames(config) === undefined) return NONE;
  const names = config.limits
    .filter(({ soft }, at) => soft && (amountsMilli[at] ?? 0) > 0)
    .map(({ name }) => name);
  const inDebt = bucket.limits.filter(
    (limit) => names.includes(limit.name) && balanceMilli(limit, now) < 0,
  );
  return new Map(inDebt.map(({ name }) => [name, 1]));
}

const NONE: ReadonlyMap<string, number> = new Map();
