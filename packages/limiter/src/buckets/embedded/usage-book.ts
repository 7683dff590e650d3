/**
 * Usage in the snapshots of an embedded store, bounded.
 *
 * Ids come from outside: a limiter by address sees millions of them. In each window and resource
 * the busiest entities keep snapshots of their own; all others are summed in one snapshot of
 * `_other_`, which no entity can be called. Sums over a resource stay exact.
 */

import { LRUCache } from "lru-cache";
import { WINDOW_TYPES, type WindowType, windowStartMs } from "../../core/windows.ts";
import type { ClosedPeriod } from "../../records/usage/period-item.ts";
import {
  decodeUsage,
  OTHER_ENTITIES,
  type UsageSubject,
  usageChange,
  usageCounters,
  usageKey,
  usageOverdrawn,
  usagePeaks,
  usageWindow,
} from "../../records/usage/usage-item.ts";
import type { Item, Key } from "../../storage/item.ts";
import type { Change } from "../../storage/item-store.ts";
import { PeriodBook } from "./period-book.ts";

/** Adds the usage of a bucket to the snapshots, within the step of the caller. */
export type CountUsage = (subject: UsageSubject, usage: PendingUsage) => void;

/** Usage of a bucket that is not in the snapshots yet. */
export interface PendingUsage {
  /** A moment of the hour it belongs to, in epoch milliseconds. */
  readonly atMs: number;
  readonly amountsMilli: readonly (readonly [limitName: string, milli: number | bigint])[];
  readonly events: number;
  /** Acquires that left a soft limit below zero, by the name of the limit. */
  readonly overdrawn?: ReadonlyMap<string, number>;
  /** The most slots that were held at once, by the name of the limit. */
  readonly peaks?: ReadonlyMap<string, number>;
  /** The periods of limits that were closed; each leaves a statement. */
  readonly closed?: readonly ClosedPeriod[];
}

/** Returns whether there is something to add to snapshots. */
export function hasCounts({ amountsMilli, events, overdrawn }: PendingUsage): boolean {
  return amountsMilli.length > 0 || events > 0 || overdrawn !== undefined;
}

/** The snapshots and statements of a store, read and written within the step of the caller. */
export interface SnapshotItems {
  read(key: Key): Item | undefined;
  update(key: Key, change: Change): void;
  remove(key: Key): void;
  /** Counts the items at a place in GSI2. */
  count(place: { readonly partition: string; readonly prefix: string }): number;
}

export interface UsageBounds {
  readonly retentionDays: number;
  /** Entities with a snapshot, in one window and resource. */
  readonly maxEntities: number;
}

/** Windows whose entities are known by name; of others they are counted again. */
const WINDOWS_MAX = 256;
const NO_PEAKS: ReadonlyMap<string, number> = new Map();

interface SnapshotPlace {
  readonly subject: UsageSubject;
  readonly type: WindowType;
  readonly startMs: number;
}

/** The entities of one window and resource that this process has counted. */
interface WindowEntities {
  size: number;
  readonly events: Map<string, number>;
  /** Lower bound of the events of any entity; counts only grow, so it holds until it is raised. */
  fewest: number;
}

/** Reports steps that may run again: what one has learned counts only once it is done. */
export interface StepEvents {
  /** Adds a function that is called before each run of a step. */
  onRun(listener: () => void): void;
  /** Adds a function that is called when a step is done. */
  onDone(listener: () => void): void;
}

/** Returns a function that counts usage in snapshots; `events` where steps may run again. */
export function usageBook(
  items: SnapshotItems,
  bounds: UsageBounds,
  events?: StepEvents,
): CountUsage {
  const snapshots = new UsageBook(items, bounds);
  const statements = new PeriodBook(items, bounds);
  for (const book of [snapshots, statements]) {
    events?.onRun(() => book.begin());
    events?.onDone(() => book.keep());
  }
  return (subject, usage) => {
    if (hasCounts(usage)) snapshots.count(subject, usage);
    for (const period of usage.closed ?? []) statements.add(subject, period);
  };
}

class UsageBook {
  readonly #items: SnapshotItems;
  readonly #bounds: UsageBounds;
  readonly #windows = new LRUCache<string, WindowEntities>({ max: WINDOWS_MAX });
  /** The windows as the running step has them; `undefined` where a step runs once. */
  #drafts: Map<string, WindowEntities> | undefined;

  constructor(items: SnapshotItems, bounds: UsageBounds) {
    this.#items = items;
    this.#bounds = bounds;
  }

  /** Forgets the changes of the run before. */
  begin(): void {
    this.#drafts = new Map();
  }

  /** Keeps the changes of the step, which is done. */
  keep(): void {
    for (const [name, window] of this.#drafts ?? []) this.#windows.set(name, window);
    this.begin();
  }

  count(subject: UsageSubject, usage: PendingUsage): void {
    for (const type of WINDOW_TYPES) {
      const place = { subject, type, startMs: windowStartMs(type, usage.atMs) };
      this.#write(this.#admits(place, usage.events) ? place : otherIn(place), usage);
    }
  }

  /** Whether the entity has a snapshot of its own, or gets one. */
  #admits(place: SnapshotPlace, events: number): boolean {
    const { entityId } = place.subject;
    const window = this.#window(place);
    const known = window.events.get(entityId);
    if (known === undefined && this.#items.read(keyOf(place)) === undefined) {
      if (window.size >= this.#bounds.maxEntities && !this.#makesRoom(place, window, events)) {
        return false;
      }
      window.size += 1;
    }
    window.events.set(entityId, (known ?? 0) + events);
    return true;
  }

  /** Moves the least busy entity to the others, if this one is busier. */
  #makesRoom(place: SnapshotPlace, window: WindowEntities, events: number): boolean {
    if (events <= window.fewest) return false;
    let least: string | undefined;
    window.fewest = Number.POSITIVE_INFINITY;
    for (const [entityId, count] of window.events) {
      if (count >= window.fewest) continue;
      window.fewest = count;
      least = entityId;
    }
    if (least === undefined || events <= window.fewest) return false;
    const moved = { ...place, subject: { ...place.subject, entityId: least } };
    const item = this.#items.read(keyOf(moved));
    window.events.delete(least);
    window.size -= 1;
    if (item === undefined) return true;
    const counters = [...usageCounters(item)];
    this.#items.remove(keyOf(moved));
    this.#write(otherIn(place), {
      atMs: place.startMs,
      amountsMilli: counters.map(([name, tokens]) => [name, Math.round(tokens * 1000)]),
      events: decodeUsage(item)?.totalEvents ?? 0,
      overdrawn: usageOverdrawn(item),
      peaks: usagePeaks(item),
    });
    return true;
  }

  #window(place: SnapshotPlace): WindowEntities {
    const { subject, type, startMs } = place;
    const name = `${subject.namespaceId} ${subject.resource} ${type} ${startMs}`;
    const draft = this.#drafts?.get(name);
    if (draft !== undefined) return draft;
    const known = this.#windows.get(name) ?? {
      size: this.#items.count(usageWindow(subject, type, startMs)),
      events: new Map<string, number>(),
      fewest: 0,
    };
    this.#windows.set(name, known);
    if (this.#drafts === undefined) return known;
    const copy = { ...known, events: new Map(known.events) };
    this.#drafts.set(name, copy);
    return copy;
  }

  #write({ subject, type, startMs }: SnapshotPlace, usage: PendingUsage): void {
    const { retentionDays } = this.#bounds;
    const key = usageKey(subject, type, startMs);
    const { peaks = NO_PEAKS } = usage;
    // A peak is the largest one, and nothing to be added up.
    const known = peaks.size === 0 ? NO_PEAKS : usagePeaks(this.#items.read(key));
    const higher = [...peaks].filter(([name, peak]) => peak > (known.get(name) ?? 0));
    const addition = { ...usage, peaks: new Map(higher) };
    this.#items.update(key, usageChange(subject, type, startMs, addition, retentionDays));
  }
}

function keyOf({ subject, type, startMs }: SnapshotPlace): Key {
  return usageKey(subject, type, startMs);
}

function otherIn(place: SnapshotPlace): SnapshotPlace {
  return { ...place, subject: { ...place.subject, entityId: OTHER_ENTITIES } };
}
