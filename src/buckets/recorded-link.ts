/** The parent link in the record of an entity. */

import { flagAt, numberAt, textAt } from "../records/fields.ts";
import type { Item, Value } from "../storage/item.ts";
import type { Link } from "./leg.ts";

/** The link of an entity that does not cascade. */
export const UNLINKED: Link = Object.freeze({ cascade: false, parentId: undefined });

/** A link where a stored level says whether acquires cascade; without a parent they never do. */
export function byPolicy({ parentId }: Link, cascade: boolean): Link {
  return { cascade: cascade && parentId !== undefined, parentId };
}

/** The link that counts: the stored one, unless a level says whether acquires cascade. */
export function effectiveLink(link: Link, policy: boolean | undefined): Link {
  return policy === undefined ? link : byPolicy(link, policy);
}

/** What the Python library stamps a bucket with, so that its link is known to be the policy. */
export function ownerStamps(record: Item | undefined): Record<string, Value> {
  const generation = record === undefined ? undefined : numberAt(record, "pgen");
  const incarnation =
    record === undefined ? undefined : (textAt(record, "pinc") ?? textAt(record, "created_at"));
  return { pgen: generation ?? 0, pinc: incarnation ?? "-" };
}

/** Returns the link of a record. An entity that was never created does not cascade. */
export function linkInRecord(record: Item | undefined): Link {
  if (record === undefined) return UNLINKED;
  return { cascade: flagAt(record, "cascade"), parentId: textAt(record, "parent_id") };
}

export function sameLink(left: Link, right: Link): boolean {
  return left.cascade === right.cascade && left.parentId === right.parentId;
}
