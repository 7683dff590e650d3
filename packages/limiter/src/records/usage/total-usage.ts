/**
 * Usage over several resources, each acquire counted once.
 *
 * What counts for a total may be in the snapshot of the resource too. In a sum over resources a
 * total therefore adds the rest: what no resource has counted in that window, because it has no
 * such limit.
 */

import { entryOf } from "../../base/entry.ts";
import { TOTAL } from "../../domain/names.ts";
import type { UsageSnapshot } from "./usage-item.ts";

/** Tokens by limit name. */
type Counters = ReadonlyMap<string, number>;

type Add = (
  windowType: string,
  windowStart: string,
  counters: Counters,
  names?: readonly string[],
) => void;

/** Adds up snapshots of several resources, and of totals what they have beyond those. */
export class TotalUsage {
  readonly #add: Add;
  readonly #isOfOne: boolean;
  /** Counters of resources, by window. */
  readonly #counted = new Map<string, Map<string, number>>();
  /** Counters of totals, by window. */
  readonly #totals = new Map<string, { type: string; start: string; sum: Map<string, number> }>();

  /** `resource`: the one that all snapshots are of; there is nothing to leave out then. */
  constructor(resource: string | undefined, add: Add) {
    this.#isOfOne = resource !== undefined;
    this.#add = add;
  }

  /** Adds a snapshot. `names`: the counters to add; all of them when absent. */
  add(snapshot: UsageSnapshot, counters: Counters, names?: readonly string[]): void {
    const { resource, windowType: type, windowStart: start } = snapshot;
    if (this.#isOfOne || resource !== TOTAL) this.#add(type, start, counters, names);
    if (this.#isOfOne) return;
    const window = `${type} ${start}`;
    const sum =
      resource === TOTAL
        ? entryOf(this.#totals, window, () => ({ type, start, sum: new Map() })).sum
        : entryOf(this.#counted, window, () => new Map());
    addCounters(sum, counters, names);
  }

  /** Adds what totals have beyond the resources; called once, after all snapshots. */
  addTotals(): void {
    for (const [window, { type, start, sum }] of this.#totals) {
      const rest = restOf(sum, this.#counted.get(window));
      if (rest.size > 0) this.#add(type, start, rest);
    }
  }
}

/**
 * Excludes from totals what the resources among the snapshots have counted, for sums over several
 * resources. A total that is wholly included is left out. `all`: the snapshots before those of
 * resources were left out for their ancestors, whose acquires the totals have counted, too.
 */
export function withoutCountedTotals(
  snapshots: readonly UsageSnapshot[],
  all: readonly UsageSnapshot[],
): UsageSnapshot[] {
  const sums = new Map<string, { counters: Map<string, number>; events: number }>();
  const windowOf = ({ entityId, windowType, windowStart }: UsageSnapshot) =>
    `${windowType} ${windowStart} ${entityId}`;
  const sumOf = (snapshot: UsageSnapshot) =>
    entryOf(sums, windowOf(snapshot), () => ({ counters: new Map(), events: 0 }));
  for (const snapshot of all) {
    if (snapshot.resource !== TOTAL) sumOf(snapshot).events += snapshot.totalEvents;
  }
  for (const snapshot of snapshots) {
    if (snapshot.resource === TOTAL) continue;
    addCounters(sumOf(snapshot).counters, new Map(Object.entries(snapshot.counters)));
  }
  return snapshots.flatMap((snapshot) => {
    const counted = snapshot.resource === TOTAL ? sums.get(windowOf(snapshot)) : undefined;
    if (counted === undefined) return [snapshot];
    const rest = restOf(new Map(Object.entries(snapshot.counters)), counted.counters);
    const totalEvents = Math.max(0, snapshot.totalEvents - counted.events);
    if (rest.size === 0 && totalEvents === 0) return [];
    return [{ ...snapshot, counters: Object.fromEntries(rest), totalEvents }];
  });
}

/** Returns what a total counted beyond the resources of the same window. */
function restOf(total: Counters, counted: Counters | undefined): Map<string, number> {
  const rest = new Map<string, number>();
  for (const [name, tokens] of total) {
    // Counters are tokens with parts: their difference is exact to the milli-token.
    const more = Math.round((tokens - (counted?.get(name) ?? 0)) * 1000) / 1000;
    if (more > 0) rest.set(name, more);
  }
  return rest;
}

function addCounters(
  sums: Map<string, number>,
  counters: Counters,
  names?: readonly string[],
): void {
  for (const [name, tokens] of counters) {
    if (names?.includes(name) === false) continue;
    sums.set(name, (sums.get(name) ?? 0) + tokens);
  }
}
