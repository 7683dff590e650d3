/**
 * Marks of deletions. The stream of a table lags: after a deletion it still delivers changes from
 * before it, and the aggregator must not count them. A mark says which changes those are. It stays
 * longer than any stream keeps its records, and then expires.
 */

import { type Item, type Key, numberAt } from "../../storage/item.ts";
import type { Condition } from "../../storage/item-store.ts";
import { deletionKey, inNamespace, namespaceIdKey } from "../keys.ts";
import { inactiveIn } from "../namespaces/namespace-state.ts";

/** A stream keeps its records for one day. */
const KEPT_DAYS = 7;
const DAY_SECONDS = 86_400;
const UNTIL = "until_ms";

/**
 * Returns the mark of an entity: buckets with a base time up to `untilMs` are from before its
 * deletion.
 */
export function entityMark(
  namespaceId: string,
  entityId: string,
  untilMs: number,
  nowMs: number,
): Item {
  const key = deletionKey(namespaceId, entityId);
  return { ...key, ...inNamespace(namespaceId, key.PK), [UNTIL]: untilMs, ttl: expiry(nowMs) };
}

/** Passes unless a later deletion of the same entity has left its mark. */
export function unlessMarkedLater(untilMs: number): Condition {
  return [{ is: "<=", name: UNTIL, value: untilMs, orAbsent: true }];
}

/**
 * Returns the mark of a namespace that is purged. No index leads to it, so that the purge leaves
 * it.
 */
export function namespaceMark(namespaceId: string, nowMs: number): Item {
  return { ...deletionKey(namespaceId), ttl: expiry(nowMs) };
}

/** Returns the last base time before the deletion; Infinity for a namespace, which stays gone. */
export function deletedUntilMs(mark: Item): number {
  return numberAt(mark, UNTIL) ?? Number.POSITIVE_INFINITY;
}

/** Returns the keys of the items that say whether buckets of an entity may still be created. */
export function lifeKeys(namespaceId: string, entityId: string): readonly [Key, Key] {
  return [deletionKey(namespaceId, entityId), namespaceIdKey(namespaceId)];
}

/**
 * Whether the entity was deleted while its mark lasts, or the namespace is not active any more.
 * The mark does not say whether a lease is older than the deletion: where it might be, no bucket is
 * created, because nothing would ever lead to it again.
 */
export function wasDeleted(mark: Item | undefined, namespace: Item | undefined): boolean {
  return mark !== undefined || inactiveIn(namespace) !== undefined;
}

function expiry(nowMs: number): number {
  return Math.floor(nowMs / 1000) + KEPT_DAYS * DAY_SECONDS;
}
