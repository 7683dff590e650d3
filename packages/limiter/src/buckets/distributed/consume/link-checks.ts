/**
 * Checks the parent links in buckets.
 *
 * Creating an entity writes its link into the existing buckets, which it finds by an index. The
 * index lags, so a bucket that is created at that moment may be missed. A process that meets a
 * young bucket therefore compares it with the record of its entity when the index has caught up, in
 * the background and many at once: an acquire stays one write and no read. A process that meets an
 * old bucket for the first time compares at once.
 */

import type { Timer } from "../../../base/time.ts";
import { RateLimiterUnavailable } from "../../../domain/errors/errors.ts";
import { entityKey } from "../../../records/keys.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import type { Key } from "../../../storage/item.ts";
import type { Link } from "../../leg.ts";
import {
  hasPolicy,
  linkChange,
  linkIn,
  linkInRecord,
  linkTests,
  NO_POLICY,
  sameLink,
} from "../../link.ts";
import { decoded, type SeenBucket } from "../plan/seen-bucket.ts";
import { BUCKET_EXISTS } from "../plan/write-plan.ts";
import type { CachedStates } from "../state/cached-states.ts";

/** Indexes lag by less than a second; this is generous. */
const YOUNG_MS = 2000;
/** Long after the index has caught up, so that one request does for many. */
const PAUSE_MS = 30_000;
/** A process that slept meanwhile, as Lambdas do between calls, compares before it consumes. */
const LATE_MS = 60_000;
/** The most buckets to check later; beyond it, the first ones of a pause go unchecked. */
const MET_MAX = 10_000;

/** A bucket that was met when it was young. */
interface Met {
  readonly key: Key;
  readonly entityId: string;
  /** The link that the bucket had. */
  readonly link: Link;
  /** When it was met, by the timer. */
  readonly atMs: number;
}

export interface LinkCheckOptions {
  readonly timer: Timer;
  readonly timeoutMs: number;
}

export class LinkChecks {
  readonly #context: RecordContext;
  readonly #states: CachedStates;
  readonly #options: LinkCheckOptions | undefined;
  /** In the order in which they were met. */
  readonly #met = new Map<string, Met>();
  readonly #closing = new AbortController();
  #watch: Promise<void> | undefined;

  /** Without options there is no background check. */
  constructor(context: RecordContext, states: CachedStates, options?: LinkCheckOptions) {
    this.#context = context;
    this.#states = states;
    this.#options = options;
  }

  /** Notes a bucket that this client has not seen before. */
  met(key: Key, bucket: SeenBucket | undefined): void {
    if (bucket === undefined || this.#options === undefined || this.#isClosed) return;
    if (this.#context.clock() >= bucket.refilledAtMs + YOUNG_MS) return;
    const { entityId } = bucket;
    const { timer } = this.#options;
    this.#met.set(key.PK, { key, entityId, link: linkIn(bucket), atMs: timer.nowMs() });
    if (this.#met.size > MET_MAX) this.#met.delete(this.#met.keys().next().value as string);
    this.#watch ??= this.#watchOver(this.#options).finally(() => {
      this.#watch = undefined;
    });
  }

  /** Whether the bucket should have been compared long ago. */
  isDue(key: Key): boolean {
    const met = this.#met.get(key.PK);
    if (met === undefined || this.#options === undefined) return false;
    return this.#options.timer.nowMs() - met.atMs > LATE_MS;
  }

  /** Compares the bucket with the record. A store that fails is asked next time. */
  async check(key: Key, timeoutMs: number): Promise<void> {
    const met = this.#met.get(key.PK);
    if (met !== undefined) await this.#compareAll([met], timeoutMs);
  }

  /** Ends the background check; the next process that meets a bucket compares it. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#watch;
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Compares until nothing is left or the store fails; then a later call starts it again. */
  async #watchOver({ timer, timeoutMs }: LinkCheckOptions): Promise<void> {
    while (this.#met.size > 0) {
      const begunMs = timer.nowMs();
      await timer.sleep(PAUSE_MS, this.#closing.signal, true);
      const oldMs = Math.max(begunMs, timer.nowMs() - YOUNG_MS);
      const due = [...this.#met.values()].filter(({ atMs }) => atMs <= oldMs);
      if (this.#isClosed || !(await this.#compareAll(due, timeoutMs))) return;
    }
  }

  /**
   * Whether the store has answered. Records may be read as they were a moment ago: one that is
   * written later finds the bucket by the index.
   */
  async #compareAll(due: readonly Met[], timeoutMs: number): Promise<boolean> {
    const { store, namespaceId } = this.#context;
    try {
      const keys = due.map(({ entityId }) => entityKey(namespaceId, entityId));
      const records = await store.getMany(keys, { timeoutMs });
      for (const [at, met] of due.entries()) {
        await this.compare(met.key, met, linkInRecord(records[at]), timeoutMs);
        if (this.#met.get(met.key.PK) === met) this.#met.delete(met.key.PK);
      }
      return true;
    } catch (error) {
      // The next acquire will report any other problem of the store.
      if (!(error instanceof RateLimiterUnavailable)) {
        for (const { key } of due) this.#met.delete(key.PK);
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
