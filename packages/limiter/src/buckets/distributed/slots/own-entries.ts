/**
 * The entries of this process: what it has left in them, and what a write to one expects and
 * leaves. Pure.
 *
 * Each write raises the sequence, and tests the one that this process has left. A write whose
 * answer was lost has therefore happened where the entry is as it leaves it; where the entry is as
 * it was before, a *fence* raises nothing but the sequence, and from then on the write never
 * happens.
 *
 * An entry is removed with its last slot, and its name is not used again; but for one that a fence
 * began: the write that would have begun it tests that there is none, and may still be under way.
 */

import { encodeMark, entryAttribute, type SlotMark } from "../../../records/slot-attributes.ts";
import { type Item, valueAt } from "../../../storage/item.ts";
import type { Change, Condition, Test } from "../../../storage/item-store.ts";
import { BUCKET_EXISTS } from "../plan/write-plan.ts";

/** The entry of one limit, as this process left it. */
export interface OwnMark extends SlotMark {
  /** Whether it is an attribute of the item. */
  readonly isStored: boolean;
  /** Whether it stays when it holds nothing. */
  readonly stays: boolean;
}

/** The entries of one name, by limit. */
export type OwnMarks = ReadonlyMap<string, OwnMark>;

export const NO_OWN: OwnMarks = new Map();

const UNUSED: OwnMark = { sequence: 0, count: 0, isStored: false, stays: false };

/** One write to an entry; both sides have the limits that it moves. */
export interface EntryWrite {
  readonly entry: string;
  readonly before: OwnMarks;
  readonly after: OwnMarks;
  /** How many slots it takes; less than zero: gives back. */
  readonly slots: number;
}

/** Returns the write that moves slots of an entry; `undefined` where it has less. */
export function entryWrite(
  entry: string,
  marks: OwnMarks,
  counts: ReadonlyMap<string, number>,
): EntryWrite | undefined {
  const before = new Map<string, OwnMark>();
  const after = new Map<string, OwnMark>();
  let slots = 0;
  for (const [limit, count] of counts) {
    const mark = marks.get(limit) ?? UNUSED;
    const left = mark.count + count;
    if (left < 0) return undefined;
    const isStored = left > 0 || mark.stays;
    before.set(limit, mark);
    after.set(limit, { ...mark, sequence: mark.sequence + 1, count: left, isStored });
    slots += count;
  }
  return { entry, before, after, slots };
}

/** Returns the write after which another one never happens. */
export function fenceOf({ entry, before }: EntryWrite): EntryWrite {
  const after = new Map<string, OwnMark>();
  for (const [limit, mark] of before) {
    const stays = mark.stays || !mark.isStored;
    after.set(limit, { ...mark, sequence: mark.sequence + 1, isStored: true, stays });
  }
  return { entry, before, after, slots: 0 };
}

/** Returns a change and its condition with those of an entry. */
export function withEntry(
  { change, condition }: { readonly change: Change; readonly condition: Condition },
  { entry, before, after }: EntryWrite,
): { readonly change: Change; readonly condition: Condition } {
  const set = { ...change.set };
  const remove = [...(change.remove ?? [])];
  const tests: Test[] = [...condition];
  for (const [limit, mark] of before) {
    const name = entryAttribute(limit, entry);
    tests.push(mark.isStored ? { is: "=", name, value: encodeMark(mark) } : { is: "absent", name });
    const left = after.get(limit) ?? mark;
    if (left.isStored) set[name] = encodeMark(left);
    else if (mark.isStored) remove.push(name);
  }
  return { change: { ...change, set, remove }, condition: tests };
}

/** Returns the request of a fence. */
export function fenceRequest(write: EntryWrite) {
  return withEntry({ change: {}, condition: [BUCKET_EXISTS] }, fenceOf(write));
}

/**
 * The outcome of a write: it has happened, it may still happen, it never will, or the entry is
 * gone: it was reclaimed, or its bucket was deleted.
 */
export type Outcome = "landed" | "open" | "fenced" | "gone";

/** Returns the outcome of a write that an item shows; its limits are written together. */
export function outcomeOf(item: Item | undefined, write: EntryWrite): Outcome {
  const [limit] = write.before.keys();
  if (limit === undefined || valueAt(item, "rf") === undefined) return "gone";
  const stored = valueAt(item, entryAttribute(limit, write.entry));
  const isAs = (marks: OwnMarks) => {
    const mark = marks.get(limit) ?? UNUSED;
    return stored === (mark.isStored ? encodeMark(mark) : undefined);
  };
  if (isAs(write.after)) return "landed";
  if (isAs(write.before)) return "open";
  return isAs(fenceOf(write).after) ? "fenced" : "gone";
}

/** Returns the entries after a write; `undefined` when the name has nothing left to do. */
export function marksAfter(marks: OwnMarks, { after }: EntryWrite): OwnMarks | undefined {
  const next = new Map([...marks, ...after]);
  for (const { count, stays } of next.values()) if (count > 0 || stays) return next;
  return undefined;
}

/** Returns how many slots the entries of a name hold. */
export function slotsIn(marks: OwnMarks): number {
  let slots = 0;
  for (const { count } of marks.values()) slots += count;
  return slots;
}
