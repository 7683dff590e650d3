/**
 * The slots of warm calls. All that this process takes of a bucket go under one entry while it
 * holds some there: it is the only writer of its entries, so it knows whether it does.
 */

import type { Deadline } from "../../base/time.ts";
import { hasSlots } from "../../core/bucket.ts";
import { bucketId } from "../../records/keys.ts";
import { newEntryText } from "../../storage/warm-buckets.ts";
import type { EmbeddedSlots } from "../embedded/embedded-slots.ts";
import type { TakenSlots } from "../embedded/unsure-slots.ts";
import { warmTerms } from "../embedded/warm-row.ts";
import { type Adjustment, type Leg, sumOf } from "../leg.ts";
import { slotsMilliIn, slotsOnly, takesSlots } from "../slots/slot-amounts.ts";
import { holderOf } from "../slots/slot-holder.ts";
import type { WaitingCall } from "./waiting-call.ts";

/** Slots that a request takes of one leg. */
export interface WarmTaken extends TakenSlots {
  /** Whether the bucket gets the entry with them. */
  readonly isNew: boolean;
}

/** The slots that a request takes, leg by leg; empty where it takes none. */
export type TakenOfLegs = readonly (WarmTaken | undefined)[];

export const NO_SLOTS: TakenOfLegs = [];

export class WarmSlots {
  readonly #slots: EmbeddedSlots;
  /** The entry of each bucket in which this process holds slots, and how many. */
  readonly #entries = new Map<string, { readonly entry: string; milli: number }>();

  constructor(slots: EmbeddedSlots) {
    this.#slots = slots;
  }

  /** Returns the slots that calls take together; writes the record of this process if it is due. */
  async takenBy(calls: readonly WaitingCall[], timeoutMs: number): Promise<TakenOfLegs> {
    const [call] = calls as [WaitingCall];
    const legs = call.legs.map((leg, at) => {
      const amountsMilli = sumOf(calls.map((each) => each.legs[at] as Leg));
      return { ...leg, amountsMilli };
    });
    const holderId = await this.#slots.holderFor(legs, timeoutMs);
    if (holderId === undefined) return NO_SLOTS;
    return legs.map((leg) => (takesSlots(leg) ? this.#takenOf(leg, holderId) : undefined));
  }

  newToken(): string {
    return this.#slots.newToken();
  }

  /**
   * Counts slots that were taken: the next ones go under the same entry. Returns false, with
   * nothing counted, where the record of the holder is over by now: others may take them.
   */
  take(taken: TakenOfLegs, nowMs: number): boolean {
    const slots = taken.filter(isDefined);
    const [first] = slots;
    if (first === undefined) return true;
    if (this.#slots.isOver(holderOf(first.entry), nowMs)) return false;
    this.#slots.taken(slots);
    for (const { leg, entry, amountsMilli } of slots) {
      const id = bucketId(leg);
      const known = this.#entries.get(id);
      const milli = slotsMilliIn(leg.config, amountsMilli);
      if (known?.entry === entry) known.milli += milli;
      else this.#entries.set(id, { entry, milli });
    }
    return true;
  }

  /** Begins other entries with the next calls: buckets that were made again lack these. */
  forget(taken: TakenOfLegs): void {
    for (const each of taken) if (each !== undefined) this.#entries.delete(bucketId(each.leg));
  }

  /** Gives back slots of a request that has failed, unless it is certain that none were taken. */
  notAnswered(taken: TakenOfLegs, token: string, error: unknown): void {
    this.#slots.notAnswered(taken.filter(isDefined), token, error);
  }

  /** Gives slots back by a write. An entry goes with its last slot, so it is not used again. */
  giveBack(
    adjustment: Adjustment,
    write: (deadline?: Deadline) => Promise<void>,
    deadline: Deadline,
  ): Promise<void> {
    const id = bucketId(adjustment);
    const known = this.#entries.get(id);
    if (known !== undefined && known.entry === adjustment.entry) {
      known.milli += slotsMilliIn(adjustment.config, adjustment.deltasMilli);
      if (known.milli <= 0) this.#entries.delete(id);
    }
    return this.#slots.giveBack(write, deadline);
  }

  /** Counts the slots that an adjustment gave back, once it is written. */
  adjusted(adjustment: Adjustment): void {
    this.#slots.adjusted(adjustment);
  }

  /** Whether a call lacks slots that dead holders may have. */
  mayReclaim(
    { legs }: WaitingCall,
    balancesMilli: readonly (readonly number[])[],
    nowMs: number,
  ): boolean {
    return legs.some((leg, at) =>
      this.#slots.isSearched(leg, balancesMilli[at] as readonly number[], nowMs),
    );
  }

  #takenOf(leg: Leg, holderId: string): WarmTaken {
    const amountsMilli = slotsOnly(leg.config, leg.amountsMilli);
    const known = this.#entries.get(bucketId(leg))?.entry;
    if (known !== undefined && holderOf(known) === holderId) {
      return { leg, amountsMilli, entry: known, isNew: false };
    }
    return { leg, amountsMilli, entry: this.#slots.newEntry(holderId), isNew: true };
  }
}

function isDefined(taken: WarmTaken | undefined): taken is WarmTaken {
  return taken !== undefined;
}

/** Whether buckets of calls have limits of slots; calls that go together have the same limits. */
export function haveSlots([call]: readonly WaitingCall[]): boolean {
  for (const { config } of (call as WaitingCall).legs) {
    if (warmTerms(config.limits).hasSlots) return true;
  }
  return false;
}

/** Returns the entries that slots are taken under, in the order of the row. */
export function entriesTaking({ leg, amountsMilli, entry, isNew }: WarmTaken) {
  const text = isNew ? newEntryText(entry) : entry;
  const { order } = warmTerms(leg.config.limits);
  return order.map((at) => (amountsMilli[at] === 0 ? undefined : text));
}

/** Returns the entries that slots are given back from, in the order of the row. */
export function entriesGivingBack({ config: { limits }, entry }: Adjustment) {
  if (entry === undefined) return undefined;
  const isOfSlots = limits.map(({ rate }) => hasSlots(rate));
  return warmTerms(limits).order.map((at) => (isOfSlots[at] === true ? entry : undefined));
}
