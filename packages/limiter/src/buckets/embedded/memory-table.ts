/** The buckets of one namespace in this process. */

import type { Clock } from "../../base/time.ts";
import type { PlainRequest } from "../bucket-consumer.ts";
import type { Adjustment, Link } from "../leg.ts";
import type { Bucket } from "./bucket.ts";
import type { BucketRow, OrdinaryTable } from "./bucket-table.ts";
import { SharedBuilds } from "./build.ts";
import {
  adjustOne,
  cascades,
  consumeChain,
  consumeOne,
  isOrdinary,
  type OrdinaryOutcome,
} from "./ordinary-call.ts";
import type { StepItems } from "./row-operation.ts";
import { SweepClock } from "./sweep-clock.ts";
import type { CountUsage, PendingUsage } from "./usage-book.ts";

const PAGE = 1000;
/** Buckets that each write checks for whether their time is over. */
const SWEPT_PER_WRITE = 2;
/**
 * Entity ids come from outside, and an hour may bring millions of them. A bucket that is full again
 * can be deleted before its TTL, because a new one would hold the same. With more than `kept`
 * buckets the table deletes full ones that were idle for `idleMs`; with more than `most`, every
 * full one that the sweep comes to.
 */
const ROOM = { kept: 100_000, most: 1_000_000, idleMs: 300_000 };
/** Ordinary calls create no bucket, so they sweep more rarely. */
const CONSUMES_PER_SWEEP = 512;
const SWEPT_BY_CONSUMES = 16;

export class MemoryBucketTable implements OrdinaryTable {
  readonly isShared = false;
  readonly recordedLink: (entityId: string) => Link;
  readonly wasDeleted: (entityId: string) => boolean;
  readonly namespaceId: string;
  readonly items: StepItems;
  readonly #clock: Clock;
  readonly #sweepClock: SweepClock;
  readonly #countUsage: CountUsage;
  readonly #refuseClosed: () => void;
  readonly #room: typeof ROOM;
  readonly #resources = new Map<string, Map<string, Bucket>>();
  /** The resource of the last call and its buckets; dropped when that map changes. */
  #lastResource: string | undefined;
  #lastEntities: Map<string, Bucket> | undefined;
  readonly #builds = new SharedBuilds();
  #consumes = 0;
  /** Buckets to check for whether their time is over, when the step ends. */
  #sweepDue = 0;
  /** Number of buckets. */
  #count = 0;
  /** The entities of a resource in order; dropped when a bucket is added or removed. */
  readonly #sorted = new Map<string, readonly string[]>();
  #sweep: Iterator<readonly [string, string, Bucket]> | undefined;

  constructor(options: {
    namespaceId: string;
    clock: Clock;
    countUsage: CountUsage;
    recordedLink: (entityId: string) => Link;
    wasDeleted: (entityId: string) => boolean;
    items: StepItems;
    /** Throws when the store was closed. */
    refuseClosed: () => void;
    room?: typeof ROOM;
  }) {
    this.namespaceId = options.namespaceId;
    this.items = options.items;
    this.#clock = options.clock;
    this.#sweepClock = new SweepClock(options.clock);
    this.#countUsage = options.countUsage;
    this.recordedLink = options.recordedLink;
    this.wasDeleted = options.wasDeleted;
    this.#refuseClosed = options.refuseClosed;
    this.#room = options.room ?? ROOM;
  }

  get(entityId: string, resource: string): Bucket | undefined {
    return this.#resources.get(resource)?.get(entityId)?.copy();
  }

  tryConsume(
    request: PlainRequest,
    generation: number,
    ignoresMissing: boolean,
    totals: boolean,
  ): OrdinaryOutcome | undefined {
    const { entityId, resource, limits } = request;
    const bucket = this.#bucket(entityId, resource);
    if (bucket === undefined) return undefined;
    this.#refuseClosed();
    const nowMs = this.#clock();
    if (!isOrdinary(bucket, limits, totals, generation, nowMs)) return undefined;
    const outcome = cascades(bucket)
      ? this.#consumeChain(bucket, request, generation, ignoresMissing, totals, nowMs)
      : consumeOne(bucket, request, ignoresMissing, nowMs);
    this.#consumes += 1;
    // After the consume: a full bucket may be removed here, and this one is not full any more.
    if (this.#consumes % CONSUMES_PER_SWEEP === 0) this.#sweepSome(SWEPT_BY_CONSUMES);
    return outcome;
  }

  // Not inside `tryConsume`, in which the closure below would cost every call an allocation.
  #consumeChain(
    first: Bucket,
    request: PlainRequest,
    generation: number,
    ignoresMissing: boolean,
    totals: boolean,
    nowMs: number,
  ): OrdinaryOutcome | undefined {
    const { resource, limits } = request;
    return consumeChain(first, request, ignoresMissing, nowMs, (entityId) => {
      const bucket = this.#resources.get(resource)?.get(entityId);
      // Stored limits of an ancestor come before those of a call.
      const isKnown =
        bucket !== undefined &&
        (isOrdinary(bucket, undefined, totals, generation, nowMs) ||
          isOrdinary(bucket, limits, totals, generation, nowMs));
      return isKnown ? bucket : undefined;
    });
  }

  tryAdjust(adjustment: Adjustment): boolean {
    this.#refuseClosed();
    const bucket = this.#bucket(adjustment.entityId, adjustment.resource);
    return bucket !== undefined && adjustOne(bucket, adjustment, this.#clock());
  }

  /** Returns a bucket. Most calls are for the same resource as the call before. */
  #bucket(entityId: string, resource: string): Bucket | undefined {
    if (resource !== this.#lastResource) {
      this.#lastEntities = this.#resources.get(resource);
      this.#lastResource = resource;
    }
    return this.#lastEntities?.get(entityId);
  }

  set(entityId: string, resource: string, bucket: Bucket): void {
    let entities = this.#resources.get(resource);
    if (entities === undefined) {
      entities = new Map();
      this.#resources.set(resource, entities);
      this.#lastResource = undefined;
    }
    const before = entities.get(entityId);
    bucket.build = this.#builds.of(bucket.build, before?.build);
    entities.set(entityId, bucket);
    if (before === undefined) {
      this.#sorted.delete(resource);
      this.#count += 1;
    }
    this.#sweepDue += SWEPT_PER_WRITE;
  }

  /** Does nothing, because every row here can be read. */
  deleteEntity(): void {}

  ofEntity(entityId: string): readonly BucketRow[] {
    const rows: BucketRow[] = [];
    for (const [resource, entities] of this.#resources) {
      const bucket = entities.get(entityId)?.copy();
      if (bucket !== undefined) rows.push({ entityId, resource, bucket });
    }
    return rows.sort((left, right) => (left.resource < right.resource ? -1 : 1));
  }

  ofResource(resource: string, after: string | undefined): readonly BucketRow[] {
    const entities = this.#resources.get(resource);
    if (entities === undefined) return [];
    const sorted = this.#sorted.get(resource) ?? [...entities.keys()].sort();
    this.#sorted.set(resource, sorted);
    const from = after === undefined ? 0 : firstAfter(sorted, after);
    return sorted.slice(from, from + PAGE).map((entityId) => {
      const bucket = (entities.get(entityId) as Bucket).copy();
      return { entityId, resource, bucket };
    });
  }

  resources(after: string | undefined): readonly string[] {
    const names = [...this.#resources.keys()].sort();
    return after === undefined ? names : names.slice(firstAfter(names, after));
  }

  delete(entityId: string, resource: string): void {
    const entities = this.#resources.get(resource);
    if (entities?.delete(entityId) === true) this.#count -= 1;
    this.#sorted.delete(resource);
    if (entities?.size !== 0) return;
    this.#resources.delete(resource);
    this.#lastResource = undefined;
  }

  clear(): boolean {
    this.#resources.clear();
    this.#lastResource = undefined;
    this.#count = 0;
    this.#sorted.clear();
    this.#sweep = undefined;
    return false;
  }

  countUsage(entityId: string, resource: string, usage: PendingUsage): void {
    this.#countUsage({ namespaceId: this.namespaceId, entityId, resource }, usage);
  }

  /** Sweeps after the work, so that no bucket is removed that the step has read. */
  async step<T>(work: () => T): Promise<T> {
    this.#refuseClosed();
    const result = work();
    this.#sweepSome(this.#sweepDue);
    this.#sweepDue = 0;
    return result;
  }

  async peek<T>(work: () => T): Promise<T> {
    this.#refuseClosed();
    return work();
  }

  /** Checks a few buckets, in rounds over all of them, and removes those whose time is over. */
  #sweepSome(count: number): void {
    const nowMs = this.#sweepClock.nowMs();
    if (nowMs === undefined) return;
    const nowSeconds = nowMs / 1000;
    for (let swept = 0; swept < count; swept += 1) {
      this.#sweep ??= this.#all();
      const { done, value } = this.#sweep.next();
      if (done === true) {
        this.#sweep = undefined;
        return;
      }
      const [entityId, resource, bucket] = value;
      if (bucket.ttl === undefined || bucket.rare.slots.length > 0) continue;
      if (bucket.ttl > nowSeconds && !this.#mayGoEarly(bucket, nowMs)) continue;
      const usage = bucket.lastUsage(nowMs);
      if (usage !== undefined) this.countUsage(entityId, resource, usage);
      this.delete(entityId, resource);
    }
  }

  #mayGoEarly(bucket: Bucket, nowMs: number): boolean {
    const { kept, most, idleMs } = this.#room;
    if (this.#count <= kept || !bucket.isFull(nowMs)) return false;
    return this.#count > most || bucket.idleMs(nowMs) >= idleMs;
  }

  *#all(): Generator<readonly [string, string, Bucket]> {
    for (const [resource, entities] of this.#resources) {
      for (const [entityId, bucket] of entities) yield [entityId, resource, bucket];
    }
  }
}

/** Returns the index of the first text that sorts after `text`. */
function firstAfter(sorted: readonly string[], text: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as string) <= text) low = middle + 1;
    else high = middle;
  }
  return low;
}
