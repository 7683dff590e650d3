/** The buckets of one namespace in this process. */

import type { Clock } from "../../base/time.ts";
import type { AdjustedBucket, FastOutcome, FastRequest } from "../fast-path.ts";
import type { Link } from "../leg.ts";
import type { BucketRow, BucketTable } from "./bucket-table.ts";
import type { EmbeddedBucket } from "./embedded-bucket.ts";
import { type Ancestors, consumeChain } from "./fast-chain.ts";
import type { FastTable } from "./fast-table.ts";
import { type FastConfig, PackedBucket } from "./packed-bucket.ts";
import type { StepItems } from "./row-operation.ts";
import { SharedBuilds } from "./shared-builds.ts";
import { SweepClock } from "./sweep-clock.ts";
import { type CountUsage, type PendingUsage, pendingUsage } from "./usage-tally.ts";

const PAGE = 1000;
/** Buckets looked at by each write, to see whether their time is over. */
const SWEPT_PER_WRITE = 2;
/**
 * Entity ids come from outside, and an hour may bring millions of them. A bucket that is full again
 * can be deleted before its TTL, because a new one would hold the same. With more than `kept`
 * buckets the table deletes full ones that were idle for `idleMs`; with more than `most`, every
 * full one that the sweep meets.
 */
const ROOM = { kept: 100_000, most: 1_000_000, idleMs: 300_000 };
/** Consumes on the fast path create no bucket, so they sweep more rarely. */
const CONSUMES_PER_SWEEP = 512;
const SWEPT_BY_CONSUMES = 16;

export class MemoryBucketTable implements BucketTable, FastTable {
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
  readonly #resources = new Map<string, Map<string, PackedBucket>>();
  /** The resource that was looked for last, with what was found; dropped when that changes. */
  #lastResource: string | undefined;
  #lastEntities: Map<string, PackedBucket> | undefined;
  readonly #builds = new SharedBuilds();
  #consumes = 0;
  /** How many buckets there are. */
  #count = 0;
  /** The entities of a resource in order; dropped when a bucket is added or removed. */
  readonly #sorted = new Map<string, readonly string[]>();
  #sweep: Iterator<readonly [string, string, PackedBucket]> | undefined;

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

  get(entityId: string, resource: string): EmbeddedBucket | undefined {
    return this.#resources.get(resource)?.get(entityId)?.unpacked();
  }

  /** Consumes from a bucket whose limits are cached, if there is nothing else to do. */
  consume(
    request: FastRequest,
    generation: number,
    ignoresMissing: boolean,
  ): FastOutcome | undefined {
    const { entityId, resource, limits } = request;
    const bucket = this.#bucket(entityId, resource);
    if (bucket === undefined) return undefined;
    this.#refuseClosed();
    if (!bucket.isFastFor(limits, generation)) return undefined;
    const nowMs = this.#clock();
    const outcome = bucket.cascades
      ? consumeChain(
          { request, bucket, ignoresMissing, nowMs },
          this.#ancestors(request, generation),
        )
      : bucket.consume(request, ignoresMissing, nowMs);
    this.#consumes += 1;
    if (this.#consumes % CONSUMES_PER_SWEEP === 0) this.#sweepSome(SWEPT_BY_CONSUMES);
    return outcome;
  }

  /** A function here, because one within `consume` would cost every consume an allocation. */
  #ancestors({ resource, limits }: FastRequest, generation: number): Ancestors {
    return (entityId) => {
      const ancestor = this.#resources.get(resource)?.get(entityId);
      return ancestor?.isFastAbove(limits, generation) === true ? ancestor : undefined;
    };
  }

  adjust(
    { entityId, resource, config }: AdjustedBucket,
    deltasMilli: readonly number[],
    acquires: number,
  ): boolean {
    this.#refuseClosed();
    const bucket = this.#bucket(entityId, resource);
    if (bucket === undefined) return false;
    return bucket.adjust(config.limits, deltasMilli, acquires, this.#clock());
  }

  /** Most calls are for the same resource as the call before. */
  #bucket(entityId: string, resource: string): PackedBucket | undefined {
    if (resource !== this.#lastResource) {
      this.#lastEntities = this.#resources.get(resource);
      this.#lastResource = resource;
    }
    return this.#lastEntities?.get(entityId);
  }

  remember(entityId: string, resource: string, fast: FastConfig, untilMs: number): void {
    const bucket = this.#resources.get(resource)?.get(entityId);
    if (bucket !== undefined) this.#builds.remember(bucket, fast, untilMs);
  }

  set(entityId: string, resource: string, bucket: EmbeddedBucket): void {
    let entities = this.#resources.get(resource);
    if (entities === undefined) {
      entities = new Map();
      this.#resources.set(resource, entities);
      this.#lastResource = undefined;
    }
    const known = entities.get(entityId);
    if (known === undefined) {
      entities.set(entityId, new PackedBucket(bucket, this.#builds.of(bucket, undefined)));
      this.#sorted.delete(resource);
      this.#count += 1;
    } else {
      known.replace(bucket, this.#builds.of(bucket, known.build));
    }
    this.#sweepSome(SWEPT_PER_WRITE);
  }

  /** Every row can be read here. */
  deleteEntity(): void {}

  ofEntity(entityId: string): readonly BucketRow[] {
    const rows: BucketRow[] = [];
    for (const [resource, entities] of this.#resources) {
      const bucket = entities.get(entityId)?.unpacked();
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
      const bucket = (entities.get(entityId) as PackedBucket).unpacked();
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

  async step<T>(work: () => T): Promise<T> {
    this.#refuseClosed();
    return work();
  }

  async peek<T>(work: () => T): Promise<T> {
    this.#refuseClosed();
    return work();
  }

  /** Goes round all buckets, a few with each write, and drops those whose time is over. */
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
      if (bucket.ttl === undefined) continue;
      if (bucket.ttl > nowSeconds && !this.#mayGoEarly(bucket, nowMs)) continue;
      const usage = pendingUsage(bucket.unpacked());
      if (usage !== undefined) this.countUsage(entityId, resource, usage);
      this.delete(entityId, resource);
    }
  }

  #mayGoEarly(bucket: PackedBucket, nowMs: number): boolean {
    const { kept, most, idleMs } = this.#room;
    if (this.#count <= kept || !bucket.isFull(nowMs)) return false;
    return this.#count > most || bucket.idleMs(nowMs) >= idleMs;
  }

  *#all(): Generator<readonly [string, string, PackedBucket]> {
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
