/**
 * Slots of a bucket item, which the Python library passes over, as all that begins with `s_`.
 *
 * Per limit `s_{name}_fr`, how many are free, `s_{name}_cp`, how many there are, and for each entry
 * `s_{name}_h_{entry}`: how many it holds, and the sequence of the writes to it, as one number.
 */

import { isLimitName } from "../domain/names.ts";
import { type Item, integerAt, type Value } from "../storage/item.ts";

/** One entry of a limit: what it holds, and how many writes it has seen. */
export interface SlotMark {
  /** Rises with each write to the entry. */
  readonly sequence: number;
  /** Whole slots. */
  readonly count: number;
}

/** The entries of a limit of slots. */
export type SlotMarks = ReadonlyMap<string, SlotMark>;

export const NO_MARKS: SlotMarks = new Map();

/** The most slots that an entry holds. */
export const SLOTS_MAX = 65_535;
const SEQUENCE_UNIT = SLOTS_MAX + 1;
const FREE_PATTERN = /^s_(.+)_fr$/;
/** The name of an entry has no underscore, so the last `_h_` ends the name of the limit. */
const ENTRY_PATTERN = /^s_(.+)_h_([A-Za-z0-9]+\.[0-9a-z]+)$/;

/** Returns the name of the attribute that says how many slots are free. */
export function freeOf(limitName: string): string {
  return `s_${limitName}_fr`;
}

/** Returns the name of the attribute that says how many slots there are. */
export function slotCapacityOf(limitName: string): string {
  return `s_${limitName}_cp`;
}

/** Returns the name of the attribute of an entry. */
export function entryAttribute(limitName: string, entry: string): string {
  return `s_${limitName}_h_${entry}`;
}

/** Returns an entry as one number. */
export function encodeMark({ sequence, count }: SlotMark): number {
  return sequence * SEQUENCE_UNIT + count;
}

export function decodeMark(value: number): SlotMark {
  return { sequence: Math.floor(value / SEQUENCE_UNIT), count: value % SEQUENCE_UNIT };
}

/** Returns the limit of slots that the name of an attribute shows, if any. */
export function slotLimitIn(name: string): string | undefined {
  const limit = FREE_PATTERN.exec(name)?.[1];
  return limit !== undefined && isLimitName(limit) ? limit : undefined;
}

/** Whether an attribute is an entry: those of an item change with the processes that use it. */
export function isEntry(name: string): boolean {
  return name.startsWith("s_") && ENTRY_PATTERN.test(name);
}

/** Returns the entries of an item, by limit; those that cannot be read count as absent. */
export function marksIn(item: Item, names: readonly string[]): ReadonlyMap<string, SlotMarks> {
  const marks = new Map<string, Map<string, SlotMark>>();
  for (const name of names) {
    if (!name.startsWith("s_")) continue;
    const [, limit, entry] = ENTRY_PATTERN.exec(name) ?? [];
    const value = integerAt(item, name, 0, Number.MAX_SAFE_INTEGER);
    if (limit === undefined || entry === undefined || value === undefined) continue;
    const known = marks.get(limit) ?? new Map<string, SlotMark>();
    marks.set(limit, known.set(entry, decodeMark(value)));
  }
  return marks;
}

/** Returns the attributes of a limit of slots. */
export function slotAttributes(
  limitName: string,
  slots: { readonly free: number; readonly capacity: number; readonly marks: SlotMarks },
): Record<string, Value> {
  const attributes: Record<string, Value> = {
    [freeOf(limitName)]: slots.free,
    [slotCapacityOf(limitName)]: slots.capacity,
  };
  for (const [entry, mark] of slots.marks) {
    attributes[entryAttribute(limitName, entry)] = encodeMark(mark);
  }
  return attributes;
}
