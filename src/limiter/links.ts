/** Cached parent links of entities. A hint: a consume reports when a bucket has another link. */

import { LRUCache } from "lru-cache";
import type { BucketStore, Link, LinkOptions } from "../buckets/bucket-store.ts";
import { sameLink } from "../buckets/recorded-link.ts";
import type { Clock } from "../domain/clock.ts";

const LINKS_MAX = 50_000;
const LIFETIME_MS = 60_000;

interface SeenLink {
  readonly link: Link;
  seenAtMs: number;
  /** Of the store: what this process has changed since, it has not seen. */
  relinks: number;
}

export class Links {
  readonly #buckets: BucketStore;
  readonly #clock: Clock;
  /** Bounded by size, because a bound by count takes its room in advance, for every limiter. */
  readonly #links = new LRUCache<string, SeenLink>({
    maxSize: LINKS_MAX,
    sizeCalculation: () => 1,
  });

  constructor(buckets: BucketStore, clock: Clock) {
    this.#buckets = buckets;
    this.#clock = clock;
  }

  /** Without a call while it was seen lately. */
  async of(
    entityId: string,
    resource: string,
    options: LinkOptions,
  ): Promise<{ link: Link; linkIsFresh: boolean }> {
    const known = this.known(entityId, resource);
    if (known !== undefined) return { link: known, linkIsFresh: false };
    const link = await this.#buckets.linkOf(entityId, resource, options);
    this.see(entityId, resource, link);
    return { link, linkIsFresh: true };
  }

  /** As it was seen lately. */
  known(entityId: string, resource: string): Link | undefined {
    const found = this.#links.get(keyOf(entityId, resource));
    if (found === undefined || found.relinks !== this.#buckets.relinks) return undefined;
    return this.#clock() - found.seenAtMs > LIFETIME_MS ? undefined : found.link;
  }

  see(entityId: string, resource: string, link: Link): void {
    const key = keyOf(entityId, resource);
    const seenAtMs = this.#clock();
    const { relinks } = this.#buckets;
    const known = this.#links.get(key);
    if (known === undefined || !sameLink(known.link, link)) {
      this.#links.set(key, { link, seenAtMs, relinks });
      return;
    }
    known.seenAtMs = seenAtMs;
    known.relinks = relinks;
  }
}

/** The Python library may let an entity cascade for one resource and not for another. */
function keyOf(entityId: string, resource: string): string {
  return `${entityId}#${resource}`;
}
