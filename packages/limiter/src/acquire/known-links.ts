/**
 * Caches the links of entities to their parents. A cached link is a hint: a consume reports when a
 * bucket has another link.
 */

import { boundedMap } from "../base/bounded-map.ts";
import type { Clock, Deadline } from "../base/time.ts";
import type { BucketStore } from "../buckets/bucket-store.ts";
import { type Link, sameLink } from "../buckets/leg.ts";
import { KNOWN_MS } from "../buckets/spent.ts";
import { type BucketName, bucketId } from "../records/keys.ts";

const LINKS_MAX = 50_000;
const LINK_LIFETIME_MS = 60_000;

interface CachedLink {
  readonly link: Link;
  seenAtMs: number;
  /** When the store last showed it, in epoch milliseconds; a link may come from a cached state. */
  shownAtMs: number;
  /** Link changes of this process when it was seen; stale once that count grows. */
  relinks: number;
}

export interface LinkRequest extends BucketName {
  /** Whether the link must be asked of the store, because it decides a refusal. */
  readonly isFresh: boolean;
}

export class KnownLinks {
  readonly #buckets: BucketStore;
  readonly #clock: Clock;
  /** Keyed by bucket: in the Python library, an entity may cascade for some resources only. */
  readonly #links = boundedMap<CachedLink>(LINKS_MAX);

  constructor(buckets: BucketStore, clock: Clock) {
    this.#buckets = buckets;
    this.#clock = clock;
  }

  /** Returns a link that is cached, by the name of its bucket. */
  get(name: string): Link | undefined {
    return this.#cached(name)?.link;
  }

  /** Returns whether the store has shown the link within the last second. */
  isShown(name: string): boolean {
    const cached = this.#cached(name);
    return cached !== undefined && this.#isRecent(cached);
  }

  /** Caches the link of an entity. `isShown`: the store has just shown it. */
  see(entityId: string, resource: string, link: Link, isShown: boolean): void {
    const name = bucketId({ entityId, resource });
    const seenAtMs = this.#clock();
    const { relinks } = this.#buckets;
    const cached = this.#links.get(name);
    if (cached === undefined || !sameLink(cached.link, link)) {
      const shownAtMs = isShown ? seenAtMs : Number.NEGATIVE_INFINITY;
      this.#links.set(name, { link, seenAtMs, shownAtMs, relinks });
      return;
    }
    cached.seenAtMs = seenAtMs;
    if (isShown) cached.shownAtMs = seenAtMs;
    cached.relinks = relinks;
  }

  /** Returns a link, without a request where it is cached and need not be fresh. */
  async read(
    { entityId, resource, isFresh }: LinkRequest,
    deadline: Deadline,
    policy: () => Promise<boolean | undefined>,
  ): Promise<{ link: Link; linkIsFresh: boolean }> {
    const cached = this.#cached(bucketId({ entityId, resource }));
    if (cached !== undefined && (!isFresh || this.#isRecent(cached))) {
      return { link: cached.link, linkIsFresh: false };
    }
    const options = { deadline, policy, fresh: isFresh };
    const link = await this.#buckets.linkOf(entityId, resource, options);
    this.see(entityId, resource, link, isFresh);
    return { link, linkIsFresh: true };
  }

  #isRecent({ shownAtMs }: CachedLink): boolean {
    return this.#clock() - shownAtMs <= KNOWN_MS;
  }

  #cached(name: string): CachedLink | undefined {
    const cached = this.#links.get(name);
    if (cached === undefined || cached.relinks !== this.#buckets.relinks) return undefined;
    return this.#clock() - cached.seenAtMs > LINK_LIFETIME_MS ? undefined : cached;
  }
}
