/** The link of an entity to its parent: in its record, and as a bucket carries it. */

import type { StoredBucket } from "../records/bucket-item.ts";
import { flagAt, type Item, numberAt, textAt, type Value } from "../storage/item.ts";
import type { Test } from "../storage/item-store.ts";
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

/** Returns the links that buckets have shown, when one is not what the legs were made from. */
export function changedLinks(
  legs: readonly { readonly link: Link }[],
  shown: readonly { readonly link: Link }[],
): readonly Link[] | undefined {
  const isSame = legs.every(({ link }, at) => sameLink(link, (shown[at] as { link: Link }).link));
  return isSame ? undefined : shown.map(({ link }) => link);
}

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
export function hasPolicy({ python }: StoredBucket): boolean {
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
