/** The buckets of one namespace in this process. */

import type { Clock } from "../../domain/clock.ts";
import type { Link } from "../bucket-store.ts";
import type { BucketRow, BucketTable } from "./bucket-table.ts";
import type { EmbeddedBucket } from "./embedded-bucket.ts";

const PAGE = 1000;
/** Buckets looked at by each write, to see whether their time is over. */
const SWEPT_PER_WRITE = 2;

export class MemoryBucketTable implements BucketTable {
  readonly recordedLink: (entityId: string) => Link;
  readonly #clock: Clock;
  readonly #refuseClosed: () => void;
  readonly #resources = new Map<string, Map<string, EmbeddedBucket>>();
  #sweep: Iterator<BucketRow> | undefined;

  constructor(options: {
    clock: Clock;
    recordedLink: (entityId: string) => Link;
    /** Throws when the store was closed. */
    refuseClosed: () => void;
  }) {
    this.#clock = options.clock;
    this.recordedLink = options.recordedLink;
    this.#refuseClosed = options.refuseClosed;
  }

  get(entityId: string, resource: string): EmbeddedBucket | undefined {
    return this.#resources.get(resource)?.get(entityId);
  }

  set(entityId: string, resource: string, bucket: EmbeddedBucket): void {
    let entities = this.#resources.get(resource);
    if (entities === undefined) {
      entities = new Map();
      this.#resources.set(resource, entities);
    }
    entities.set(entityId, bucket);
    this.#sweepSome();
  }

  ofEntity(entityId: string): readonly BucketRow[] {
    const rows: BucketRow[] = [];
    for (const [resource, entities] of this.#resources) {
      const bucket = entities.get(entityId);
      if (bucket !== undefined) rows.push({ entityId, resource, bucket });
    }
    return rows.sort((left, right) => (left.resource < right.resource ? -1 : 1));
  }

  ofResource(resource: string, after: string | undefined): readonly BucketRow[] {
    return [...(this.#resources.get(resource) ?? [])]
      .filter(([entityId]) => after === undefined || entityId > after)
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .slice(0, PAGE)
      .map(([entityId, bucket]) => ({ entityId, resource, bucket }));
  }

  delete(entityId: string, resource: string): void {
    const entities = this.#resources.get(resource);
    entities?.delete(entityId);
    if (entities?.size === 0) this.#resources.delete(resource);
  }

  clear(): void {
    this.#resources.clear();
    this.#sweep = undefined;
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
  #sweepSome(): void {
    const nowSeconds = this.#clock() / 1000;
    for (let swept = 0; swept < SWEPT_PER_WRITE; swept += 1) {
      this.#sweep ??= this.#all();
      const { done, value } = this.#sweep.next();
      if (done === true) {
        this.#sweep = undefined;
        return;
      }
      const { entityId, resource, bucket } = value;
      if (bucket.ttl !== undefined && bucket.ttl <= nowSeconds) this.delete(entityId, resource);
    }
  }

  *#all(): Generator<BucketRow> {
    for (const [resource, entities] of this.#resources) {
      for (const [entityId, bucket] of entities) yield { entityId, resource, bucket };
    }
  }
}
