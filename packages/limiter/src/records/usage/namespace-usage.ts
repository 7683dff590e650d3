/**
 * Snapshots of all entities and resources of a namespace, the newest first.
 *
 * No index has snapshots alone: GSI4 leads to every item of every entity. Their keys say window and
 * time, so keys are read and ordered, and only the items that are asked for are fetched.
 */

import { isWindowType, type WindowType } from "../../core/windows.ts";
import type { Item, Key } from "../../storage/item.ts";
import type { Query } from "../../storage/item-store.ts";
import { entityPartition, USAGE_PREFIX } from "../keys.ts";
import { queryRecords } from "../query-records.ts";
import type { RecordContext } from "../record-context.ts";

interface Times {
  readonly window: WindowType | undefined;
  readonly start: string | undefined;
  readonly end: string | undefined;
}

/** Reads the places of all snapshots that may match, after one that was returned. */
export async function* namespaceUsage(
  context: RecordContext,
  scope: Query,
  { window, start = "", end = "~" }: Times,
  last: Item | undefined,
): AsyncGenerator<Item> {
  const sort = { beginsWith: entityPartition(context.namespaceId, "") };
  const lastOrder = last === undefined ? undefined : orderOf(last);
  const found: { readonly order: string; readonly item: Item }[] = [];
  for await (const item of queryRecords(context, { ...scope, sort })) {
    const place = windowOf(item);
    if (place === undefined || place.start < start || place.start > end) continue;
    if (window !== undefined && place.type !== undefined && place.type !== window) continue;
    const order = orderOf(item);
    if (lastOrder === undefined || order < lastOrder) found.push({ order, item });
  }
  found.sort((left, right) => (left.order < right.order ? 1 : -1));
  for (const { item } of found) yield item;
}

/** Returns the window of a snapshot by its key, which has no type in the Python library. */
function windowOf({ SK }: Key): { readonly type?: WindowType; readonly start: string } | undefined {
  if (!SK.startsWith(USAGE_PREFIX)) return undefined;
  const parts = SK.slice(USAGE_PREFIX.length).split("#");
  const start = parts.at(-1) ?? "";
  const type = parts.at(-2);
  return isWindowType(type) ? { type, start } : { start };
}

/** Returns a text that sorts places by time, then by their keys. */
function orderOf(key: Key): string {
  return `${windowOf(key)?.start ?? ""} ${key.SK} ${key.PK}`;
}
