/** Reading the statements of closed periods, those that ended last first. */

import { checkFields, checkInteger } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import { checkEntityId, checkLimitName, checkResource } from "../../domain/names.ts";
import type { Item } from "../../storage/item.ts";
import type { Query } from "../../storage/item-store.ts";
import { decodeCursor, encodeCursor } from "../cursor.ts";
import { entityPartition, PERIOD_INDEX_PREFIX, PERIOD_PREFIX, resourcePartition } from "../keys.ts";
import { queryRecords } from "../query-records.ts";
import type { RecordContext } from "../record-context.ts";
import { checkTime } from "./check-time.ts";
import { decodePeriod, timeText, type UsagePeriod } from "./period-item.ts";

const PERIODS_PER_PAGE = 100;
const LIMIT_MAX = 10_000;
const FETCHED_AT_ONCE = 100;
/** Sorts after everything that times are made of. */
const HIGHEST = "~";

/** Which closed periods: an entity, a resource or both must be given. */
export interface UsagePeriodsQuery {
  /** The entity; absent for all entities of the resource. */
  readonly entityId?: string;
  /** The resource; absent for all resources of the entity. */
  readonly resource?: string;
  /** The limit; absent for all limits. */
  readonly limitName?: string;
  /** Periods that ended at this time or later; a time or its text. */
  readonly start?: Date | string;
  /** Periods that ended at this time or earlier; a time or its text. */
  readonly end?: Date | string;
}

const FIELDS = [
  "entityId",
  "resource",
  "limitName",
  "start",
  "end",
] as const satisfies readonly (keyof UsagePeriodsQuery)[];

/** A page of statements that is asked for. */
export interface UsagePeriodsPage extends UsagePeriodsQuery {
  readonly limit?: number;
  readonly cursor?: string;
}

/** A statement, and the item that a cursor is made from. */
interface Found {
  readonly place: Item;
  readonly period: UsagePeriod;
}

/** Checks a query for statements, and returns the function that reads a page of them. */
export function checkedPeriods(
  context: RecordContext,
  options: UsagePeriodsPage,
): () => Promise<{ periods: UsagePeriod[]; cursor?: string }> {
  checkFields("options", options, [...FIELDS, "limit", "cursor"]);
  const { resource, limitName } = options;
  if (limitName !== undefined) checkLimitName(limitName);
  const limit = checkInteger("limit", options.limit ?? PERIODS_PER_PAGE, 1, LIMIT_MAX);
  const scope = scopeOf(context, options);
  const after = options.cursor === undefined ? {} : { after: decodeCursor(options.cursor, scope) };
  const query = { ...scope, sort: sortOf(scope, options), descending: true, ...after };
  const matches = (period: UsagePeriod) =>
    (resource === undefined || period.resource === resource) &&
    (limitName === undefined || period.limitName === limitName);
  return async () => {
    const found: Found[] = [];
    for await (const entry of read(context, query)) {
      if (matches(entry.period)) found.push(entry);
      // One more than is returned shows whether there is a next page.
      if (found.length > limit) break;
    }
    const shown = found.slice(0, limit);
    const periods = shown.map(({ period }) => period);
    if (found.length <= limit) return { periods };
    return { periods, cursor: encodeCursor((shown.at(-1) as Found).place, scope) };
  };
}

function scopeOf({ namespaceId }: RecordContext, { entityId, resource }: UsagePeriodsQuery): Query {
  if (resource !== undefined) checkResource(resource);
  if (entityId !== undefined) {
    return { partition: entityPartition(namespaceId, checkEntityId(entityId)) };
  }
  if (resource === undefined) {
    throw new ValidationError("entityId", entityId, "expected an entity, a resource or both");
  }
  return { index: "GSI2", partition: resourcePartition(namespaceId, resource) };
}

function sortOf({ index }: Query, { start, end }: UsagePeriodsQuery): { from: string; to: string } {
  const prefix = index === undefined ? PERIOD_PREFIX : PERIOD_INDEX_PREFIX;
  const from = checkTime("start", start, timeText) ?? "";
  const to = checkTime("end", end, timeText) ?? "";
  if (to !== "" && from > to) throw new ValidationError("end", end, "is before the start");
  return { from: prefix + from, to: prefix + to + HIGHEST };
}

/** Reads statements; an index has only keys, so items are fetched in batches. */
async function* read(context: RecordContext, query: Query): AsyncGenerator<Found> {
  let batch: Item[] = [];
  for await (const place of queryRecords(context, query)) {
    batch.push(place);
    if (batch.length < FETCHED_AT_ONCE) continue;
    yield* await decoded(context, query, batch);
    batch = [];
  }
  yield* await decoded(context, query, batch);
}

async function decoded(
  { store }: RecordContext,
  { index }: Query,
  places: readonly Item[],
): Promise<Found[]> {
  const isWhole = index === undefined || places.length === 0;
  const items = isWhole ? places : await store.getMany(places);
  return places.flatMap((place, at) => {
    const item = items[at];
    const period = item === undefined ? undefined : decodePeriod(item);
    return period === undefined ? [] : [{ place, period }];
  });
}
