/**
 * The most slots that were held at once, from the images of bucket items. Pure.
 *
 * A peak is a maximum, so it is set and not added. A snapshot keeps the peak of each shard next to
 * the marks, as `@{shard}.{limit}`, and the peak of the bucket where all stores have it. That of
 * one shard is exact. Shards do not peak at the same moment, and a stream promises no order between
 * them: the peak of several is the sum of theirs, and at most the slots there are, so never less
 * than what was held.
 */

import {
  freeOf,
  marksIn,
  slotCapacityOf,
  slotLimitIn,
} from "@zae-limiter/limiter/records/slot-attributes.ts";
import {
  markAttribute,
  peakAttribute,
  usagePeaks,
} from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { type Item, integerAt, textAt } from "@zae-limiter/limiter/storage/item.ts";
import type { Test } from "@zae-limiter/limiter/storage/item-store.ts";

/** Slots of one limit in an item, as a change shows them. */
export interface SlotsSeen {
  readonly limitName: string;
  /** How many were held in this shard, before the change or after it. */
  readonly held: number;
  /** How many can be held at once in all shards: more than there are where some are overdrawn. */
  readonly most: number;
}

const NONE: readonly SlotsSeen[] = [];
const SHARD_PEAK_PATTERN = /^@[0-9]+\.(.+)$/;

/** Returns the slots that were held around a change; limits of which none was are left out. */
export function slotsAround(before: Item | undefined, after: Item): readonly SlotsSeen[] {
  const now = slotsIn(after);
  if (now.length === 0) return NONE;
  const earlier = new Map(slotsIn(before).map((seen) => [seen.limitName, seen]));
  return now.flatMap((seen) => {
    const { held = 0, most = 0 } = earlier.get(seen.limitName) ?? {};
    const highest = Math.max(held, seen.held);
    if (highest === 0) return [];
    return [{ limitName: seen.limitName, held: highest, most: Math.max(most, seen.most) }];
  });
}

function slotsIn(item: Item | undefined): readonly SlotsSeen[] {
  if (item === undefined) return NONE;
  const names = Object.keys(item);
  const limits = names.flatMap((name) => slotLimitIn(name) ?? []);
  if (limits.length === 0) return NONE;
  const marks = marksIn(item, names);
  return limits.map((limitName) => {
    let held = 0;
    for (const { count } of marks.get(limitName)?.values() ?? []) held += count;
    const free = wholeAt(item, freeOf(limitName));
    const capacity = wholeAt(item, slotCapacityOf(limitName));
    return { limitName, held, most: capacity + Math.max(0, -free) };
  });
}

function wholeAt(item: Item, name: string): number {
  return integerAt(item, name, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER) ?? 0;
}

/** Gathers the peaks that a write sets in a snapshot. */
export class PeakChange {
  readonly #stored: Item | undefined;
  readonly #shards = new Map<string, number>();
  readonly #most = new Map<string, number>();

  constructor(stored: Item | undefined) {
    this.#stored = stored;
  }

  add(shard: number, slots: readonly SlotsSeen[]): void {
    for (const { limitName, held, most } of slots) {
      const name = `${markAttribute(shard)}.${limitName}`;
      const known = this.#shards.get(name) ?? storedAt(this.#stored, name);
      this.#shards.set(name, Math.max(known, held));
      this.#most.set(limitName, Math.max(this.#most.get(limitName) ?? 0, most));
    }
  }

  /** Returns the peaks that are higher than those of the snapshot. */
  get higher(): ReadonlyMap<string, number> {
    const known = usagePeaks(this.#stored);
    const higher = new Map<string, number>();
    for (const [limitName, most] of this.#most) {
      const peak = Math.min(this.#sumOf(limitName), most);
      if (peak > (known.get(limitName) ?? 0)) higher.set(limitName, peak);
    }
    return higher;
  }

  /** The peaks of shards, to set. */
  get attributes(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#shards].map(([name, peak]) => [name, String(peak)]));
  }

  /** That the peaks of the snapshot are those that this change was made from. */
  get condition(): readonly Test[] {
    return [...this.#most.keys()].map((limitName): Test => {
      const name = peakAttribute(limitName);
      const value = textAt(this.#stored, name);
      return value === undefined ? { is: "absent", name } : { is: "=", name, value };
    });
  }

  #sumOf(limitName: string): number {
    const shards = new Map(this.#shards);
    for (const name of Object.keys(this.#stored ?? {})) {
      if (!shards.has(name)) shards.set(name, storedAt(this.#stored, name));
    }
    let sum = 0;
    for (const [name, peak] of shards) {
      if (SHARD_PEAK_PATTERN.exec(name)?.[1] === limitName) sum += peak;
    }
    return sum;
  }
}

function storedAt(item: Item | undefined, name: string): number {
  const peak = Number(textAt(item, name) ?? 0);
  return Number.isSafeInteger(peak) && peak > 0 ? peak : 0;
}
