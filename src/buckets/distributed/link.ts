/** The link of an entity to its parent, as a bucket carries it. */

import type { Test } from "../../storage/item-store.ts";
import type { Link } from "../leg.ts";
import type { SeenBucket } from "./seen-bucket.ts";

export function linkIn({ cascade, parentId }: Link): Link {
  return { cascade, parentId };
}

/** The change that makes a bucket carry a link. */
export function linkChange({ cascade, parentId }: Link) {
  return parentId === undefined
    ? { set: { cascade }, remove: ["parent_id"] }
    : { set: { cascade, parent_id: parentId } };
}

/**
 * Whether the Python library has stamped the bucket with its resolved cascade policy, which may
 * differ from the record of the entity.
 */
export function hasPolicy({ python }: SeenBucket): boolean {
  return python?.stamps.pgen !== undefined;
}

export const NO_POLICY: Test = { is: "absent", name: "pgen" };

/** Tests that the bucket still has the link that was seen. */
export function linkTests({ cascade, parentId }: Link): Test[] {
  const parent = "parent_id";
  return [
    { is: "=", name: "cascade", value: cascade, orAbsent: !cascade },
    parentId === undefined
      ? { is: "absent", name: parent }
      : { is: "=", name: parent, value: parentId },
  ];
}
