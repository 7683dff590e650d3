/** Reading usage: what entities consumed of resources, window by window. */

import { entryOf } from "../../base/entry.ts";
import { isoSeconds, WINDOW_TYPES, type WindowType } from "../../core/windows.ts";
import { checkFields, checkInteger, show } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import { checkEntityId, checkResource, isTag } from "../../domain/names.ts";
import type { Item } from "../../storage/item.ts";
import type { Query } from "../../storage/item-store.ts";
import { decodeCursor, encodeCursor } from "../cursor.ts";
import { entityPartition, resourcePartition, USAGE_INDEX_PREFIX, USAGE_PREFIX } from "../keys.ts";
import { queryRecords } from "../query-records.ts";
import type { RecordContext } from "../record-context.ts";
import { CascadedUsage } from "./cascaded-usage.ts";
import { checkTime } from "./check-time.ts";
import { ConsumerSums, type UsageConsumer } from "./consumers.ts";
import { namespaceUsage } from "./namespace-usage.ts";
import type { UsagePeriod } from "./period-item.ts";
import { TotalUsage, withoutCountedTotals } from "./total-usage.ts";
import { decodeUsage, type UsageSnapshot, usageCounters } from "./usage-item.ts";
import { checkedPeriods, type UsagePeriodsQuery } from "./usage-periods.ts";
import { rangesAfter, usageRanges } from "./usage-ranges.ts";
import { UsageSum, type UsageSummary } from "./usage-sum.ts";

const SNAPSHOTS_PER_PAGE = 100;
const LIMIT_MAX = 10_000;
const FETCHED_AT_ONCE = 100;
const CONSUMERS = 10;

/**
 * Whose usage, of what, and when. Without entity and resource it is that of the whole namespace,
 * which reads the keys of all its entities.
 */
export interface UsageQuery {
  /** The entity; absent for all entities. */
  readonly entityId?: string;
  /** The resource; absent for all resources. */
  readonly resource?: string;
  /** The type of window; a summary without it counts the finest type there is. */
  readonly window?: WindowType;
  /** The first window to count, by its start; a time or its text. Included. */
  readonly start?: Date | string;
  /** The last window to count, by its start; a time or its text. Included. */
  readonly end?: Date | string;
}

const QUERY_FIELDS = [
  "entityId",
  "resource",
  "window",
  "start",
  "end",
] as const satisfies readonly (keyof UsageQuery)[];

const TOP_FIELDS = ["resource", "window", "start", "end"] as const;

/** Which usage the top consumers are found in, and how many of them are returned. */
export interface UsageTopQuery extends Omit<UsageQuery, "entityId"> {
  /** The limit whose tokens rank; without it the number of acquires does. */
  readonly by?: string;
  /** At most this many; 10 by default. */
  readonly limit?: number;
}

/** Usage that buckets have counted, and that is in no snapshot yet. */
export interface UncountedUsage {
  /** Adds the usage of an entity, of a resource or of the namespace to its snapshots. */
  count(scope: { readonly entityId?: string; readonly resource?: string }): Promise<void>;
}

/** A query whose parts have been checked. */
interface CheckedQuery {
  /** Reads the places of the snapshots, the newest first, after one that was returned. */
  readonly places: (last: Item | undefined) => AsyncIterable<Item>;
  readonly scope: Query;
  readonly matches: (snapshot: UsageSnapshot) => boolean;
}

interface UsageScope {
  readonly scope: Query;
  readonly prefix: string;
  readonly ordered: boolean;
}

/** A snapshot, the item it is in, and the item that a cursor is made from. */
interface Found {
  readonly place: Item;
  readonly item: Item;
  readonly snapshot: UsageSnapshot;
}

/**
 * Usage by entity and by resource.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:');
 * await limiter.acquire({
 *   entityId: 'key-1', resource: 'gpt-4', limits: ['tpm:1000'], consume: { tpm: 300 },
 * });
 * const { usage } = limiter.repository;
 * const { snapshots } = await usage.snapshots({ entityId: 'key-1', window: 'hourly' });
 * console.log(snapshots[0]?.counters.tpm, snapshots[0]?.totalEvents); // 300 1
 * await limiter.close();
 * ```
 */
export class UsageRecords {
  readonly #context: RecordContext;
  readonly #uncounted: UncountedUsage | undefined;

  /** `uncounted` is `undefined` where an aggregator counts usage. */
  constructor(context: RecordContext, uncounted: UncountedUsage | undefined) {
    this.#context = context;
    this.#uncounted = uncounted;
  }

  /** Which part writes snapshots and statements: the store, or an aggregator that must run. */
  get countedBy(): "store" | "aggregator" {
    return this.#uncounted === undefined ? "aggregator" : "store";
  }

  /** Returns snapshots, the newest first, a page at a time. */
  async snapshots(
    options: UsageQuery & { limit?: number; cursor?: string },
  ): Promise<{ snapshots: UsageSnapshot[]; cursor?: string }> {
    checkFields("options", options, [...QUERY_FIELDS, "limit", "cursor"]);
    const { places, scope, matches } = this.#check(options);
    const limit = checkInteger("limit", options.limit ?? SNAPSHOTS_PER_PAGE, 1, LIMIT_MAX);
    const last = options.cursor === undefined ? undefined : decodeCursor(options.cursor, scope);
    // The first page has counted it, and a page must not cost as much as the whole list.
    if (last === undefined) await this.#uncounted?.count(options);
    const found: Found[] = [];
    for await (const entry of this.#read(places(last), scope)) {
      if (matches(entry.snapshot)) found.push(entry);
      // One more than is returned shows whether there is a next page.
      if (found.length > limit) break;
    }
    const shown = found.slice(0, limit);
    const snapshots = shown.map(({ snapshot }) => snapshot);
    if (found.length <= limit) return { snapshots };
    return { snapshots, cursor: encodeCursor((shown.at(-1) as Found).place, scope) };
  }

  /**
   * Returns the sum over all snapshots that match, however many there are. Over several entities,
   * an acquire that cascades counts once, and tags, which count what entities do, are left out.
   */
  async summary(options: UsageQuery): Promise<UsageSummary> {
    checkFields("options", options, QUERY_FIELDS);
    const { places, scope, matches } = this.#check(options);
    await this.#uncounted?.count(options);
    const sums = new Map<string, UsageSum>();
    const sumOf = (type: string) => entryOf(sums, type, () => new UsageSum());
    const isSummed = (snapshot: UsageSnapshot) => matches(snapshot) && !isTagOf(snapshot, options);
    const found = filtered(this.#read(places(undefined), scope), isSummed);
    const all = new TotalUsage(options.resource, (type, ...added) => sumOf(type).add(...added));
    if (options.entityId !== undefined) {
      for await (const { snapshot, item } of found) all.add(snapshot, usageCounters(item));
    } else {
      const cascaded = new CascadedUsage(this.#context);
      for await (const group of windowGroups(found)) {
        const names = await cascaded.counters(group.map(({ snapshot }) => snapshot));
        group.forEach(({ snapshot, item }, at) => {
          all.add(snapshot, usageCounters(item), names[at]);
        });
      }
    }
    all.addTotals();
    const finest = WINDOW_TYPES.find((type) => sums.has(type));
    const sum = finest === undefined ? [...sums.values()][0] : sums.get(finest);
    return (sum ?? new UsageSum()).summary();
  }

  /**
   * Returns the entities that consumed most, the first first: by acquires, or by tokens of the
   * limit `by`. Without a window type, the finest that there is counts alone. What cascades is
   * counted for the entity and for its ancestors; tags are left out.
   */
  async top(options: UsageTopQuery): Promise<UsageConsumer[]> {
    checkFields("options", options, [...TOP_FIELDS, "by", "limit"]);
    const { places, scope, matches } = this.#check(options);
    const limit = checkInteger("limit", options.limit ?? CONSUMERS, 1, LIMIT_MAX);
    await this.#uncounted?.count(options);
    const sums = new Map<string, ConsumerSums>();
    for await (const { snapshot, item } of this.#read(places(undefined), scope)) {
      if (!matches(snapshot) || isTagOf(snapshot, options)) continue;
      entryOf(sums, snapshot.windowType, () => new ConsumerSums()).add(snapshot, item);
    }
    const finest = WINDOW_TYPES.find((type) => sums.has(type));
    const found = finest === undefined ? [...sums.values()][0] : sums.get(finest);
    return found?.top(options.by, limit) ?? [];
  }

  /**
   * Returns the statements of closed periods of quotas and sessions, those that ended last first, a
   * page at a time. Where an aggregator counts usage, it writes them: without one there are none.
   */
  async periods(
    options: UsagePeriodsQuery & { limit?: number; cursor?: string },
  ): Promise<{ periods: UsagePeriod[]; cursor?: string }> {
    const read = checkedPeriods(this.#context, options);
    if (options.cursor === undefined) await this.#uncounted?.count(options);
    return read();
  }

  /**
   * Excludes usage that is already counted in an ancestor's snapshot of the same window, and that
   * of tags, for sums over several entities. A snapshot that is wholly included is left out.
   */
  async withoutCascaded(all: readonly UsageSnapshot[]): Promise<UsageSnapshot[]> {
    const snapshots = all.filter(({ entityId }) => !isTag(entityId));
    const cascaded = new CascadedUsage(this.#context);
    const groups = new Map<string, UsageSnapshot[]>();
    for (const snapshot of snapshots) {
      const { resource, windowType, windowStart } = snapshot;
      const window = `${resource} ${windowType} ${windowStart}`;
      entryOf(groups, window, () => []).push(snapshot);
    }
    const kept = new Map<UsageSnapshot, readonly string[]>();
    for (const group of groups.values()) {
      const names = await cascaded.counters(group);
      group.forEach((snapshot, at) => void kept.set(snapshot, names[at] as readonly string[]));
    }
    return snapshots.flatMap((snapshot) => {
      const counters = (kept.get(snapshot) ?? []).map((name) => [name, snapshot.counters[name]]);
      const isIncluded = counters.length === 0 && Object.keys(snapshot.counters).length > 0;
      return isIncluded ? [] : [{ ...snapshot, counters: Object.fromEntries(counters) }];
    });
  }

  /**
   * Excludes from totals what the resources among the snapshots have counted in the same window,
   * for sums over several resources. A total that is wholly included is left out. `all`: what
   * `withoutCascaded` was given, where the snapshots are its answer.
   */
  withoutTotals(
    snapshots: readonly UsageSnapshot[],
    all: readonly UsageSnapshot[] = snapshots,
  ): UsageSnapshot[] {
    return withoutCountedTotals(snapshots, all);
  }

  #check(options: UsageQuery): CheckedQuery {
    const { window } = options;
    const start = checkTime("start", options.start, isoSeconds);
    const end = checkTime("end", options.end, isoSeconds);
    if (window !== undefined && !WINDOW_TYPES.includes(window)) {
      const types = WINDOW_TYPES.join(", ");
      throw new ValidationError("window", window, `expected ${types}, got ${show(window)}`);
    }
    const times = { window, start, end };
    const { scope, prefix, ordered } = this.#scope(options.entityId, options.resource);
    const ranges = usageRanges(scope, prefix, ordered ? times : undefined);
    return {
      scope,
      places: (last) => {
        if (scope.index === "GSI4") return namespaceUsage(this.#context, scope, times, last);
        return this.#inRanges(last === undefined ? ranges : rangesAfter(ranges, last));
      },
      matches: (snapshot) =>
        (window === undefined || snapshot.windowType === window) &&
        (start === undefined || snapshot.windowStart >= start) &&
        (end === undefined || snapshot.windowStart <= end),
    };
  }

  /**
   * Returns the keys to read. `ordered`: all keys with the prefix are of one resource, so a time
   * span is a key range.
   */
  #scope(entityId: string | undefined, resource: string | undefined): UsageScope {
    const { namespaceId } = this.#context;
    if (resource !== undefined) checkResource(resource);
    if (entityId !== undefined) {
      const partition = entityPartition(namespaceId, checkEntityId(entityId));
      const ordered = resource !== undefined;
      const prefix = ordered ? `${USAGE_PREFIX}${resource}#` : USAGE_PREFIX;
      return { scope: { partition }, prefix, ordered };
    }
    if (resource !== undefined) {
      const scope = { index: "GSI2", partition: resourcePartition(namespaceId, resource) } as const;
      return { scope, prefix: USAGE_INDEX_PREFIX, ordered: true };
    }
    const scope = { index: "GSI4", partition: namespaceId } as const;
    return { scope, prefix: entityPartition(namespaceId, ""), ordered: false };
  }

  async *#inRanges(ranges: readonly Query[]): AsyncGenerator<Item> {
    for (const range of ranges) yield* queryRecords(this.#context, range);
  }

  /** Returns the snapshots of places; an index has only keys, so items are fetched in batches. */
  async *#read(places: AsyncIterable<Item>, scope: Query): AsyncGenerator<Found> {
    let batch: Item[] = [];
    for await (const item of places) {
      batch.push(item);
      if (batch.length < FETCHED_AT_ONCE) continue;
      yield* await this.#decode(scope, batch);
      batch = [];
    }
    yield* await this.#decode(scope, batch);
  }

  async #decode(query: Query, found: readonly Item[]): Promise<Found[]> {
    const items =
      query.index === undefined || found.length === 0
        ? found
        : await this.#context.store.getMany(found);
    return found.flatMap((place, at) => {
      const item = items[at];
      const snapshot = item === undefined ? undefined : decodeUsage(item);
      return item === undefined || snapshot === undefined ? [] : [{ place, item, snapshot }];
    });
  }
}

/** Whether a snapshot is of a tag that was not asked for: other entities have all of it. */
function isTagOf(snapshot: UsageSnapshot, { entityId }: UsageQuery): boolean {
  return entityId === undefined && isTag(snapshot.entityId);
}

async function* filtered(
  all: AsyncIterable<Found>,
  matches: CheckedQuery["matches"],
): AsyncGenerator<Found> {
  for await (const found of all) if (matches(found.snapshot)) yield found;
}

/**
 * Returns the snapshots of one resource and window at a time. They come in the order of their
 * windows for each type; those of the Python library mix the types.
 */
async function* windowGroups(all: AsyncIterable<Found>): AsyncGenerator<Found[]> {
  const open = new Map<string, Found[]>();
  for await (const found of all) {
    const { resource, windowType, windowStart } = found.snapshot;
    const kind = `${resource} ${windowType}`;
    const group = open.get(kind);
    if (group?.[0]?.snapshot.windowStart === windowStart) {
      group.push(found);
      continue;
    }
    if (group !== undefined) yield group;
    open.set(kind, [found]);
  }
  yield* open.values();
}
