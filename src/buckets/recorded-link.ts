/** Whom an entity charges, by its own record. */

import { flagAt, numberAt, textAt } from "../records/fields.ts";
import type { Item, Value } from "../storage/item.ts";
import type { Link } from "./bucket-store.ts";

/** An entity that charges nobody else. */
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

/** An entity that was never created charges nobody else. */
export function linkInRecord(record: Item | undefined): Link {
  if (record === undefined) return UNLINKED;
  return { cascade: flagAt(record, "cascade"), parentId: textAt(record, "parent_id") };
}

export function sameLink(left: Link, right: Link): boolean {
  return left.cascade === right.cascade && left.parentId === right.parentId;
}
