/**
 * Computes the consumption of one change of a bucket item.
 *
 * `tc` counts what was consumed in total, net of what was given back, whatever the refill did: the
 * difference between two images is the consumption. An item that is created brings its first
 * consumption along; a shard that comes of a split has consumed nothing yet. An item that goes
 * away takes nothing back. A merge adds the totals of the shard that goes to those of the one that
 * stays, and consumes nothing: it lowers the number of shards, and raises their generation (`mg`).
 * A copy of another store (`mv`) brings totals along that its snapshots have already.
 */

import { balanceAt, balanceOf } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { isLimitName, RESERVED_LIMIT } from "@zae-limiter/limiter/domain/names.ts";
import { ACQUIRES, METER, MOVED } from "@zae-limiter/limiter/records/bucket-item.ts";
import { attributesOf } from "@zae-limiter/limiter/records/bucket-shape.ts";
import { STATE_SK } from "@zae-limiter/limiter/records/keys.ts";
import { softStamp } from "@zae-limiter/limiter/records/python-attributes.ts";
import {
  type Item,
  integerAt,
  numberAt,
  textAt,
  valueAt,
} from "@zae-limiter/limiter/storage/item.ts";
import { type Milli, minus } from "./milli.ts";
import { readableBucket } from "./readable-bucket.ts";
import { type SlotsSeen, slotsAround } from "./slot-peaks.ts";
import type { StreamChange } from "./stream-change.ts";

export interface Consumption {
  readonly id: string;
  readonly order: string;
  readonly atMs: number;
  /** The base time of the bucket; 0 where an item has none. */
  readonly baseMs: number;
  /** Amounts by the name of the limit; below zero for a refund. */
  readonly amountsMilli: readonly (readonly [limitName: string, milli: Milli])[];
  /** How many acquires it was: none for an adjustment. */
  readonly events: number;
  /** Soft limits that it consumed into debt. */
  readonly overdrawn: readonly string[];
  /** Slots that were held before it or after it. */
  readonly slots: readonly SlotsSeen[];
}

const PREFIX = "b_";
const SUFFIX = "_tc";
/** Which config the limits of a bucket came from. */
const ORIGIN = "cs";
/** The total of the Python library's meter of writes, which every bucket on a table has. */
const PYTHON_METER = `${PREFIX}${RESERVED_LIMIT}${SUFFIX}`;

/** Returns what a change consumed; `undefined` when the change is not about consumption. */
export function consumptionOf(change: StreamChange): Consumption | undefined {
  const { after, before, key } = change;
  if (after === undefined || key.SK !== STATE_SK || bringsTotals(before, after)) return undefined;
  const amountsMilli: [string, Milli][] = [];
  for (const attribute of Object.keys(after)) {
    if (!attribute.startsWith(PREFIX) || !attribute.endsWith(SUFFIX)) continue;
    const name = attribute.slice(PREFIX.length, -SUFFIX.length);
    if (!isLimitName(name)) continue;
    const delta = minus(totalAt(after, attribute), totalAt(before, attribute));
    if (delta !== 0 && delta !== 0n) amountsMilli.push([name, delta]);
  }
  const events = eventsOf(before, after, amountsMilli);
  if (amountsMilli.length === 0 && events === 0) return undefined;
  const { id, order, atMs } = change;
  const rising = amountsMilli.filter(([, milli]) => milli > 0).map(([name]) => name);
  const isAcquire = totalAt(after, ACQUIRES) > totalAt(before, ACQUIRES);
  const overdrawn = overdrawnBy({ before, after, atMs, isAcquire }, rising);
  const baseMs = numberAt(after, "rf") ?? 0;
  const slots = slotsAround(before, after);
  return { id, order, atMs, baseMs, amountsMilli, events, overdrawn, slots };
}

/** Whether a merge or a copy has brought totals along that were consumed elsewhere. */
function bringsTotals(before: Item | undefined, after: Item): boolean {
  const moved = textAt(after, MOVED);
  if (moved !== undefined && moved !== textAt(before, MOVED)) return true;
  if (before === undefined || wholeAt(after, "mg") <= wholeAt(before, "mg")) return false;
  return wholeAt(after, "shard_count") < wholeAt(before, "shard_count");
}

function wholeAt(item: Item, name: string): number {
  return integerAt(item, name, 0, Number.MAX_SAFE_INTEGER) ?? 0;
}

/**
 * Returns the number of acquires of a write. A write of ours has it, and moves the meter of writes.
 * A write of the Python library has neither, also on an item that ours have written to: each one
 * that consumed passes for an acquire. An item of ours without any meter is in a store that only
 * this library uses.
 */
function eventsOf(
  before: Item | undefined,
  after: Item,
  amountsMilli: Consumption["amountsMilli"],
): number {
  const isOurs = valueAt(after, ACQUIRES) !== undefined || valueAt(after, ORIGIN) !== undefined;
  if (!isOurs) return amountsMilli.length > 0 ? 1 : 0;
  const acquires = Number(minus(totalAt(after, ACQUIRES), totalAt(before, ACQUIRES)));
  const rises = amountsMilli.some(([, milli]) => milli > 0);
  if (acquires !== 0 || !rises) return acquires;
  const isCreatedByUs = before === undefined && valueAt(after, ORIGIN) !== undefined;
  const isUnmetered = [METER, PYTHON_METER].every((name) => valueAt(after, name) === undefined);
  const isWrittenByUs = isUnmetered || totalAt(after, METER) !== totalAt(before, METER);
  return isCreatedByUs || isWrittenByUs ? 0 : 1;
}

function totalAt(item: Item | undefined, attribute: string): Milli {
  const value = valueAt(item, attribute);
  return isWhole(value) ? value : 0;
}

function isWhole(value: unknown): value is Milli {
  return typeof value === "bigint" || Number.isSafeInteger(value);
}

/** The time of a stream record is rounded down to a second. */
const ROUNDED_MS = 1000;

interface ConsumingWrite {
  readonly before: Item | undefined;
  readonly after: Item;
  /** The time of the write, rounded down to a second. */
  readonly atMs: number;
  /** Whether it was an acquire of this library. */
  readonly isAcquire: boolean;
}

/**
 * Returns the soft limits that a write has consumed into debt, by the item after it. `names` are
 * the limits whose consumption the write has counted.
 *
 * A bucket of this library does not say which of its limits are soft. It does not have to: an
 * acquire leaves only soft ones below zero. Clients of the Python library stamp their soft limits,
 * and their adjustments cannot be distinguished from acquires.
 */
export function overdrawnBy(write: ConsumingWrite, names: readonly string[]): readonly string[] {
  const { before, after } = write;
  const candidates = names.filter((name) => {
    const stored = tokensAt(after, name);
    // Under bypass consumption is counted, and the balance stays.
    const isCountedOnly =
      before !== undefined &&
      numberAt(before, "rf") === numberAt(after, "rf") &&
      stored >= tokensAt(before, name);
    return stored < 0 && !isCountedOnly;
  });
  const bucket = candidates.length === 0 ? undefined : readableBucket(after);
  if (bucket === undefined) return [];
  return candidates.filter((name) => {
    const limit = bucket.limits.get(name);
    const isStamped = (numberAt(after, softStamp(name)) ?? 0) > write.atMs;
    if (limit === undefined || (!isStamped && !write.isAcquire)) return false;
    const atMs = isStamped ? write.atMs : write.atMs + ROUNDED_MS;
    return balanceOf(balanceAt(bucket, limit, atMs)) < 0;
  });
}

function tokensAt(item: Item | undefined, name: string): number {
  return (item && numberAt(item, attributesOf(name).tokens)) ?? 0;
}
