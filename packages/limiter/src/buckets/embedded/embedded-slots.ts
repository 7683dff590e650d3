/** Holds slots of embedded buckets for this process, and gives back those of dead holders. */

import { boundedMap } from "../../base/bounded-map.ts";
import type { Deadline } from "../../base/time.ts";
import { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import { decodeHolder, type HolderRecord, holderKey } from "../../records/holders.ts";
import { bucketId } from "../../records/keys.ts";
import type { Key } from "../../storage/item.ts";
import type { ConsumeResult } from "../bucket-consumer.ts";
import type { Adjustment, BucketConfig, Leg } from "../leg.ts";
import { lacksSlots, slotsOnly, takesSlots } from "../slots/slot-amounts.ts";
import { entryOf, type SlotEntry } from "../slots/slot-entries.ts";
import { holderOf, type SlotHolder } from "../slots/slot-holder.ts";
import type { BucketTable } from "./bucket-table.ts";
import type { Draft } from "./draft.ts";
import { UnsureSlots, type UnsureSlotsOptions } from "./unsure-slots.ts";

/** The holder, as buckets use it: this process, or the only one there is. */
export type SlotSource = Pick<
  SlotHolder,
  "current" | "untilMs" | "renew" | "newEntry" | "add" | "close"
> & {
  /** Whether the process of a record cannot use its slots any more. */
  isDead(record: HolderRecord | undefined, nowMs: number): boolean;
};

/** Dead holders of a bucket are searched once in this time. */
const SEARCH_MS = 1000;
const SEARCHED_MAX = 10_000;

export class EmbeddedSlots {
  readonly #source: SlotSource;
  readonly #table: BucketTable;
  readonly #unsure: UnsureSlots;
  readonly #searchedMs = boundedMap<number>(SEARCHED_MAX);

  constructor(
    source: SlotSource,
    options: Pick<UnsureSlotsOptions, "table" | "timer" | "random" | "closed" | "giveBack">,
  ) {
    this.#source = source;
    this.#table = options.table;
    const untaken = (adjustment: Adjustment) => this.adjusted(adjustment);
    this.#unsure = new UnsureSlots({ ...options, untaken });
  }

  /** Runs a step that takes slots; where its outcome stays unknown, they are given back. */
  async take(
    legs: readonly Leg[],
    work: () => ConsumeResult,
    timeoutMs: number | undefined,
  ): Promise<ConsumeResult> {
    const token = this.#unsure.newToken();
    let last: ConsumeResult | undefined;
    const run = () => {
      last = work();
      return last;
    };
    try {
      const result = await this.#table.step(run, timeoutMs, legs, token);
      this.#granted(legs, result);
      return result;
    } catch (error) {
      if (last !== undefined && error instanceof RateLimiterUnavailable && !error.nothingWritten) {
        // Until it is known, they are held: this process goes on being renewed.
        this.#granted(legs, last);
        this.#unsure.add(legs, last, token);
      }
      throw error;
    }
  }

  /** Returns the holder that slots of a call are taken under; `undefined`: it takes none. */
  holderFor(legs: readonly Leg[], timeoutMs?: number): string | undefined | Promise<string> {
    if (!legs.some(takesSlots)) return undefined;
    return this.#source.current ?? this.#source.renew(timeoutMs);
  }

  /** Whether the record of the holder is over: the step has waited for too long. */
  isOver(nowMs: number): boolean {
    return nowMs >= this.#source.untilMs;
  }

  /** Returns the entry for the slots of a leg; `undefined` where it takes none. */
  entryFor({ leg, bucket }: Draft, holderId: string | undefined): string | undefined {
    if (holderId === undefined || !takesSlots(leg)) return undefined;
    return entryOf(bucket.rare.slots, holderId) ?? this.#source.newEntry(holderId);
  }

  /**
   * Gives back slots of dead holders where a call lacks some; false: there were none. It begins
   * again with its step, so only a search that found none is remembered.
   */
  reclaim(drafts: readonly Draft[], nowMs: number): boolean {
    let isFreed = false;
    for (const { leg, bucket } of drafts) {
      if (!this.#isSearched(leg, bucket.balancesOf(leg.config, nowMs), nowMs)) continue;
      const dead = this.#deadAmong(bucket.rare.slots, nowMs);
      for (const held of bucket.rare.slots)
        if (dead.has(holderOf(held.entry))) bucket.giveBack(held);
      if (dead.size === 0) this.#searchedMs.set(bucketId(leg), nowMs);
      else isFreed = true;
    }
    return isFreed;
  }

  /** Counts the slots of a grant, once its step is done. */
  #granted(legs: readonly Leg[], result: ConsumeResult): void {
    if (result.outcome !== "granted") return;
    result.legs.forEach(({ parts }, at) => {
      const { config } = legs[at] as Leg;
      for (const { entry, amountsMilli } of parts) this.#count(entry, config, amountsMilli);
    });
  }

  /** Gives back slots of a lease, and corrects its tokens with them, once for a token. */
  giveBack(adjustment: Adjustment, token: string, deadline?: Deadline): Promise<void> {
    return this.#unsure.giveBack(adjustment, token, deadline);
  }

  /** Counts the slots that an adjustment gave back, once it is written. */
  adjusted({ entry, config, deltasMilli }: Adjustment): void {
    this.#count(entry, config, deltasMilli);
  }

  async close(): Promise<void> {
    await this.#unsure.idle();
    await this.#source.close();
  }

  #count(entry: string | undefined, config: BucketConfig, amountsMilli: readonly number[]): void {
    if (entry === undefined) return;
    const slotsMilli = slotsOnly(config, amountsMilli).reduce((sum, milli) => sum + milli, 0);
    this.#source.add(entry, slotsMilli / 1000);
  }

  /** Whether dead holders are searched: the call lacks slots, and the last search is over. */
  #isSearched(leg: Leg, balancesMilli: readonly number[], nowMs: number): boolean {
    if (!lacksSlots(leg, balancesMilli)) return false;
    const name = bucketId(leg);
    const sinceMs = nowMs - (this.#searchedMs.get(name) ?? Number.NEGATIVE_INFINITY);
    return sinceMs < 0 || sinceMs >= SEARCH_MS;
  }

  /** Returns the holders that are dead; all records that are not known are read at once. */
  #deadAmong(slots: readonly SlotEntry[], nowMs: number): ReadonlySet<string> {
    const { current } = this.#source;
    const ids = [...new Set(slots.map(({ entry }) => holderOf(entry)))];
    const others = ids.filter((id) => id !== current);
    const keys = others.map(holderKey);
    const isDead = (_: string, at: number) => {
      const item = this.#table.items.read(keys[at] as Key, keys.slice(at + 1));
      return this.#source.isDead(decodeHolder(item), nowMs);
    };
    return new Set(others.filter(isDead));
  }
}
