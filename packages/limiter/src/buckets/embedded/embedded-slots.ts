/** Holds slots of embedded buckets for this process, and gives back those of dead holders. */

import { boundedMap } from "../../base/bounded-map.ts";
import { hasSlots } from "../../core/bucket.ts";
import { decodeHolder, type HolderRecord, holderKey } from "../../records/holders.ts";
import { bucketId } from "../../records/keys.ts";
import type { ConsumeResult } from "../bucket-consumer.ts";
import { type Adjustment, type BucketConfig, exceeds, gatesOf, type Leg } from "../leg.ts";
import { holderOf, type SlotHolder } from "../slots/slot-holder.ts";
import type { Draft } from "./draft.ts";
import type { StepItems } from "./row-operation.ts";
import { entryOf } from "./slot-entries.ts";

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
  readonly #items: StepItems;
  readonly #searchedMs = boundedMap<number>(SEARCHED_MAX);

  constructor(source: SlotSource, items: StepItems) {
    this.#source = source;
    this.#items = items;
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
    return entryOf(bucket.slots, holderId) ?? this.#source.newEntry(holderId);
  }

  /** Gives back slots of dead holders where a call lacks some; false: there were none. */
  reclaim(drafts: readonly Draft[], nowMs: number): boolean {
    const dead = new Map<string, boolean>();
    let isFreed = false;
    for (const { leg, bucket } of drafts) {
      if (!this.#isSearched(leg, bucket.balancesOf(leg.config, nowMs), nowMs)) continue;
      for (const held of bucket.slots) {
        const id = holderOf(held.entry);
        const isDead = dead.get(id) ?? this.#isDead(id, nowMs);
        dead.set(id, isDead);
        if (!isDead) continue;
        bucket.giveBack(held);
        isFreed = true;
      }
    }
    return isFreed;
  }

  /** Counts the slots of a grant, once its step is done. */
  granted(legs: readonly Leg[], result: ConsumeResult): void {
    if (result.outcome !== "granted") return;
    result.legs.forEach(({ parts }, at) => {
      const { config } = legs[at] as Leg;
      for (const { entry, amountsMilli } of parts) this.#count(entry, config, amountsMilli);
    });
  }

  /** Counts the slots that an adjustment gave back, once it is written. */
  adjusted({ entry, config, deltasMilli }: Adjustment): void {
    this.#count(entry, config, deltasMilli);
  }

  close(): Promise<void> {
    return this.#source.close();
  }

  #count(entry: string | undefined, config: BucketConfig, amountsMilli: readonly number[]): void {
    if (entry === undefined) return;
    const slots = config.limits.map(({ rate }, at) =>
      hasSlots(rate) ? (amountsMilli[at] ?? 0) / 1000 : 0,
    );
    this.#source.add(
      entry,
      slots.reduce((sum, count) => sum + count, 0),
    );
  }

  /** Whether dead holders are searched: the call lacks slots, and the last search is over. */
  #isSearched(leg: Leg, balancesMilli: readonly number[], nowMs: number): boolean {
    const gates = gatesOf(leg.config, leg.amountsMilli);
    const slots = leg.config.limits.map(({ rate }, at) => (hasSlots(rate) ? (gates[at] ?? 0) : 0));
    if (!exceeds(slots, balancesMilli)) return false;
    const name = bucketId(leg);
    const sinceMs = nowMs - (this.#searchedMs.get(name) ?? Number.NEGATIVE_INFINITY);
    if (sinceMs >= 0 && sinceMs < SEARCH_MS) return false;
    this.#searchedMs.set(name, nowMs);
    return true;
  }

  #isDead(holderId: string, nowMs: number): boolean {
    if (holderId === this.#source.current) return false;
    return this.#source.isDead(decodeHolder(this.#items.read(holderKey(holderId))), nowMs);
  }
}

/** Whether a leg takes slots; under bypass it holds nothing. */
function takesSlots({ config, amountsMilli }: Leg): boolean {
  if (config.bypass === true) return false;
  return config.limits.some(({ rate }, at) => hasSlots(rate) && (amountsMilli[at] ?? 0) > 0);
}
