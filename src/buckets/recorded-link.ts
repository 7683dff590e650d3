/** Whom an entity charges, by its own record. */

import { flagAt, textAt } from "../records/fields.ts";
import type { Item } from "../storage/item.ts";
import type { Link } from "./bucket-store.ts";

/** An entity that charges nobody else. */
export const UNLINKED: Link = Object.freeze({ cascade: false, parentId: undefined });

/** An entity that was never created charges nobody else. */
export function linkInRecord(record: Item | undefined): Link {
  if (record === undefined) return UNLINKED;
  return { cascade: flagAt(record, "cascade"), parentId: textAt(record, "parent_id") };
}
