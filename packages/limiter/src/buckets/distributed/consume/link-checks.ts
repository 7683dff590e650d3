/**
 * Reads the parent links in buckets, and checks them.
 *
 * Creating an entity writes its link into the existing buckets, which it finds by an index. The
 * index lags, so a bucket that is created at that moment may be missed. A process that sees a
 * young bucket therefore compares it with the record of its entity when the index has caught up, in
 * the background and many at once: an acquire stays one write and no read. A process that sees an
 * old bucket for the first time compares at once.
 */

import type { Deadline, Timer } from "../../../base/time.ts";
import { RateLimiterUnavailable } from "../../../domain/errors/errors.ts";
import { type BucketName, bucketId, bucketKey, entityKey } from "../../../records/keys.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import { readShared } from "../../../records/shared-reads.ts";
import type { Key } from "../../../storage/item.ts";
import type { LinkOptions } from "../../bucket-consumer.ts";
import {
  byPolicy,
  effectiveLink,
  hasPolicy,
  type Link,
  linkChange,
  linkIn,
  linkInRecord,
  linkTests,
  NO_POLICY,
  sameLink,
} from "../../leg.ts";
import { decoded, type SeenBucket } from "../plan/seen-bucket.ts";
import { BUCKET_EXISTS } from "../plan/write-plan.ts";
import type { CachedStates, YoungBucket } from "../state/cached-states.ts";

/** Indexes lag by less than a second; this is generous. */
const YOUNG_MS = 2000;
/** Long after the index has caught up, so that one request does for many. */
const PAUSE_MS = 30_000;
/** The most buckets to check later; beyond it, the first ones of a pause go unchecked. */
const YOUNG_MAX = 10_000;

export interface LinkCheckOptions {
  readonly timer: Timer;
  readonly timeoutMs: number;
}

export class LinkChecks {
  readonly #context: RecordContext;
  readonly #states: CachedStates;
  readonly #options: LinkCheckOptions | undefined;
  readonly #closing = new AbortController();
  #watch: Promise<void> | undefined;

  /** Without options there is no background check. */
  constructor(context: RecordContext, states: CachedStates, options?: LinkCheckOptions) {
    this.#context = context;
    this.#states = states;
    this.#options = options;
  }

  /**
   * Returns the link of an entity: from the cached state of the bucket; else bucket and record are
   * read together.
   */
  async linkOf(
    name: BucketName,
    { policy: policyOf, fresh }: Pick<LinkOptions, "policy" | "fresh">,
    deadline: Deadline,
  ): Promise<Link> {
    const { namespaceId, store, clock } = this.#context;
    const { entityId, resource } = name;
    const key = bucketKey(namespaceId, entityId, resource, 0);
    const cached = this.#states.get(key.PK)?.bucket;
    if (cached !== undefined && fresh !== true) {
      return effectiveLink(linkIn(cached), await policyOf?.());
    }
    const observe = this.#states.observe(key.PK);
    const keys = [key, entityKey(namespaceId, entityId)];
    const [item, record] = await readShared(store, bucketId(name), keys, deadline.timeoutMs);
    const { bucket } = observe(decoded(item), clock());
    const link = linkInRecord(record);
    const policy = await policyOf?.();
    if (bucket !== undefined && hasPolicy(bucket)) return effectiveLink(linkIn(bucket), policy);
    if (policy !== undefined) return byPolicy(link, policy);
    if (bucket === undefined) return link;
    this.noteFirst(key, bucket);
    await this.compare(key, { entityId, link: linkIn(bucket) }, link, deadline.timeoutMs);
    return link;
  }

  /** Notes a bucket that this process has not seen before. */
  noteFirst(key: Key, bucket: SeenBucket | undefined): void {
    if (bucket === undefined || this.#options === undefined || this.#isClosed) return;
    if (this.#context.clock() >= bucket.refilledAtMs + YOUNG_MS) return;
    const { entityId } = bucket;
    const { timer } = this.#options;
    const { young } = this.#states;
    young.set(key.PK, { key, entityId, link: linkIn(bucket), atMs: timer.nowMs() });
    if (young.size > YOUNG_MAX) young.delete(young.keys().next().value as string);
    this.#watch ??= this.#watchOver(this.#options).finally(() => {
      this.#watch = undefined;
    });
  }

  /** Compares the bucket with the record. A store that fails is asked next time. */
  async check(key: Key, timeoutMs: number): Promise<void> {
    const young = this.#states.young.get(key.PK);
    if (young !== undefined) await this.#compareAll([young], timeoutMs);
  }

  /** Ends the background check; the next process that sees a bucket compares it. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#watch;
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Compares until nothing is left or the store fails; then a later call starts it again. */
  async #watchOver({ timer, timeoutMs }: LinkCheckOptions): Promise<void> {
    while (this.#states.young.size > 0) {
      const begunMs = timer.nowMs();
      await timer.sleep(PAUSE_MS, this.#closing.signal, true);
      const oldMs = Math.max(begunMs, timer.nowMs() - YOUNG_MS);
      const due = [...this.#states.young.values()].filter(({ atMs }) => atMs <= oldMs);
      if (this.#isClosed || !(await this.#compareAll(due, timeoutMs))) return;
    }
  }

  /**
   * Compares buckets, and returns whether the store has answered. Records need not be read
   * consistently: one that is written later finds the bucket by the index.
   */
  async #compareAll(due: readonly YoungBucket[], timeoutMs: number): Promise<boolean> {
    const { store, namespaceId } = this.#context;
    try {
      const keys = due.map(({ entityId }) => entityKey(namespaceId, entityId));
      const records = await store.getMany(keys, { timeoutMs });
      for (const [at, young] of due.entries()) {
        await this.compare(young.key, young, linkInRecord(records[at]), timeoutMs);
        if (this.#states.young.get(young.key.PK) === young) this.#states.young.delete(young.key.PK);
      }
      return true;
    } catch (error) {
      // The next acquire will report any other problem of the store.
      if (!(error instanceof RateLimiterUnavailable)) {
        for (const { key } of due) this.#states.young.delete(key.PK);
      }
      return false;
    }
  }

  /**
   * Writes the recorded link into a bucket that has another one. Both are read again, as of one
   * moment: they were not when the difference was noticed, and the link may have been on its way.
   */
  async compare(
    key: Key,
    seen: { readonly entityId: string; readonly link: Link },
    recorded: Link,
    timeoutMs: number,
  ): Promise<void> {
    if (sameLink(seen.link, recorded)) return;
    const { store, namespaceId } = this.#context;
    const keys = [key, entityKey(namespaceId, seen.entityId)];
    const [item, record] = await store.getMany(keys, { snapshot: true, timeoutMs });
    const bucket = decoded(item);
    const link = linkInRecord(record);
    if (bucket === undefined || hasPolicy(bucket) || sameLink(linkIn(bucket), link)) return;
    const condition = [BUCKET_EXISTS, NO_POLICY, ...linkTests(bucket)];
    await store.update(key, linkChange(link), condition, { timeoutMs });
    this.#states.forget(key.PK);
  }
}
