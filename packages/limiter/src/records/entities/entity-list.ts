/**
 * All entities of a namespace, a page at a time, by id.
 *
 * GSI4 leads to every item of an entity: its record, its limits, and a snapshot for every hour it
 * was used. A page of the index therefore shows which entities there are, and the next page begins
 * behind the last of them, however many items it has.
 */

import { checkFields, checkInteger, show } from "../../domain/check.ts";
import type { Entity } from "../../domain/entity.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import { checkEntityId } from "../../domain/names.ts";
import { type Item, textAt } from "../../storage/item.ts";
import type { Query } from "../../storage/item-store.ts";
import { decodeCursor, encodeCursor } from "../cursor.ts";
import { entityKey, entityPartition, inNamespace, parseEntityPartition } from "../keys.ts";
import { queryRecords } from "../query-records.ts";
import type { RecordContext } from "../record-context.ts";
import { decodeEntity } from "./entity-item.ts";

const ENTITIES_PER_PAGE = 100;
const LIMIT_MAX = 10_000;
const ITEMS_PER_QUERY = 100;
/** Sort before and after every character of an id. */
const LOWEST = "!";
const HIGHEST = "~";

/**
 * Which entities to list.
 *
 * @example
 * ```ts
 * import type { EntityListOptions } from 'zae-limiter';
 * const options: EntityListOptions = { prefix: 'key-', limit: 20 };
 * ```
 */
export interface EntityListOptions {
  /** The most entities of a page; 100 when absent. */
  readonly limit?: number;
  /** Cursor of an earlier page. */
  readonly cursor?: string;
  /** Only ids that begin so. */
  readonly prefix?: string;
}

/**
 * One page of entities, by id.
 *
 * @example
 * ```ts
 * import { type EntityPage, Repository } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * await repo.entities.ensure({ id: 'key-1' });
 * await repo.entities.update('key-1', { metadata: { tier: 'gold' } });
 * const { entities, cursor }: EntityPage = await repo.entities.list({ prefix: 'key-' });
 * console.log(entities[0]?.metadata['tier'], cursor); // gold undefined
 * await repo.close();
 * ```
 */
export interface EntityPage {
  /** The entities of this page, by id. */
  readonly entities: Entity[];
  /** Cursor of the next page; absent at the end. */
  readonly cursor?: string;
}

export async function listEntities(
  context: RecordContext,
  options: EntityListOptions,
): Promise<EntityPage> {
  checkFields("options", options, ["limit", "cursor", "prefix"]);
  const limit = checkInteger("limit", options.limit ?? ENTITIES_PER_PAGE, 1, LIMIT_MAX);
  const first = entityPartition(context.namespaceId, checkPrefix(options.prefix ?? ""));
  const query = { index: "GSI4", partition: context.namespaceId } as const;
  const last = options.cursor === undefined ? undefined : decodeCursor(options.cursor, query);
  const after = last === undefined ? "" : (textAt(last, "GSI4SK") ?? "") + LOWEST;
  // The later of the two, as texts.
  const [, from = first] = [first, after].toSorted();
  const range = { ...query, sort: { from, to: first + HIGHEST } };
  const entities: Entity[] = [];
  for await (const page of idPages(context, range)) {
    const keys = page.map((id) => entityKey(context.namespaceId, id));
    // Limits and usage may belong to an entity that was never created.
    const records = await context.store.getMany(keys);
    entities.push(...records.flatMap((item) => (item === undefined ? [] : [decodeEntity(item)])));
    if (entities.length > limit) break;
  }
  const shown = entities.slice(0, limit);
  const end = entities.length > limit ? shown.at(-1) : undefined;
  if (end === undefined) return { entities: shown };
  const key = entityKey(context.namespaceId, end.id);
  const place: Item = { ...key, ...inNamespace(context.namespaceId, key.PK) };
  return { entities: shown, cursor: encodeCursor(place, query) };
}

/** Returns the ids of all entities with a record, limits or usage; some come more than once. */
export async function* storedEntityIds(context: RecordContext): AsyncGenerator<string> {
  const from = entityPartition(context.namespaceId, "");
  const query = { index: "GSI4", partition: context.namespaceId } as const;
  const range = { ...query, sort: { from, to: from + HIGHEST } };
  for await (const page of idPages(context, range)) yield* page;
}

/** Returns the ids of entities that have any items, some at a time. */
async function* idPages(
  context: RecordContext,
  range: Query & { readonly sort: { readonly from: string; readonly to: string } },
): AsyncGenerator<string[]> {
  let { from } = range.sort;
  // Stores refuse a range that ends before it begins.
  while (from <= range.sort.to) {
    const ids = new Set<string>();
    let found = 0;
    let last = from;
    const sort = { ...range.sort, from };
    for await (const item of queryRecords(context, { ...range, sort, limit: ITEMS_PER_QUERY })) {
      found += 1;
      last = textAt(item, "GSI4SK") ?? last;
      const entity = parseEntityPartition(item.PK);
      if (entity !== undefined) ids.add(entity.entityId);
    }
    if (ids.size > 0) yield [...ids];
    if (found < ITEMS_PER_QUERY) return;
    from = last + LOWEST;
  }
}

function checkPrefix(prefix: string): string {
  if (prefix === "") return prefix;
  if (typeof prefix === "string") return checkEntityId(prefix);
  throw new ValidationError("prefix", prefix, `expected text, got ${show(prefix)}`);
}
