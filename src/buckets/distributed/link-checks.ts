/**
 * Whether buckets know whom their entity charges.
 *
 * Creating an entity writes its link into the buckets that exist, which it finds by an index. The
 * index lags, so a bucket that comes about at that very moment may be missed. Whoever meets a
 * bucket that young therefore compares it with the record of its entity once more, with the first
 * acquire after the index has caught up, if that is soon; and whoever meets an old one, at once.
 */

import { LRUCache } from "lru-cache";
import { RateLimiterUnavailable } from "../../domain/errors.ts";
import { entityKey } from "../../records/keys.ts";
import type { RecordContext } from "../../records/record-context.ts";
import type { Key } from "../../storage/item.ts";
import { ITEM_EXISTS, type Test } from "../../storage/item-store.ts";
import type { Link } from "../bucket-store.ts";
import { linkInRecord } from "../recorded-link.ts";
import { decoded, type SeenBucket } from "./image.ts";
import type { Views } from "./views.ts";

/** Indexes lag by less than a second; this is generous. */
const YOUNG_MS = 2000;
/** A bucket in use is charged again by then; one that is not stays at one write and no read. */
const PASSED_MS = 30_000;
const CHECKS_MAX = 10_000;

export class LinkChecks {
  readonly #context: RecordContext;
  readonly #views: Views;
  /** When to compare; bounded by size, because a bound by count takes its room in advance. */
  readonly #dueMs = new LRUCache<string, number>({
    maxSize: CHECKS_MAX,
    sizeCalculation: () => 1,
  });

  constructor(context: RecordContext, views: Views) {
    this.#context = context;
    this.#views = views;
  }

  /** A bucket that this client has not seen before. */
  met(key: Key, bucket: SeenBucket | undefined): void {
    if (bucket === undefined) return;
    const dueMs = bucket.refilledAtMs + YOUNG_MS;
    if (this.#context.clock() < dueMs) this.#dueMs.set(key.PK, dueMs);
  }

  isDue(key: Key): boolean {
    const dueMs = this.#dueMs.get(key.PK);
    if (dueMs === undefined) return false;
    const lateMs = this.#context.clock() - dueMs;
    if (lateMs > PASSED_MS) this.#dueMs.delete(key.PK);
    return lateMs >= 0 && lateMs <= PASSED_MS;
  }

  /** Compares the bucket with the record. A store that fails is asked next time. */
  async check(key: Key, entityId: string, timeoutMs: number): Promise<void> {
    const dueMs = this.#dueMs.get(key.PK) ?? 0;
    this.#dueMs.delete(key.PK);
    try {
      const { store, namespaceId } = this.#context;
      const options = { consistent: true, timeoutMs };
      const record = await store.get(entityKey(namespaceId, entityId), options);
      const bucket = this.#views.get(key.PK)?.bucket;
      if (bucket !== undefined) await this.compare(key, bucket, linkInRecord(record), timeoutMs);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      this.#dueMs.set(key.PK, dueMs);
    }
  }

  /**
   * Writes the recorded link into a bucket that has another one. Both are read again, as of one
   * moment: they were not when the difference was noticed, and the link may have been on its way.
   */
  async compare(key: Key, seen: SeenBucket, recorded: Link, timeoutMs: number): Promise<void> {
    if (sameLink(linkIn(seen), recorded)) return;
    const { store, namespaceId } = this.#context;
    const keys = [key, entityKey(namespaceId, seen.entityId)];
    const [item, record] = await store.getMany(keys, { snapshot: true, timeoutMs });
    const bucket = decoded(item);
    const link = linkInRecord(record);
    if (bucket === undefined || sameLink(linkIn(bucket), link)) return;
    await store.update(key, linkChange(link), [ITEM_EXISTS, ...linkTests(bucket)], { timeoutMs });
    this.#views.forget(key.PK);
  }
}

/** What makes a bucket charge whom it should. */
export function linkChange({ cascade, parentId }: Link) {
  return parentId === undefined
    ? { set: { cascade }, remove: ["parent_id"] }
    : { set: { cascade, parent_id: parentId } };
}

/** The bucket still has the link that was seen. */
export function linkTests({ cascade, parentId }: Link): Test[] {
  const parent = "parent_id";
  return [
    { is: "=", name: "cascade", value: cascade, orAbsent: !cascade },
    parentId === undefined
      ? { is: "absent", name: parent }
      : { is: "=", name: parent, value: parentId },
  ];
}

export function linkIn({ cascade, parentId }: SeenBucket): Link {
  return { cascade, parentId };
}

function sameLink(left: Link, right: Link): boolean {
  return left.cascade === right.cascade && left.parentId === right.parentId;
}
