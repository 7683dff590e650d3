/** Capacity units: what DynamoDB counts for a read or a write of table and indexes. */

import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { itemSizeBytes } from "@zae-limiter/limiter/storage/item-size.ts";
import { INDEXES, type IndexDefinition, project } from "@zae-limiter/limiter/storage/table.ts";

const WRITE_BYTES = 1024;
const READ_BYTES = 4096;

/** Sizes of images; they are immutable and measured more than once. */
const known = new WeakMap<Item, number>();

/** Returns the size of an item in bytes; 0 for none. */
export function sizeOf(item: Item | undefined): number {
  if (item === undefined) return 0;
  const size = known.get(item) ?? itemSizeBytes(item);
  known.set(item, size);
  return size;
}

/** Returns the units of the larger image; a refused condition counts what is stored. */
export function writeUnits(before: Item | undefined, after: Item | undefined): number {
  const bytes = Math.max(sizeOf(before), sizeOf(after));
  return Math.max(1, Math.ceil(bytes / WRITE_BYTES));
}

/** Returns the units of one read. A missing item costs as much as a small one. */
export function readUnits(bytes: number, consistent: boolean): number {
  const units = Math.max(1, Math.ceil(bytes / READ_BYTES));
  return consistent ? units : units / 2;
}

/** An index whose entry a write changes, and what that costs. */
interface IndexWrite {
  readonly index: IndexDefinition;
  readonly partition: string;
  readonly sort: string;
  readonly units: number;
}

/** Lists the writes of an index: a changed key is a delete and a put, no change costs nothing. */
export function indexWrites(before: Item | undefined, after: Item | undefined): IndexWrite[] {
  if (before === after) return [];
  return INDEXES.flatMap((index) => {
    const [old, next] = [entryOf(index, before), entryOf(index, after)];
    if (hasMoved(index, old, next)) {
      return [old, next].flatMap((entry) => (entry === undefined ? [] : writeOf(index, entry)));
    }
    return next === undefined || index.projection === "KEYS_ONLY" ? [] : writeOf(index, next);
  });
}

function hasMoved(index: IndexDefinition, old: Item | undefined, next: Item | undefined): boolean {
  if (old === undefined || next === undefined) return old !== next;
  return old[index.partition] !== next[index.partition] || old[index.sort] !== next[index.sort];
}

function writeOf(index: IndexDefinition, entry: Item): IndexWrite {
  return {
    index,
    partition: String(entry[index.partition]),
    sort: String(entry[index.sort]),
    units: Math.max(1, Math.ceil(sizeOf(project(index, entry)) / WRITE_BYTES)),
  };
}

function entryOf(index: IndexDefinition, item: Item | undefined): Item | undefined {
  if (item === undefined) return undefined;
  const keyed = typeof item[index.partition] === "string" && typeof item[index.sort] === "string";
  return keyed ? item : undefined;
}
