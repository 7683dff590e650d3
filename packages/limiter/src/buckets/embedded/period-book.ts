/**
 * Statements of closed periods in an embedded store, bounded: beyond a number of them in a day and
 * resource, those of further entities are summed in one of `_other_` for each limit.
 */

import { LRUCache } from "lru-cache";
import {
  type ClosedPeriod,
  dayOf,
  periodChange,
  periodDay,
  periodKey,
  periodSumChange,
} from "../../records/usage/period-item.ts";
import { OTHER_ENTITIES, type UsageSubject } from "../../records/usage/usage-item.ts";
import type { SnapshotItems, UsageBounds } from "./usage-book.ts";

/** Days of resources whose statements are counted by this process; of others they are again. */
const DAYS_MAX = 256;

export class PeriodBook {
  readonly #items: SnapshotItems;
  readonly #bounds: UsageBounds;
  readonly #counts = new LRUCache<string, number>({ max: DAYS_MAX });
  /** The counts as the running step has them; `undefined` where a step runs once. */
  #drafts: Map<string, number> | undefined;

  constructor(items: SnapshotItems, bounds: UsageBounds) {
    this.#items = items;
    this.#bounds = bounds;
  }

  /** Forgets the counts of the run before. */
  begin(): void {
    this.#drafts = new Map();
  }

  /** Keeps the counts of the step, which is done. */
  keep(): void {
    for (const [day, count] of this.#drafts ?? []) this.#counts.set(day, count);
    this.begin();
  }

  /** Stores the statement of a period, which is closed once. */
  add(subject: UsageSubject, closed: ClosedPeriod): void {
    const { retentionDays, maxEntities } = this.#bounds;
    const place = periodDay(subject, closed);
    const day = `${place.partition} ${place.prefix}`;
    const counts = this.#drafts ?? this.#counts;
    const count = counts.get(day) ?? this.#counts.get(day) ?? this.#items.count(place);
    if (count < maxEntities) {
      counts.set(day, count + 1);
      const key = periodKey(subject, closed);
      this.#items.update(key, periodChange(subject, closed, retentionDays));
      return;
    }
    const others = { ...subject, entityId: OTHER_ENTITIES };
    const sum = dayOf(closed);
    this.#items.update(periodKey(others, sum), periodSumChange(others, sum, retentionDays));
  }
}
