/**
 * The slots of one shard in a write: how many are free is a number that is added to, like a balance
 * in its period. The entry that holds them is written with it when the plan is sent (`OwnSlots`):
 * only then it is certain which one, and at which sequence.
 *
 * A shard that lacks the limit has none of the slots, but for the first, which has all: the Python
 * library makes shards that know nothing of slots, and no shard may begin with what another has.
 */

import { type Rate, shareOf } from "../../../core/bucket.ts";
import type { StoredLimit } from "../../../records/bucket-item.ts";
import {
  encodeMark,
  entryAttribute,
  freeOf,
  NO_MARKS,
  slotCapacityOf,
} from "../../../records/slot-attributes.ts";
import type { Place } from "./period-plan.ts";
import type { Guess, PlanContext, WritePlan } from "./write-plan.ts";

/** Returns the milli-slots that a shard has of a limit that it does not know yet. */
export function startOfSlots({ shard }: Pick<Place, "shard">, { capacityMilli }: Rate): number {
  return shard === 0 ? capacityMilli : 0;
}

/** Plans the change of one limit: takes slots, or gives them back where it is less than zero. */
export function planSlots(
  plan: WritePlan,
  name: string,
  { tokensMilli }: StoredLimit,
  amountMilli: number,
  { bypass, soft }: Pick<PlanContext, "bypass" | "soft">,
): Guess {
  const count = bypass === true ? 0 : amountMilli / 1000;
  if (count > 0 && soft?.has(name) !== true) plan.atLeast(freeOf(name), count);
  plan.add(freeOf(name), -count);
  plan.moveSlots(name, count);
  const left = tokensMilli - count * 1000;
  return { limitName: name, full: false, lookedFull: false, tokensMilli: left, remainder: 0 };
}

/** The change of one limit in a rebase. */
export interface SlotFold {
  readonly name: string;
  readonly stored: StoredLimit;
  /** The rate from now on. */
  readonly rate: Rate;
  readonly takenMilli: number;
  /** Whether there must be enough. */
  readonly isGate: boolean;
}

/**
 * Plans one limit of a rebase, and returns what it has before the consume. More slots are free at
 * once; fewer cut nothing off, so that less than none may be free.
 */
export function foldSlots(
  plan: WritePlan,
  { shard, shardCount }: Place,
  { name, stored, rate, takenMilli, isGate }: SlotFold,
): number {
  const before = shareOf(stored.rate.capacityMilli / 1000, shard, shardCount);
  const after = shareOf(rate.capacityMilli / 1000, shard, shardCount);
  const count = takenMilli / 1000;
  const more = after - before;
  plan.add(freeOf(name), more - count);
  if (count > 0 && isGate) plan.atLeast(freeOf(name), count - more);
  if (rate.capacityMilli !== stored.rate.capacityMilli) {
    plan.set(slotCapacityOf(name), rate.capacityMilli / 1000);
  }
  plan.moveSlots(name, count);
  return stored.tokensMilli + more * 1000;
}

/** Starts a limit, and returns what it has before the consume. */
export function startSlots(
  plan: WritePlan,
  place: Place,
  name: string,
  rate: Rate,
  takenMilli: number,
): number {
  const startMilli = startOfSlots(place, rate);
  plan.set(freeOf(name), (startMilli - takenMilli) / 1000);
  plan.set(slotCapacityOf(name), rate.capacityMilli / 1000);
  plan.moveSlots(name, takenMilli / 1000);
  return startMilli;
}

/** Removes a limit with all its entries, none of which may have changed since it was seen. */
export function stopSlots(
  plan: WritePlan,
  name: string,
  { tokensMilli, marks }: StoredLimit,
): void {
  plan.require({ is: "=", name: freeOf(name), value: tokensMilli / 1000 });
  plan.remove(freeOf(name), slotCapacityOf(name));
  for (const [entry, mark] of marks ?? NO_MARKS) {
    const attribute = entryAttribute(name, entry);
    plan.require({ is: "=", name: attribute, value: encodeMark(mark) });
    plan.remove(attribute);
  }
}

/**
 * Divides what is free among the shards of a split, the old one first. What is held stays: it comes
 * back to the shard that gave it.
 */
export function divideSlots(
  plan: WritePlan,
  name: string,
  stored: StoredLimit,
  factor: number,
): readonly StoredLimit[] {
  const even = Math.floor(Math.max(0, stored.tokensMilli) / 1000 / factor);
  const moved = even * (factor - 1);
  plan.add(freeOf(name), -moved);
  if (moved > 0) plan.atLeast(freeOf(name), moved);
  const fresh = { ...stored, tokensMilli: even * 1000, marks: NO_MARKS };
  return [
    { ...stored, tokensMilli: stored.tokensMilli - moved * 1000 },
    ...Array.from({ length: factor - 1 }, () => fresh),
  ];
}

/** Plans the slots that a shard gives to one that is made late: half of the free ones. */
export function giveLateShard(plan: WritePlan, name: string, stored: StoredLimit): StoredLimit {
  const [, given] = divideSlots(plan, name, stored, 2);
  return given as StoredLimit;
}

/** Whether slots of a limit are held. */
export function areHeld(stored: StoredLimit | undefined): boolean {
  for (const { count } of stored?.marks?.values() ?? []) if (count > 0) return true;
  return false;
}
