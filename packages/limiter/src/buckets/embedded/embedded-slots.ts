/** Holds slots of embedded buckets for this process, and gives back those of dead holders. */

import { boundedMap } from "../../base/bounded-map.ts";
import { type Deadline, isRecent } from "../../base/time.ts";
import { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import { decodeHolder, type HolderRecord, holderKey } from "../../records/holders.ts";
import { bucketId } from "../../records/keys.ts";
import type { Key } from "../../storage/item.ts";
import type { ConsumeResult, SeenBalances } from "../bucket-consumer.ts";
import { type Adjustment, exceeds, type Leg } from "../leg.ts";
import { slotsMilliIn, slotsOnly, takesSlots } from "../slots/slot-amounts.ts";
import { entryOf, type SlotEntry } from "../slots/slot-entries.ts";
import { holderOf, type SlotHolder } from "../slots/slot-holder.ts";
import type { BucketTable } from "./bucket-table.ts";
import type { Draft } from "./draft.ts";
import { type TakenSlots, UnsureSlots, type UnsureSlotsOptions } from "./unsure-slots.ts";

/** The holder, as buckets use it: this process, or the only one there is. */
export type SlotSource = Pick<
  SlotHolder,
  "current" | "isOver" | "renew" | "newEntry" | "add" | "close"
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
    options: Pick<UnsureSlotsOptions, "table" | "timer" | "random" | "closed">,
  ) {
    this.#source = source;
    this.#table = options.table;
    const ended = (slots: TakenSlots) => this.#count(slots, -1);
    this.#unsure = new UnsureSlots({ ...options, ended });
  }

  /** Runs a step that takes slots; where its outcome stays unknown, they are given back. */
  async take(
    legs: readonly Leg[],
    work: () => ConsumeResult,
    timeoutMs: number | undefined,
  ): Promise<ConsumeResult> {
    const token = this.newToken();
    let last: ConsumeResult | undefined;
    const run = () => {
      last = work();
      return last;
    };
    try {
      const result = await this.#table.step(run, timeoutMs, legs, token);
      this.taken(slotsOf(legs, result));
      return result;
    } catch (error) {
      this.notAnswered(slotsOf(legs, last), token, error);
      throw error;
    }
  }

  /** Returns a token for a request that takes slots. */
  newToken(): string {
    return this.#unsure.newToken();
  }

  /** Returns the name of a new entry under a holder. */
  newEntry(holderId: string): string {
    return this.#source.newEntry(holderId);
  }

  /** Counts slots that were taken. */
  taken(slots: readonly TakenSlots[]): void {
    for (const each of slots) this.#count(each, 1);
  }

  /** Gives back slots of a request that has failed, unless it is certain that none were taken. */
  notAnswered(slots: readonly TakenSlots[], token: string, error: unknown): void {
    if (!(error instanceof RateLimiterUnavailable) || error.nothingWritten) return;
    // They count as held until that is known, so that this process renews its record.
    this.taken(slots);
    this.#unsure.add(slots, token);
  }

  /** Returns the holder that slots of a call are taken under; `undefined`: it takes none. */
  holderFor(legs: readonly Leg[], timeoutMs?: number): string | undefined | Promise<string> {
    if (!legs.some(takesSlots)) return undefined;
    return this.#source.current ?? this.#source.renew(timeoutMs);
  }

  /** Whether the record of a holder is over: the request has waited for too long. */
  isOver(holderId: string, nowMs: number): boolean {
    return this.#source.isOver(holderId, nowMs);
  }

  /** Returns the entry for the slots of a leg; `undefined` where it takes none. */
  entryFor({ leg, bucket }: Draft, holderId: string | undefined): string | undefined {
    if (holderId === undefined || !takesSlots(leg)) return undefined;
    return entryOf(bucket.rare.slots, holderId) ?? this.#source.newEntry(holderId);
  }

  /**
   * Gives back slots of dead holders where a call takes more than are free; false: there were none.
   * It begins again with its step, so only a search that found none is remembered.
   */
  reclaim(drafts: readonly Draft[], { balancesMilli }: SeenBalances, nowMs: number): boolean {
    let isFreed = false;
    for (const [at, { leg, bucket }] of drafts.entries()) {
      if (!this.isSearched(leg, balancesMilli[at] as readonly number[], nowMs)) continue;
      const dead = this.#deadAmong(bucket.rare.slots, nowMs);
      for (const held of bucket.rare.slots)
        if (dead.has(holderOf(held.entry))) bucket.giveBack(held);
      if (dead.size === 0) this.#searchedMs.set(bucketId(leg), nowMs);
      else isFreed = true;
    }
    return isFreed;
  }

  /**
   * Writes what gives back slots of a lease, and corrects its tokens with them, once for a token:
   * the same write may be made again and again.
   */
  giveBack(write: (deadline?: Deadline) => Promise<void>, deadline?: Deadline): Promise<void> {
    return this.#unsure.giveBack(write, deadline);
  }

  /** Counts the slots that an adjustment gave back, once it is written. */
  adjusted({ entry, config, deltasMilli }: Adjustment): void {
    if (entry === undefined) return;
    this.#source.add(entry, slotsMilliIn(config, deltasMilli) / 1000);
  }

  async close(): Promise<void> {
    await this.#unsure.idle();
    await this.#source.close();
  }

  #count({ leg, entry, amountsMilli }: TakenSlots, sign: 1 | -1): void {
    this.#source.add(entry, (sign * slotsMilliIn(leg.config, amountsMilli)) / 1000);
  }

  /**
   * Whether dead holders are searched: the call takes more slots than are free, soft ones among
   * them, and the last search is over.
   */
  isSearched(leg: Leg, balancesMilli: readonly number[], nowMs: number): boolean {
    if (!takesSlots(leg) || !exceeds(slotsOnly(leg.config, leg.amountsMilli), balancesMilli)) {
      return false;
    }
    return !isRecent(this.#searchedMs.get(bucketId(leg)), nowMs, SEARCH_MS);
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

/** Returns the slots that a step takes when it is done as it ran last. */
function slotsOf(legs: readonly Leg[], result: ConsumeResult | undefined): readonly TakenSlots[] {
  if (result?.outcome !== "granted") return [];
  return legs.flatMap((leg, at) =>
    (result.legs[at]?.parts ?? []).flatMap(({ entry, amountsMilli }) =>
      entry === undefined ? [] : { leg, entry, amountsMilli: slotsOnly(leg.config, amountsMilli) },
    ),
  );
}
