/** Reading usage: what entities consumed of resources, window by window. */

import { isoSeconds, WINDOW_TYPES, type WindowType } from "../core/windows.ts";
import { checkFields, checkInteger, show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors.ts";
import { checkEntityId, checkResource } from "../domain/names.ts";
import type { Item } from "../storage/item.ts";
import type { Query } from "../storage/item-store.ts";
import { decodeCursor, encodeCursor } from "./cursor.ts";
import { entityPartition, resourcePartition, USAGE_INDEX_PREFIX, USAGE_PREFIX } from "./keys.ts";
import type { RecordContext } from "./record-context.ts";
import { decodeUsage, type UsageSnapshot } from "./usage-item.ts";

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
 * Usage over several windows. Name a window type: hours and days would count twice together.
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
  /** Per snapshot: the total divided by `snapshotCount`. */
  readonly average: Readonly<Record<string, number>>;
  readonly minWindowStart?: string;
  readonly maxWindowStart?: string;
}

/** A query whose parts have been checked. */
interface CheckedQuery {
  readonly query: Query;
  readonly matches: (snapshot: UsageSnapshot) => boolean;
}

/**
 * Usage by entity and by resource.
 *
 * @example
 * ```ts
 * import { Repository } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * const { snapshots } = await repo.usage.snapshots({ entityId: 'key-1', window: 'hourly' });
 * console.log(snapshots.length); // 0
 * await repo.close();
 * ```
 */
export class UsageRecords {
  readonly #context: RecordContext;

  constructor(context: RecordContext) {
    this.#context = context;
  }

  /** The newest first, a page at a time. */
  async snapshots(
    options: UsageQuery & { limit?: number; cursor?: string },
  ): Promise<{ snapshots: UsageSnapshot[]; cursor?: string }> {
    checkFields("options", options, [...QUERY_FIELDS, "limit", "cursor"]);
    const { query, matches } = this.#check(options);
    const limit = checkInteger("limit", options.limit ?? SNAPSHOTS_PER_PAGE, 1, LIMIT_MAX);
    const after =
      options.cursor === undefined ? {} : { after: decodeCursor(options.cursor, query) };
    const found: { item: Item; snapshot: UsageSnapshot }[] = [];
    for await (const entry of this.#read({ ...query, ...after })) {
      if (matches(entry.snapshot)) found.push(entry);
      // One more than is shown tells whether there is a next page.
      if (found.length > limit) break;
    }
    const shown = found.slice(0, limit);
    const last = found.length > limit ? shown.at(-1) : undefined;
    const snapshots = shown.map(({ snapshot }) => snapshot);
    return last === undefined
      ? { snapshots }
      : { snapshots, cursor: encodeCursor(last.item, query) };
  }

  /** The sum over all snapshots that match, however many there are. */
  async summary(options: UsageQuery): Promise<UsageSummary> {
    checkFields("options", options, QUERY_FIELDS);
    const { query, matches } = this.#check(options);
    const total = new Map<string, number>();
    let snapshotCount = 0;
    let first: string | undefined;
    let last: string | undefined;
    for await (const { snapshot } of this.#read(query)) {
      if (!matches(snapshot)) continue;
      const { windowStart } = snapshot;
      snapshotCount += 1;
      first = first === undefined || windowStart < first ? windowStart : first;
      last = last === undefined || windowStart > last ? windowStart : last;
      for (const [name, count] of Object.entries(snapshot.counters)) {
        total.set(name, (total.get(name) ?? 0) + count);
      }
    }
    return {
      snapshotCount,
      total: Object.fromEntries(total),
      average: Object.fromEntries([...total].map(([name, sum]) => [name, sum / snapshotCount])),
      ...(first === undefined ? {} : { minWindowStart: first }),
      ...(last === undefined ? {} : { maxWindowStart: last }),
    };
  }

  #check(options: UsageQuery): CheckedQuery {
    const { entityId, resource, window } = options;
    const start = checkTime("start", options.start);
    const end = checkTime("end", options.end);
    if (window !== undefined && !WINDOW_TYPES.includes(window)) {
      const types = WINDOW_TYPES.join(", ");
      throw new ValidationError("window", window, `expected ${types}, got ${show(window)}`);
    }
    return {
      query: this.#query(entityId, resource),
      matches: (snapshot) =>
        (window === undefined || snapshot.windowType === window) &&
        (start === undefined || snapshot.windowStart >= start) &&
        (end === undefined || snapshot.windowStart <= end),
    };
  }

  #query(entityId: string | undefined, resource: string | undefined): Query {
    const { namespaceId } = this.#context;
    if (resource !== undefined) checkResource(resource);
    if (entityId !== undefined) {
      const prefix = resource === undefined ? USAGE_PREFIX : `${USAGE_PREFIX}${resource}#`;
      const partition = entityPartition(namespaceId, checkEntityId(entityId));
      return { partition, sort: { beginsWith: prefix }, descending: true };
    }
    if (resource !== undefined) {
      const partition = resourcePartition(namespaceId, resource);
      const sort = { beginsWith: USAGE_INDEX_PREFIX };
      return { index: "GSI2", partition, sort, descending: true };
    }
    throw new ValidationError("usage", undefined, "expected an entity or a resource, got neither");
  }

  /** The snapshots of a query; the index has only keys, so those are fetched a batch at a time. */
  async *#read(query: Query): AsyncGenerator<{ item: Item; snapshot: UsageSnapshot }> {
    let batch: Item[] = [];
    for await (const item of this.#context.store.query(query)) {
      batch.push(item);
      if (batch.length < FETCHED_AT_ONCE) continue;
      yield* await this.#decode(query, batch);
      batch = [];
    }
    yield* await this.#decode(query, batch);
  }

  async #decode(
    query: Query,
    found: readonly Item[],
  ): Promise<{ item: Item; snapshot: UsageSnapshot }[]> {
    const items =
      query.index === undefined || found.length === 0
        ? found
        : await this.#context.store.getMany(found);
    return found.flatMap((item, at) => {
      const snapshot = items[at] === undefined ? undefined : decodeUsage(items[at]);
      return snapshot === undefined ? [] : [{ item, snapshot }];
    });
  }
}

/** The format of stored window starts, so that times compare as text. */
function checkTime(field: string, value: Date | string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const ms = value instanceof Date ? value.getTime() : Date.parse(value);
  if (!Number.isNaN(ms)) return isoSeconds(ms);
  throw new ValidationError(field, value, `expected a date or its ISO text, got ${show(value)}`);
}
