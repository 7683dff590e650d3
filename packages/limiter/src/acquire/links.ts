/** Cached parent links of entities. A hint: a consume reports when a bucket has another link. */

import { boundedMap } from "../base/bounded-map.ts";
import type { Clock } from "../base/time.ts";
import type { LinkOptions } from "../buckets/bucket-consumer.ts";
import type { BucketStore } from "../buckets/bucket-store.ts";
import type { Link } from "../buckets/leg.ts";
import { sameLink } from "../buckets/link.ts";
import { bucketId } from "../records/keys.ts";

const LINKS_MAX = 50_000;
const LIFETIME_MS = 60_000;
/** A link shown longer ago than this may not refuse a call; the same as for a balance. */
const SHOWN_MS = 1000;

interface SeenLink {
  readonly link: Link;
  seenAtMs: number;
  /** When the store has last shown it; a link may also come from a cached state. */
  shownAtMs: number;
  /** How often this process had changed links when it saw this one; stale once that grows. */
  relinks: number;
}

export class Links {
  readonly #buckets: BucketStore;
  readonly #clock: Clock;
  /** By bucket: the Python library may let an entity cascade for one resource, not for another. */
  readonly #links = boundedMap<SeenLink>(LINKS_MAX);

  constructor(buckets: BucketStore, clock: Clock) {
    this.#buckets = buckets;
    this.#clock = clock;
  }

  /** Returns the link, without a request while it was seen lately. */
  async of(
    entityId: string,
    resource: string,
    options: LinkOptions,
  ): Promise<{ link: Link; linkIsFresh: boolean }> {
    const isFresh = options.fresh === true;
    const found = this.#find(entityId, resource);
    const isKnown = found !== undefined && (!isFresh || this.#isShown(found));
    if (isKnown) return { link: found.link, linkIsFresh: false };
    const link = await this.#buckets.linkOf(entityId, resource, options);
    this.see(entityId, resource, link, isFresh);
    return { link, linkIsFresh: true };
  }

  /** Returns the link if it was seen lately. */
  known(entityId: string, resource: string): Link | undefined {
    return this.#find(entityId, resource)?.link;
  }

  /** `isShown`: the store has just shown it. */
  see(entityId: string, resource: string, link: Link, isShown: boolean): void {
    const key = bucketId({ entityId, resource });
    const seenAtMs = this.#clock();
    const { relinks } = this.#buckets;
    const known = this.#links.get(key);
    if (known === undefined || !sameLink(known.link, link)) {
      const shownAtMs = isShown ? seenAtMs : Number.NEGATIVE_INFINITY;
      this.#links.set(key, { link, seenAtMs, shownAtMs, relinks });
      return;
    }
    known.seenAtMs = seenAtMs;
    if (isShown) known.shownAtMs = seenAtMs;
    known.relinks = relinks;
  }

  #find(entityId: string, resource: string): SeenLink | undefined {
    const found = this.#links.get(bucketId({ entityId, resource }));
    if (found === undefined || found.relinks !== this.#buckets.relinks) return undefined;
    return this.#clock() - found.seenAtMs > LIFETIME_MS ? undefined : found;
  }

  #isShown({ shownAtMs }: SeenLink): boolean {
    return this.#clock() - shownAtMs <= SHOWN_MS;
  }
}
