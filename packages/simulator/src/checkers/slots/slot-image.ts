/**
 * The slots of a bucket item, read from its attributes alone: `s_{limit}_fr` are free, of
 * `s_{limit}_cp`, and `s_{limit}_h_{entry}` is what an entry holds, with its sequence. Based on the
 * description of the table, not on the code that writes it.
 */

import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { Violation } from "../violation.ts";

/** Slots that an entry holds. */
export interface EntryOfShard {
  readonly sequence: number;
  readonly count: number;
}

/** One limit of slots of one shard. */
export interface SlotsOfShard {
  readonly free: number;
  readonly capacity: number;
  readonly entries: ReadonlyMap<string, EntryOfShard>;
}

const FREE_PATTERN = /^s_(.+)_fr$/;
const SEQUENCE_UNIT = 65_536;

/** Reads the slots of an item by limit; an item that is not there has none. */
export function slotsOf(item: Item | undefined): ReadonlyMap<string, SlotsOfShard> {
  const found = new Map<string, SlotsOfShard>();
  if (item === undefined) return found;
  for (const attribute of Object.keys(item)) {
    const limit = FREE_PATTERN.exec(attribute)?.[1];
    if (limit === undefined) continue;
    const [free, capacity] = [item[attribute], item[`s_${limit}_cp`]];
    if (typeof free !== "number" || typeof capacity !== "number") {
      throw new Violation("ghosts", item.PK, `slots of "${limit}" are not whole`);
    }
    found.set(limit, { free, capacity, entries: entriesOf(item, `s_${limit}_h_`) });
  }
  return found;
}

function entriesOf(item: Item, prefix: string): ReadonlyMap<string, EntryOfShard> {
  const entries = new Map<string, EntryOfShard>();
  for (const [attribute, value] of Object.entries(item)) {
    if (!attribute.startsWith(prefix) || typeof value !== "number") continue;
    const sequence = Math.floor(value / SEQUENCE_UNIT);
    entries.set(attribute.slice(prefix.length), { sequence, count: value % SEQUENCE_UNIT });
  }
  return entries;
}

/** Returns how many slots a shard has, free and held. */
export function allIn({ free, entries }: SlotsOfShard): number {
  return free + heldIn(entries);
}

/** Returns how many slots of all limits an item holds. */
export function heldOf(item: Item | undefined): number {
  let held = 0;
  for (const { entries } of slotsOf(item).values()) held += heldIn(entries);
  return held;
}

/** Returns how many slots entries hold. */
export function heldIn(entries: ReadonlyMap<string, EntryOfShard>): number {
  let held = 0;
  for (const { count } of entries.values()) held += count;
  return held;
}
