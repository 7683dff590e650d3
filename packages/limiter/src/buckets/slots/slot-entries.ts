/** The slots of a bucket that are held: which holder has how many of which limit. Pure. */

import { holderOf } from "./slot-holder.ts";

/** Slots of one limit under one entry. */
export interface SlotEntry {
  readonly limitName: string;
  /** The name of the entry, which begins with its holder. */
  readonly entry: string;
  /** Milli-slots, as balances count them; more than zero. */
  readonly milli: number;
}

export const NO_SLOTS: readonly SlotEntry[] = Object.freeze([]);

/**
 * Returns the entries after an amount was taken, or given back where it is less than zero;
 * `undefined` where the entry is gone or has less: then nothing may be given back.
 */
export function movedSlots(
  entries: readonly SlotEntry[],
  limitName: string,
  entry: string,
  milli: number,
): readonly SlotEntry[] | undefined {
  const at = entries.findIndex((each) => each.limitName === limitName && each.entry === entry);
  const after = (entries[at]?.milli ?? 0) + milli;
  if (after < 0) return undefined;
  const moved = after === 0 ? [] : [{ limitName, entry, milli: after }];
  if (at < 0) return [...entries, ...moved];
  return [...entries.slice(0, at), ...moved, ...entries.slice(at + 1)];
}

/** Returns the entry that a holder has in a bucket; `undefined`: it holds nothing there. */
export function entryOf(entries: readonly SlotEntry[], holderId: string): string | undefined {
  return entries.find(({ entry }) => holderOf(entry) === holderId)?.entry;
}

/** Returns how many slots of a limit each holder has; `undefined` where none are held. */
export function holdersOf(
  entries: readonly SlotEntry[],
  limitName: string,
): Readonly<Record<string, number>> | undefined {
  const held: Record<string, number> = {};
  for (const { entry, milli, ...each } of entries) {
    if (each.limitName !== limitName) continue;
    const holderId = holderOf(entry);
    held[holderId] = (held[holderId] ?? 0) + milli / 1000;
  }
  return Object.keys(held).length === 0 ? undefined : held;
}
