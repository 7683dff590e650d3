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
  readonly #resources = new Map<string, Map<string, EmbeddedBucket>>();
  #sweep: Iterator<[Map<string, EmbeddedBucket>, string, EmbeddedBucket]> | undefined;

  constructor(options: { clock: Clock; recordedLink: (entityId: string) => Link }) {
    this.#clock = options.clock;
    this.recordedLink = options.recordedLink;
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
    this.#resources.get(resource)?.delete(entityId);
  }

  clear(): void {
    this.#resources.clear();
    this.#sweep = undefined;
  }

  async step<T>(work: () => T): Promise<T> {
    return work();
  }

  async peek<T>(work: () => T): Promise<T> {
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
      const [entities, entityId, bucket] = value;
      if (bucket.ttl !== undefined && bucket.ttl <= nowSeconds) entities.delete(entityId);
    }
  }

  *#all(): Generator<[Map<string, EmbeddedBucket>, string, EmbeddedBucket]> {
    for (const entities of this.#resources.values()) {
      for (const [entityId, bucket] of entities) yield [entities, entityId, bucket];
    }
  }
}
