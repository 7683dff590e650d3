/** Counts and ranks buckets one by one, for the overview. Pure. */

import { entryOf } from "@zae-limiter/limiter/base/entry.ts";
import type { StoredState } from "@zae-limiter/limiter/buckets/bucket-admin.ts";
import { onlyCounts } from "@zae-limiter/limiter/domain/counter.ts";
import { balanceOf, wholeBalances } from "./balance.ts";
import type { BalanceJson, BusiestJson, BusyJson, OverviewJson } from "./wire.ts";

const LISTED_MAX = 20;
const BUSIEST_MAX = 8;
/** Limits are named by people, so there are few names; a program that makes them up is cut off. */
const NAMES_MAX = 12;
/** Less than this share of the capacity is scarce. */
const SCARCE_SHARE = 0.2;
/** With more entities than this, the sum of a resource counts what cascades for each of them. */
const CASCADED_MAX = 10_000;

interface Busy {
  inUse: number;
  capacity: number;
  buckets: number;
}

/** The ranked buckets of one limit name. */
interface NameCensus {
  readonly entities: TopList<BusyJson>;
  readonly resources: Map<string, Busy>;
  /** Use by resource and entity, to leave out what cascaded. */
  readonly inUse: Map<string, Map<string, number>>;
}

/** Finds the nearest of these entities that each of them cascades to. */
export type NearestAncestors = (
  entityIds: readonly string[],
) => Promise<ReadonlyMap<string, string>>;

export class BucketCensus {
  /** Shards, which are added up at the end. */
  readonly #shards: StoredState[] = [];
  readonly #empty = new TopList<BalanceJson>(LISTED_MAX, ({ available }) => -available);
  readonly #scarce = new TopList<BalanceJson>(LISTED_MAX, (balance) => -shareOf(balance));
  readonly #names = new Map<string, NameCensus>();
  #buckets = 0;
  #emptyCount = 0;
  #debtCount = 0;
  #scarceCount = 0;
  #last: { readonly entityId: string; readonly resource: string } | undefined;

  add(state: StoredState): void {
    if (onlyCounts(state)) return;
    if (state.shardCount > 1) this.#shards.push(state);
    else this.#count(balanceOf(state));
  }

  /** Returns everything so far; after `complete` there must be no more. */
  overview(atMs: number, durationMs: number, complete: boolean): OverviewJson {
    if (complete) {
      for (const balance of wholeBalances(this.#shards.splice(0))) this.#count(balance);
    }
    return {
      atMs,
      complete,
      durationMs,
      buckets: this.#buckets,
      emptyCount: this.#emptyCount,
      debtCount: this.#debtCount,
      scarceCount: this.#scarceCount,
      disabledCount: 0,
      bypassCount: 0,
      empty: this.#empty.all,
      scarce: this.#scarce.all,
      busiest: [...this.#names].map(([limitName, census]) => busiestOf(limitName, census)),
    };
  }

  /** Takes what cascaded out of the sums of resources, once all buckets were added. */
  async leaveOutCascaded(nearest: NearestAncestors): Promise<void> {
    for (const balance of wholeBalances(this.#shards.splice(0))) this.#count(balance);
    for (const { resources, inUse } of this.#names.values()) {
      for (const [resource, users] of inUse) {
        const sum = resources.get(resource);
        if (sum === undefined || users.size > CASCADED_MAX) continue;
        sum.inUse = useOf(users, await nearest([...users.keys()]));
      }
    }
  }

  #count(balance: BalanceJson): void {
    const { entityId, resource, available, capacity } = balance;
    // The limits of a bucket follow each other.
    if (this.#last?.entityId !== entityId || this.#last.resource !== resource) {
      this.#buckets += 1;
      this.#last = { entityId, resource };
    }
    if (available <= 0) {
      this.#emptyCount += 1;
      if (available < 0) this.#debtCount += 1;
      this.#empty.add(balance);
    } else if (available < capacity * SCARCE_SHARE) {
      this.#scarceCount += 1;
      this.#scarce.add(balance);
    }
    this.#rank(balance);
  }

  #rank({ entityId, resource, limitName, available, capacity }: BalanceJson): void {
    const inUse = capacity - available;
    let census = this.#names.get(limitName);
    if (census === undefined) {
      if (this.#names.size >= NAMES_MAX) return;
      census = {
        entities: new TopList<BusyJson>(BUSIEST_MAX, (busy) => busy.inUse),
        resources: new Map(),
        inUse: new Map(),
      };
      this.#names.set(limitName, census);
    }
    if (inUse > 0) {
      const users = entryOf(census.inUse, resource, () => new Map<string, number>());
      if (users.size <= CASCADED_MAX) users.set(entityId, inUse);
      census.entities.add({ name: entityId, resource, inUse, capacity, buckets: 1 });
    }
    const sum = census.resources.get(resource) ?? { inUse: 0, capacity: 0, buckets: 0 };
    sum.inUse += inUse;
    sum.capacity += capacity;
    sum.buckets += 1;
    census.resources.set(resource, sum);
  }
}

/**
 * Returns what entities use together. What an entity uses is part of what its ancestor consumed;
 * where the ancestor has refilled faster, the entities below it use more than it does.
 */
function useOf(users: ReadonlyMap<string, number>, above: ReadonlyMap<string, string>): number {
  const below = new Map<string, string[]>();
  for (const [id, ancestor] of above) entryOf(below, ancestor, () => []).push(id);
  const sum = (ids: readonly string[]): number => ids.reduce((total, id) => total + whole(id), 0);
  const whole = (id: string): number => Math.max(users.get(id) ?? 0, sum(below.get(id) ?? []));
  return sum([...users.keys()].filter((id) => !above.has(id)));
}

function shareOf({ available, capacity }: BalanceJson): number {
  return capacity === 0 ? 1 : available / capacity;
}

function busiestOf(limitName: string, { entities, resources }: NameCensus): BusiestJson {
  const ranked = [...resources]
    .map(([name, busy]) => ({ name, ...busy }))
    .filter(({ inUse }) => inUse > 0)
    .sort((left, right) => right.inUse - left.inUse);
  return { limitName, entities: entities.all, resources: ranked.slice(0, BUSIEST_MAX) };
}

/** Keeps the highest ranked of many entries, without keeping the others. */
export class TopList<T> {
  readonly #size: number;
  readonly #rank: (entry: T) => number;
  #entries: { readonly rank: number; readonly entry: T }[] = [];

  constructor(size: number, rank: (entry: T) => number) {
    this.#size = size;
    this.#rank = rank;
  }

  add(entry: T): void {
    const rank = this.#rank(entry);
    const lowest = this.#entries.at(-1);
    if (lowest !== undefined && this.#entries.length >= this.#size && rank <= lowest.rank) return;
    const at = this.#entries.findIndex((other) => other.rank < rank);
    this.#entries.splice(at === -1 ? this.#entries.length : at, 0, { rank, entry });
    if (this.#entries.length > this.#size) this.#entries.pop();
  }

  /** The highest first. */
  get all(): readonly T[] {
    return this.#entries.map(({ entry }) => entry);
  }
}
