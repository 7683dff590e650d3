/** The buckets that a call would consume from, before it is decided. */

import type { SeenBalances } from "../bucket-consumer.ts";
import { appliesAnyway } from "../config-match.ts";
import { effectiveLink, fits, type Leg, type Link, sameLink } from "../leg.ts";
import type { Bucket } from "./bucket.ts";

/** A leg of a consume before it is decided. */
export interface Draft {
  readonly leg: Leg;
  /** The row, which may have expired. */
  readonly stored: Bucket | undefined;
  /** The bucket that takes its place; the same object where the limits stay as they are. */
  readonly bucket: Bucket;
  readonly isNew: boolean;
}

/** Returns the bucket unless its time is over. */
export function alive(bucket: Bucket | undefined, nowMs: number): Bucket | undefined {
  return bucket?.isExpired(nowMs) === true ? undefined : bucket;
}

/** Returns the links of all buckets when one is not the link that its leg was made from. */
export function changedLinks(
  parts: readonly { readonly leg: Leg; readonly bucket: Bucket }[],
): readonly Link[] | undefined {
  const links = parts.map(({ leg, bucket }) => effectiveLink(bucket.link, leg.config.cascade));
  return parts.every(({ leg }, at) => sameLink(leg.link, links[at] as Link)) ? undefined : links;
}

/** Whether a refused call changes a bucket all the same. `isReclaimed`: it gave back slots. */
export function changes({ leg, stored, bucket, isNew }: Draft, isReclaimed: boolean): boolean {
  if (stored === undefined || isNew) return false;
  return stored === bucket ? isReclaimed : appliesAnyway(stored.build, leg.config);
}

/** Returns what the buckets of a call hold. */
export function seenOf(drafts: readonly Draft[], nowMs: number): SeenBalances {
  return seenIn(
    drafts.map(({ bucket }) => bucket),
    drafts.map(({ leg }) => leg),
    nowMs,
  );
}

/** Whether there is enough for all legs of a call. */
export function areEnough(legs: readonly Leg[], { balancesMilli }: SeenBalances): boolean {
  return legs.every(({ config, amountsMilli }, at) =>
    fits(config, amountsMilli, balancesMilli[at] as readonly number[]),
  );
}

/** Returns the balances and periods of buckets, aligned with the legs of a call. */
export function seenIn(
  buckets: readonly Bucket[],
  legs: readonly Leg[],
  now: number,
): SeenBalances {
  const balancesMilli = buckets.map((bucket, at) =>
    bucket.balancesOf((legs[at] as Leg).config, now),
  );
  const periods = buckets.map((bucket, at) => bucket.periodsOf((legs[at] as Leg).config, now));
  return { balancesMilli, periods };
}
