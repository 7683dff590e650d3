/** Reading usage: what entities consumed of resources, window by window. */

import { isoSeconds, WINDOW_TYPES, type WindowType } from "../core/windows.ts";
import { checkFields, checkInteger, show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors.ts";
import { checkEntityId, checkResource } from "../domain/names.ts";
import type { Item } from "../storage/item.ts";
import type { Query } from "../storage/item-store.ts";
import { decodeCursor, encodeCursor } from "./cursor.ts";
import { entityPartition, resourcePartition, USAGE_INDEX_PREFIX, USAGE_PREFIX } from "./keys.ts";
import { queryRecords } from "./query-records.ts";
import type { RecordContext } from "./record-context.ts";
import { decodeUsage, type UsageSnapshot, usageCounters, wholeTokens } from "./usage-item.ts";
import { rangesAfter, usageRanges } from "./usage-ranges.ts";

const SNAPSHOTS_PER_PAGE = 100;
const LIMIT_MAX = 10_000;
const FETCHED_AT_ONCE = 100;

/** Whose usage, of what, and when. At least one of entity and resource must be named. */
export interface UsageQuery {
  readonly entityId?: string;
  readonly resource?: string;
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

/**
 * Usage over several windows. Without a window type, the finest that there is counts alone: hours
 * and days together would count everything twice.
 *
 * @example
 * ```ts
 * import { Repository, type UsageSummary } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * const summary: UsageSummary = await repo.usage.summary({ entityId: 'key-1', window: 'daily' });
 * console.log(summary.snapshotCount); // 0
 * await repo.close();
 * ```
 */
export interface UsageSummary {
  readonly snapshotCount: number;
  /** Whole tokens per limit. */
  readonly total: Readonly<Record<string, number>>;
  /**
   * Per snapshot: the total divided by `snapshotCount`, also where a limit is missing from some.
   * Windows without any use have no snapshot and do not count; several entities of one window
   * count once each.
   */
  readonly average: Readonly<Record<string, number>>;
  readonly minWindowStart?: string;
  readonly maxWindowStart?: string;
}

/** Brings what was counted but not written yet to the snapshots, of an entity or of a resource. */
export type SettleUsage = (scope: {
  readonly entityId?: string;
  readonly resource?: string;
}) => Promise<void>;

/** A query whose parts have been checked. */
interface CheckedQuery {
  /** In the order of their keys, the highest first. */
  readonly ranges: readonly Query[];
  readonly scope: Query;
  readonly matches: (snapshot: UsageSnapshot) => boolean;
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
  readonly #settle: SettleUsage;

  constructor(context: RecordContext, settle: SettleUsage = async () => {}) {
    this.#context = context;
    this.#settle = settle;
  }

  /** The newest first, a page at a time. */
  async snapshots(
    options: UsageQuery & { limit?: number; cursor?: string },
  ): Promise<{ snapshots: UsageSnapshot[]; cursor?: string }> {
    checkFields("options", options, [...QUERY_FIELDS, "limit", "cursor"]);
    const { ranges, scope, matches } = this.#check(options);
    const limit = checkInteger("limit", options.limit ?? SNAPSHOTS_PER_PAGE, 1, LIMIT_MAX);
    const last = options.cursor === undefined ? undefined : decodeCursor(options.cursor, scope);
    // The first page has settled it, and a page must not cost as much as the whole list.
    if (last === undefined) await this.#settle(options);
    const found: Found[] = [];
    for await (const entry of this.#read(last === undefined ? ranges : rangesAfter(ranges, last))) {
      if (matches(entry.snapshot)) found.push(entry);
      // One more than is shown tells whether there is a next page.
      if (found.length > limit) break;
    }
    const shown = found.slice(0, limit);
    const next = found.length > limit ? shown.at(-1) : undefined;
    const snapshots = shown.map(({ snapshot }) => snapshot);
    return next === undefined
      ? { snapshots }
      : { snapshots, cursor: encodeCursor(next.place, scope) };
  }

  /** The sum over all snapshots that match, however many there are. */
  async summary(options: UsageQuery): Promise<UsageSummary> {
    checkFields("options", options, QUERY_FIELDS);
    const { ranges, matches } = this.#check(options);
    await this.#settle(options);
    const sums = new Map<string, UsageSum>();
    for await (const { snapshot, item } of this.#read(ranges)) {
      if (!matches(snapshot)) continue;
      const { windowType } = snapshot;
      let sum = sums.get(windowType);
      if (sum === undefined) {
        sum = new UsageSum();
        sums.set(windowType, sum);
      }
      sum.add(snapshot.windowStart, item);
    }
    const finest = WINDOW_TYPES.find((type) => sums.has(type));
    const sum = finest === undefined ? [...sums.values()][0] : sums.get(finest);
    return (sum ?? new UsageSum()).summary();
  }

  #check(options: UsageQuery): CheckedQuery {
    const { window } = options;
    const start = checkTime("start", options.start);
    const end = checkTime("end", options.end);
    if (window !== undefined && !WINDOW_TYPES.includes(window)) {
      const types = WINDOW_TYPES.join(", ");
      throw new ValidationError("window", window, `expected ${types}, got ${show(window)}`);
    }
    const { scope, prefix, ordered } = this.#scope(options.entityId, options.resource);
    const times = ordered ? { window, start, end } : undefined;
    return {
      scope,
      ranges: usageRanges(scope, prefix, times),
      matches: (snapshot) =>
        (window === undefined || snapshot.windowType === window) &&
        (start === undefined || snapshot.windowStart >= start) &&
        (end === undefined || snapshot.windowStart <= end),
    };
  }

  /** `ordered`: the keys after the prefix are those of one resource, so times are ranges of them. */
  #scope(entityId: string | undefined, resource: string | undefined) {
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
    throw new ValidationError("usage", undefined, "expected an entity or a resource, got neither");
  }

  async *#read(ranges: readonly Query[]): AsyncGenerator<Found> {
    for (const range of ranges) yield* this.#readRange(range);
  }

  /** The snapshots of a range; the index has only keys, so those are fetched a batch at a time. */
  async *#readRange(query: Query): AsyncGenerator<Found> {
    let batch: Item[] = [];
    for await (const item of queryRecords(this.#context, query)) {
      batch.push(item);
      if (batch.length < FETCHED_AT_ONCE) continue;
      yield* await this.#decode(query, batch);
      batch = [];
    }
    yield* await this.#decode(query, batch);
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

/** Adds up snapshots in milli-tokens, so that parts of tokens are rounded once, at the end. */
class UsageSum {
  readonly #milli = new Map<string, number>();
  #count = 0;
  #first: string | undefined;
  #last: string | undefined;

  add(windowStart: string, item: Item): void {
    this.#count += 1;
    if (this.#first === undefined || windowStart < this.#first) this.#first = windowStart;
    if (this.#last === undefined || windowStart > this.#last) this.#last = windowStart;
    for (const [name, tokens] of usageCounters(item)) {
      this.#milli.set(name, (this.#milli.get(name) ?? 0) + Math.round(tokens * 1000));
    }
  }

  summary(): UsageSummary {
    const totals = [...this.#milli].map(([name, milli]) => [name, milli / 1000] as const);
    return {
      snapshotCount: this.#count,
      total: Object.fromEntries(totals.map(([name, tokens]) => [name, wholeTokens(tokens)])),
      average: Object.fromEntries(totals.map(([name, tokens]) => [name, tokens / this.#count])),
      ...(this.#first === undefined ? {} : { minWindowStart: this.#first }),
      ...(this.#last === undefined ? {} : { maxWindowStart: this.#last }),
    };
  }
}

/** The format of stored window starts, so that times compare as text. */
function checkTime(field: string, value: Date | string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const ms = value instanceof Date ? value.getTime() : Date.parse(value);
  if (!Number.isNaN(ms)) return isoSeconds(ms);
  throw new ValidationError(field, value, `expected a date or its ISO text, got ${show(value)}`);
}
