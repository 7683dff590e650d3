/** Queries over items that are all in this process, for stores that have no index of their own. */

import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkQuery, checkSnapshot } from "@zae-limiter/limiter/storage/checks.ts";
import { inByteOrder } from "@zae-limiter/limiter/storage/evaluate.ts";
import { checkKey, type Item, type Key } from "@zae-limiter/limiter/storage/item.ts";
import type { Query } from "@zae-limiter/limiter/storage/item-store.ts";
import { type IndexDefinition, indexNamed, project } from "@zae-limiter/limiter/storage/table.ts";

/**
 * Checks the keys of a read: two texts each, neither empty; at most 100 in a snapshot.
 *
 * @example
 * ```ts
 * import { checkKeys } from 'zae-limiter/testing';
 * checkKeys([{ PK: 'ns/ENTITY#key-1', SK: '#META' }]);
 * ```
 */
export function checkKeys(
  keys: readonly Key[],
  options: { readonly snapshot?: boolean | undefined } = {},
): void {
  if (options.snapshot === true) checkSnapshot(keys);
  keys.forEach(checkKey);
}

/**
 * Selects the items that a query asks for, in its order, as far as the index copies them. It reads
 * all items: a store for more than tests has indexes instead.
 *
 * @example
 * ```ts
 * import { selectItems } from 'zae-limiter/testing';
 * const items = ['b', 'a', 'c'].map((SK) => ({ PK: 'ns/ENTITY#key-1', SK }));
 * const query = { partition: 'ns/ENTITY#key-1', sort: { from: 'b' }, descending: true };
 * console.log(selectItems(query, items).map(({ SK }) => SK)); // [ 'c', 'b' ]
 * ```
 */
export function selectItems(query: Query, items: Iterable<Item>): Item[] {
  checkQuery(query);
  const index = query.index === undefined ? undefined : indexNamed(query.index);
  const after = query.after === undefined ? undefined : placeOf(query.after, index);
  if (query.after !== undefined && after === undefined) {
    throw new ValidationError(
      "after",
      query.after,
      `expected an item with the keys of ${index?.name}`,
    );
  }
  const direction = query.descending === true ? -1 : 1;
  const found = [...items]
    .flatMap((item) => {
      const place = placeOf(item, index);
      return place === undefined ? [] : [{ item, place }];
    })
    .filter(
      ({ place: [partition, sort] }) => partition === query.partition && isWithin(sort, query),
    )
    .filter(({ place }) => after === undefined || direction * compare(place, after) > 0)
    .sort((left, right) => direction * compare(left.place, right.place))
    .map(({ item }) => (index === undefined ? item : project(index, item)));
  return found.slice(0, query.limit);
}

/** Partition and sort key first; then the key of the item, which orders equal ones. */
type Place = readonly [partition: string, sort: string, PK: string, SK: string];

function placeOf(item: Item, index: IndexDefinition | undefined): Place | undefined {
  const partition = item[index?.partition ?? "PK"];
  const sort = item[index?.sort ?? "SK"];
  if (typeof partition !== "string" || typeof sort !== "string") return undefined;
  return [partition, sort, item.PK, item.SK];
}

function isWithin(sort: string, { sort: range = {} }: Query): boolean {
  if ("beginsWith" in range) return sort.startsWith(range.beginsWith);
  const text = inByteOrder(sort);
  if (range.from !== undefined && text < inByteOrder(range.from)) return false;
  return range.to === undefined || text <= inByteOrder(range.to);
}

function compare(left: Place, right: Place): number {
  for (const [at, text] of left.entries()) {
    const [one, other] = [inByteOrder(text), inByteOrder(right[at] as string)];
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}
